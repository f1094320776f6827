"""Environments: contextual MDPs with tables, and Gymnasium environments with contexts."""

from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.environments.gymnasium.contextual_env import gymnasium_space
from omg_cmdp.environments.gymnasium.make import from_gymnasium
from omg_cmdp.environments.gymnasium.worlds import SampledWorld, TableWorld

__all__ = ["ContextualMDP", "SampledWorld", "TableWorld", "from_gymnasium", "gymnasium_space"]
