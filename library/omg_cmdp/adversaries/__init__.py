"""Adversaries choose the context of every episode: in a fixed order, at random, or against the agent."""

from omg_cmdp.adversaries.base import Adversary, View
from omg_cmdp.adversaries.oblivious import IID, NeverTwice, Sequence, Sorted
from omg_cmdp.adversaries.worst_regret import WorstRegret

__all__ = ["IID", "Adversary", "NeverTwice", "Sequence", "Sorted", "View", "WorstRegret"]
