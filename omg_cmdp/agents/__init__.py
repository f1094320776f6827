"""OMG-CMDP!, its exploration rules, baselines, bandits and rivals."""

from omg_cmdp.agents.bandits.ada_cb import AdaCB
from omg_cmdp.agents.bandits.eliminating_square_cb import EliminatingSquareCB
from omg_cmdp.agents.bandits.epoch_greedy import EpochGreedy
from omg_cmdp.agents.bandits.iltcb import ILTCB
from omg_cmdp.agents.bandits.inverse_gap import FALCON, FastCB, NormalisedIGW, SquareCB
from omg_cmdp.agents.bandits.lin_med import LinMED
from omg_cmdp.agents.bandits.online_cover import OnlineCover
from omg_cmdp.agents.bandits.opo_cmab import OPOCMAB
from omg_cmdp.agents.bandits.reg_cb import RegCB
from omg_cmdp.agents.bandits.regressor_elimination import RegressorElimination
from omg_cmdp.agents.bandits.uccb import UCCB
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
from omg_cmdp.agents.covers import Blind, Clusters, Cover, PerBall, PerContext
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
from omg_cmdp.agents.information.ensemble import BootstrappedEnsemble
from omg_cmdp.agents.information.mvp import MVP
from omg_cmdp.agents.information.regularised_ids import RegularisedIDS
from omg_cmdp.agents.information.rlsvi import RLSVI
from omg_cmdp.agents.information.ucbvi_bf import UCBVIBF
from omg_cmdp.agents.information.uncertainty_bellman import UncertaintyBellman
from omg_cmdp.agents.information.vids import VIDS
from omg_cmdp.agents.omg import OMG
from omg_cmdp.agents.pac.cover_rmax import CoverRmax
from omg_cmdp.agents.pac.kwik_rmax import KWIKRmax
from omg_cmdp.agents.pac.olive import OLIVE
from omg_cmdp.agents.pac.witness import WitnessRank
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
    "ILTCB",
    "LOLIPOP",
    "MVP",
    "OLIVE",
    "OMG",
    "OPOCMAB",
    "OPOCMDP",
    "PCIGW",
    "RLSVI",
    "RMUCDD",
    "UC3RL",
    "UCBVI",
    "UCBVIBF",
    "UCCB",
    "VIDS",
    "AdaCB",
    "Agent",
    "Anytime",
    "Blind",
    "Boltzmann",
    "BootstrappedEnsemble",
    "Clusters",
    "Cover",
    "CoverRmax",
    "Decision",
    "ERMReduction",
    "EliminatingSquareCB",
    "EpochGamma",
    "EpochGreedy",
    "EpsilonGreedy",
    "ExplorationRule",
    "FastCB",
    "FeelGoodThompson",
    "GainWeighted",
    "Greedy",
    "Informed",
    "KWIKRmax",
    "LinMED",
    "LocalIGW",
    "Mixture",
    "NormalisedIGW",
    "OccupancyEntropy",
    "OnlineCover",
    "PerBall",
    "PerContext",
    "PosteriorSampling",
    "Power",
    "RegCB",
    "RegressorElimination",
    "RegularisedIDS",
    "Schedule",
    "Situation",
    "SquareCB",
    "Theory",
    "UncertaintyBellman",
    "UncertaintyWeighted",
    "Uniform",
    "WitnessRank",
    "epoch_omg",
    "epoch_pc_igw",
]
