"""Worlds: contextual MDPs whose truth is known, so that regret is computed, not estimated."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.environments.data.actg175 import ACTG175
from omg_cmdp.environments.data.classification import Classification
from omg_cmdp.environments.data.icu_sepsis import ICUSepsis
from omg_cmdp.environments.data.reduced_sepsis import ReducedSepsis
from omg_cmdp.environments.encoders.base import Encoder
from omg_cmdp.environments.encoders.bins import Bins
from omg_cmdp.environments.encoders.clusters import Clusters
from omg_cmdp.environments.encoders.leaves import Leaves
from omg_cmdp.environments.encoders.report import EncodingReport, encoding_report
from omg_cmdp.environments.encoders.steps import Steps
from omg_cmdp.environments.gymnasium.cliff_walking import CliffWalking
from omg_cmdp.environments.gymnasium.contextual_env import gymnasium_space
from omg_cmdp.environments.gymnasium.frozen_lake import FrozenLake
from omg_cmdp.environments.gymnasium.worlds import SampledWorld, TableWorld, from_gymnasium
from omg_cmdp.environments.misspecification import Distance, distance_to_class
from omg_cmdp.environments.world import World
from omg_cmdp.environments.worlds.arms import Arms
from omg_cmdp.environments.worlds.bandit import ContextualBandit
from omg_cmdp.environments.worlds.corridor import Corridor
from omg_cmdp.environments.worlds.decoy import Decoy
from omg_cmdp.environments.worlds.deep_sea import DeepSea
from omg_cmdp.environments.worlds.linear import LinearWorld
from omg_cmdp.environments.worlds.lock import CombinationLock
from omg_cmdp.environments.worlds.long_decoy import LongDecoy
from omg_cmdp.environments.worlds.lower_bound import LowerBound
from omg_cmdp.environments.worlds.noisy_room import NoisyRoom
from omg_cmdp.environments.worlds.river_swim import RiverSwim
from omg_cmdp.environments.worlds.softmax import SoftmaxWorld
from omg_cmdp.environments.worlds.treatment import TreatmentTrial

if TYPE_CHECKING:
    from omg_cmdp.environments.gymnasium.control import cart_pole, mountain_car
    from omg_cmdp.environments.gymnasium.discretise import Discretised, random_steps
    from omg_cmdp.environments.gymnasium.registered import WorldEnv, register_gymnasium

__all__ = [
    "ACTG175",
    "Arms",
    "Bins",
    "Classification",
    "CliffWalking",
    "Clusters",
    "CombinationLock",
    "ContextualBandit",
    "ContextualMDP",
    "Corridor",
    "Decoy",
    "DeepSea",
    "Discretised",
    "Distance",
    "Encoder",
    "EncodingReport",
    "FrozenLake",
    "ICUSepsis",
    "Leaves",
    "LinearWorld",
    "LongDecoy",
    "LowerBound",
    "NoisyRoom",
    "ReducedSepsis",
    "RiverSwim",
    "SampledWorld",
    "SoftmaxWorld",
    "Steps",
    "TableWorld",
    "TreatmentTrial",
    "World",
    "WorldEnv",
    "cart_pole",
    "distance_to_class",
    "encoding_report",
    "from_gymnasium",
    "gymnasium_space",
    "mountain_car",
    "random_steps",
    "register_gymnasium",
]

LATE = {
    "Discretised": "gymnasium.discretise",
    "WorldEnv": "gymnasium.registered",
    "cart_pole": "gymnasium.control",
    "mountain_car": "gymnasium.control",
    "random_steps": "gymnasium.discretise",
    "register_gymnasium": "gymnasium.registered",
}
"""What needs Gymnasium, and is imported when it is first used."""


def __getattr__(name: str) -> Any:
    if name not in LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{LATE[name]}"), name)
