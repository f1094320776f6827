"""Finite-horizon tabular MDPs: tables, occupancy measures, dynamic programming, divergences."""

from omg_cmdp.mdp.bellman import optimal_policy, policy_value
from omg_cmdp.mdp.divergence import squared_hellinger
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.occupancy import occupancy_measure, reachable_states
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.thresholds import UNREACHABLE_BELOW
from omg_cmdp.mdp.trajectory import Trajectory

__all__ = [
    "UNREACHABLE_BELOW",
    "Episode",
    "Space",
    "TabularMDP",
    "Trajectory",
    "occupancy_measure",
    "optimal_policy",
    "policy_value",
    "reachable_states",
    "squared_hellinger",
]
