"""Worlds: contextual MDPs whose truth is known, so that regret is computed and not estimated."""

from omg_cmdp.environments.bandit import ContextualBandit
from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.environments.decoy import Decoy
from omg_cmdp.environments.linear import LinearWorld
from omg_cmdp.environments.lock import CombinationLock
from omg_cmdp.environments.lower_bound import LowerBound
from omg_cmdp.environments.misspecification import Distance, distance_to_class
from omg_cmdp.environments.softmax import SoftmaxWorld
from omg_cmdp.environments.treatment import TreatmentTrial
from omg_cmdp.environments.world import World

__all__ = [
    "CombinationLock",
    "ContextualBandit",
    "ContextualMDP",
    "Decoy",
    "Distance",
    "LinearWorld",
    "LowerBound",
    "SoftmaxWorld",
    "TreatmentTrial",
    "World",
    "distance_to_class",
]
