"""Worlds: contextual MDPs whose truth is known, so that regret is computed, not estimated."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from omg_lab.data.actg175 import ACTG175
from omg_lab.data.classification import Classification
from omg_lab.data.icu_sepsis import ICUSepsis
from omg_lab.data.reduced_sepsis import ReducedSepsis
from omg_lab.worlds.arms import Arms
from omg_lab.worlds.bandit import ContextualBandit
from omg_lab.worlds.base import World
from omg_lab.worlds.corridor import Corridor
from omg_lab.worlds.decoy import Decoy
from omg_lab.worlds.deep_sea import DeepSea
from omg_lab.worlds.gymnasium.cliff_walking import CliffWalking
from omg_lab.worlds.gymnasium.frozen_lake import FrozenLake
from omg_lab.worlds.linear import LinearWorld
from omg_lab.worlds.lock import CombinationLock
from omg_lab.worlds.long_decoy import LongDecoy
from omg_lab.worlds.lower_bound import LowerBound
from omg_lab.worlds.misspecification import Distance, distance_to_class
from omg_lab.worlds.noisy_room import NoisyRoom
from omg_lab.worlds.river_swim import RiverSwim
from omg_lab.worlds.softmax import SoftmaxWorld
from omg_lab.worlds.treatment import TreatmentTrial

if TYPE_CHECKING:
    from omg_lab.worlds.gymnasium.control import cart_pole, mountain_car
    from omg_lab.worlds.gymnasium.registered import WorldEnv, register_gymnasium

__all__ = [
    "ACTG175",
    "Arms",
    "Classification",
    "CliffWalking",
    "CombinationLock",
    "ContextualBandit",
    "Corridor",
    "Decoy",
    "DeepSea",
    "Distance",
    "FrozenLake",
    "ICUSepsis",
    "LinearWorld",
    "LongDecoy",
    "LowerBound",
    "NoisyRoom",
    "ReducedSepsis",
    "RiverSwim",
    "SoftmaxWorld",
    "TreatmentTrial",
    "World",
    "WorldEnv",
    "cart_pole",
    "distance_to_class",
    "mountain_car",
    "register_gymnasium",
]

LATE = {
    "cart_pole": "omg_lab.worlds.gymnasium.control",
    "mountain_car": "omg_lab.worlds.gymnasium.control",
    "WorldEnv": "omg_lab.worlds.gymnasium.registered",
    "register_gymnasium": "omg_lab.worlds.gymnasium.registered",
}
"""Names that need Gymnasium, imported on first use."""


def __getattr__(name: str) -> Any:
    if name not in LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(LATE[name]), name)
