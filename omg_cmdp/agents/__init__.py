"""OMG-CMDP!, its exploration rules, baselines and rivals."""

from omg_cmdp.agents.base import Agent
from omg_cmdp.agents.baselines.boltzmann import Boltzmann
from omg_cmdp.agents.baselines.epsilon_greedy import EpsilonGreedy
from omg_cmdp.agents.baselines.greedy import Greedy
from omg_cmdp.agents.baselines.informed import Informed
from omg_cmdp.agents.baselines.posterior_sampling import PosteriorSampling
from omg_cmdp.agents.baselines.uniform import Uniform
from omg_cmdp.agents.counterfactual.opo_cmdp import OPOCMDP
from omg_cmdp.agents.counterfactual.rm_ucdd import RMUCDD
from omg_cmdp.agents.counterfactual.uc3rl import UC3RL
from omg_cmdp.agents.exploration import (
    Anytime,
    ExplorationRule,
    GainWeighted,
    Power,
    Schedule,
    Situation,
    Theory,
    UncertaintyWeighted,
)
from omg_cmdp.agents.omg import OMG
from omg_cmdp.agents.rivals.bandits import FALCON, FastCB, NormalisedIGW, SquareCB
from omg_cmdp.agents.rivals.covers import Blind, Clusters, Cover, PerBall, PerContext
from omg_cmdp.agents.rivals.epochs import EpochGamma, epoch_omg, epoch_pc_igw
from omg_cmdp.agents.rivals.erm_reduction import ERMReduction
from omg_cmdp.agents.rivals.feel_good import FeelGoodThompson
from omg_cmdp.agents.rivals.glm import GLMORL, GLMRLSVI
from omg_cmdp.agents.rivals.local_igw import LocalIGW
from omg_cmdp.agents.rivals.lolipop import LOLIPOP
from omg_cmdp.agents.rivals.occupancy_entropy import OccupancyEntropy
from omg_cmdp.agents.rivals.pc_igw import PCIGW
from omg_cmdp.agents.rivals.ucbvi import UCBVI
from omg_cmdp.planning.decision import Decision, Mixture

__all__ = [
    "FALCON",
    "GLMORL",
    "GLMRLSVI",
    "LOLIPOP",
    "OMG",
    "OPOCMDP",
    "PCIGW",
    "RMUCDD",
    "UC3RL",
    "UCBVI",
    "Agent",
    "Anytime",
    "Blind",
    "Boltzmann",
    "Clusters",
    "Cover",
    "Decision",
    "ERMReduction",
    "EpochGamma",
    "EpsilonGreedy",
    "ExplorationRule",
    "FastCB",
    "FeelGoodThompson",
    "GainWeighted",
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
    "Schedule",
    "Situation",
    "SquareCB",
    "Theory",
    "UncertaintyWeighted",
    "Uniform",
    "epoch_omg",
    "epoch_pc_igw",
]
