"""Worlds: contextual MDPs whose truth is known, so that regret is computed and not estimated."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from omg_cmdp.environments.actg175 import ACTG175
from omg_cmdp.environments.bandit import ContextualBandit
from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.environments.decoy import Decoy
from omg_cmdp.environments.gymnasium import SampledWorld, TableWorld, from_gymnasium
from omg_cmdp.environments.gymnasium_door import gymnasium_space
from omg_cmdp.environments.icu_sepsis import ICUSepsis
from omg_cmdp.environments.linear import LinearWorld
from omg_cmdp.environments.lock import CombinationLock
from omg_cmdp.environments.lower_bound import LowerBound
from omg_cmdp.environments.misspecification import Distance, distance_to_class
from omg_cmdp.environments.softmax import SoftmaxWorld
from omg_cmdp.environments.treatment import TreatmentTrial
from omg_cmdp.environments.world import World

if TYPE_CHECKING:
    from omg_cmdp.environments.discretise import Discretised, random_observations
    from omg_cmdp.environments.registered import WorldEnv, register_gymnasium

__all__ = [
    "ACTG175",
    "CombinationLock",
    "ContextualBandit",
    "ContextualMDP",
    "Decoy",
    "Discretised",
    "Distance",
    "ICUSepsis",
    "LinearWorld",
    "LowerBound",
    "SampledWorld",
    "SoftmaxWorld",
    "TableWorld",
    "TreatmentTrial",
    "World",
    "WorldEnv",
    "distance_to_class",
    "from_gymnasium",
    "gymnasium_space",
    "random_observations",
    "register_gymnasium",
]

_LATE = {
    "Discretised": "discretise",
    "WorldEnv": "registered",
    "random_observations": "discretise",
    "register_gymnasium": "registered",
}
"""What needs Gymnasium to be defined, and is imported with its first use."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATE[name]}"), name)
