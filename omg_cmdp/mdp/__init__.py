"""Finite-horizon tabular MDPs: tables, occupancy measures, dynamic programming, divergences."""

from omg_cmdp.mdp.divergence import squared_hellinger
from omg_cmdp.mdp.dynamic_programming import optimal_policy, policy_value
from omg_cmdp.mdp.occupancy import UNREACHABLE_BELOW, occupancy_measure, reachable_states
from omg_cmdp.mdp.tabular import Space, TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory

__all__ = [
    "UNREACHABLE_BELOW",
    "Space",
    "TabularMDP",
    "Trajectory",
    "occupancy_measure",
    "optimal_policy",
    "policy_value",
    "reachable_states",
    "squared_hellinger",
]
