"""OMG-CMDP!, its exploration rules, and the baselines that give the scale."""

from omg_cmdp.agents.agent import Agent
from omg_cmdp.agents.baselines.epsilon_greedy import EpsilonGreedy
from omg_cmdp.agents.baselines.greedy import Greedy
from omg_cmdp.agents.baselines.informed import Informed
from omg_cmdp.agents.baselines.posterior_sampling import PosteriorSampling
from omg_cmdp.agents.baselines.uniform import Uniform
from omg_cmdp.agents.exploration.accounted import Accounted
from omg_cmdp.agents.exploration.base import ExplorationRule, Situation
from omg_cmdp.agents.exploration.gain import GainWeighted
from omg_cmdp.agents.exploration.schedules import Power, Schedule
from omg_cmdp.agents.exploration.theorems import Anytime, Theory
from omg_cmdp.agents.exploration.uncertainty import UncertaintyWeighted
from omg_cmdp.agents.omg import OMG
from omg_cmdp.planning.decision import Decision, Mixture

__all__ = [
    "OMG",
    "Accounted",
    "Agent",
    "Anytime",
    "Decision",
    "EpsilonGreedy",
    "ExplorationRule",
    "GainWeighted",
    "Greedy",
    "Informed",
    "Mixture",
    "PosteriorSampling",
    "Power",
    "Schedule",
    "Situation",
    "Theory",
    "UncertaintyWeighted",
    "Uniform",
]
