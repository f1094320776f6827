"""Finite-horizon tabular MDPs: tables, occupancy measures, dynamic programming, divergences."""

from omg_cmdp.mdp.bellman import optimal_policy as optimal_policy
from omg_cmdp.mdp.bellman import policy_value as policy_value
from omg_cmdp.mdp.divergence import squared_hellinger as squared_hellinger
from omg_cmdp.mdp.episode import Episode as Episode
from omg_cmdp.mdp.occupancy import occupancy_measure as occupancy_measure
from omg_cmdp.mdp.occupancy import reachable_states as reachable_states
from omg_cmdp.mdp.space import Space as Space
from omg_cmdp.mdp.tabular import TabularMDP as TabularMDP
from omg_cmdp.mdp.thresholds import UNREACHABLE_BELOW as UNREACHABLE_BELOW
from omg_cmdp.mdp.trajectory import Trajectory as Trajectory

__all__ = sorted(name for name, each in vars().items() if name[0] != "_" and (callable(each) or name.isupper()))
