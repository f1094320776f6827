"""OMG-CMDP! and its rivals."""

from omg_cmdp.agents.bandits import FALCON, FastCB, NormalisedIGW, SquareCB
from omg_cmdp.agents.base import Agent, Decision, Mixture
from omg_cmdp.agents.boltzmann import Boltzmann
from omg_cmdp.agents.covers import Blind, Clusters, Cover, PerBall, PerContext
from omg_cmdp.agents.entropy import OccupancyEntropy
from omg_cmdp.agents.epochs import EpochGamma, epoch_omg, epoch_pc_igw
from omg_cmdp.agents.epsilon_greedy import EpsilonGreedy
from omg_cmdp.agents.feel_good import FeelGoodThompson
from omg_cmdp.agents.gamma import Adaptive, Anytime, Barrier, Fixed, Gamma, Situation, Theory
from omg_cmdp.agents.glm import GLMORL, GLMRLSVI
from omg_cmdp.agents.greedy import Greedy
from omg_cmdp.agents.local_igw import LocalIGW
from omg_cmdp.agents.omg import OMG
from omg_cmdp.agents.oracle import Informed
from omg_cmdp.agents.pc_igw import PCIGW
from omg_cmdp.agents.posterior_sampling import PosteriorSampling
from omg_cmdp.agents.schedule import Power
from omg_cmdp.agents.uc3rl import UC3RL
from omg_cmdp.agents.ucbvi import UCBVI
from omg_cmdp.agents.uniform import Uniform

__all__ = [
    "FALCON",
    "GLMORL",
    "GLMRLSVI",
    "OMG",
    "PCIGW",
    "UC3RL",
    "UCBVI",
    "Adaptive",
    "Agent",
    "Anytime",
    "Barrier",
    "Blind",
    "Boltzmann",
    "Clusters",
    "Cover",
    "Decision",
    "EpochGamma",
    "EpsilonGreedy",
    "FastCB",
    "FeelGoodThompson",
    "Fixed",
    "Gamma",
    "Greedy",
    "Informed",
    "LocalIGW",
    "Mixture",
    "NormalisedIGW",
    "OccupancyEntropy",
    "PerBall",
    "PerContext",
    "PosteriorSampling",
    "Power",
    "Situation",
    "SquareCB",
    "Theory",
    "Uniform",
    "epoch_omg",
    "epoch_pc_igw",
]
