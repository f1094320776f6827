"""Worlds: contextual MDPs whose truth is known, so that regret is computed, not estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omg_lab.data.actg175 import ACTG175 as ACTG175
from omg_lab.data.classification import Classification as Classification
from omg_lab.data.icu_sepsis import ICUSepsis as ICUSepsis
from omg_lab.data.reduced_sepsis import ReducedSepsis as ReducedSepsis
from omg_lab.worlds.arms import Arms as Arms
from omg_lab.worlds.bandit import ContextualBandit as ContextualBandit
from omg_lab.worlds.base import World as World
from omg_lab.worlds.budgeted.maintenance import Maintenance as Maintenance
from omg_lab.worlds.budgeted.reminders import Reminders as Reminders
from omg_lab.worlds.budgeted.side_effects import SideEffects as SideEffects
from omg_lab.worlds.corridor import Corridor as Corridor
from omg_lab.worlds.decoy import Decoy as Decoy
from omg_lab.worlds.deep_sea import DeepSea as DeepSea
from omg_lab.worlds.linear import LinearWorld as LinearWorld
from omg_lab.worlds.lock import CombinationLock as CombinationLock
from omg_lab.worlds.long_decoy import LongDecoy as LongDecoy
from omg_lab.worlds.lower_bound import LowerBound as LowerBound
from omg_lab.worlds.noisy_room import NoisyRoom as NoisyRoom
from omg_lab.worlds.river_swim import RiverSwim as RiverSwim
from omg_lab.worlds.softmax import SoftmaxWorld as SoftmaxWorld
from omg_lab.worlds.treatment import TreatmentTrial as TreatmentTrial

if TYPE_CHECKING:
    from omg_lab.worlds.gymnasium.environment import WorldEnv as WorldEnv

__all__ = sorted(["WorldEnv", *(name for name, each in vars().items() if callable(each))])


def __getattr__(name: str) -> object:
    if name != "WorldEnv":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from omg_lab.worlds.gymnasium.environment import WorldEnv  # on first use: it needs Gymnasium

    return WorldEnv
