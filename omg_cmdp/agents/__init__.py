"""OMG-CMDP! and its rivals."""

from omg_cmdp.agents.base import Agent, Decision, Mixture
from omg_cmdp.agents.gamma import Adaptive, Anytime, Barrier, Fixed, Gamma, Situation, Theory
from omg_cmdp.agents.greedy import Greedy
from omg_cmdp.agents.omg import OMG
from omg_cmdp.agents.posterior_sampling import PosteriorSampling

__all__ = [
    "OMG",
    "Adaptive",
    "Agent",
    "Anytime",
    "Barrier",
    "Decision",
    "Fixed",
    "Gamma",
    "Greedy",
    "Mixture",
    "PosteriorSampling",
    "Situation",
    "Theory",
]
