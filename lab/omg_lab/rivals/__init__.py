"""Agents of other papers, one file each."""

from omg_lab.rivals.bandits.ada_cb import AdaCB
from omg_lab.rivals.bandits.eliminating_square_cb import EliminatingSquareCB
from omg_lab.rivals.bandits.epoch_greedy import EpochGreedy
from omg_lab.rivals.bandits.iltcb import ILTCB
from omg_lab.rivals.bandits.inverse_gap import FALCON, FastCB, NormalisedIGW, SquareCB
from omg_lab.rivals.bandits.lin_med import LinMED
from omg_lab.rivals.bandits.online_cover import OnlineCover
from omg_lab.rivals.bandits.reg_cb import RegCB
from omg_lab.rivals.bandits.regressor_elimination import RegressorElimination
from omg_lab.rivals.bandits.uccb import UCCB
from omg_lab.rivals.boltzmann import Boltzmann
from omg_lab.rivals.counterfactual.rm_ucdd import RMUCDD
from omg_lab.rivals.counterfactual.uc3rl import UC3RL
from omg_lab.rivals.covers import Blind, Cover, PerBall, PerCentre, PerContext
from omg_lab.rivals.epochs import EpochGamma, epoch_omg, epoch_pc_igw
from omg_lab.rivals.erm_reduction import ERMReduction
from omg_lab.rivals.feel_good import FeelGoodThompson
from omg_lab.rivals.glm import GLMORL, GLMRLSVI
from omg_lab.rivals.information.regularised_ids import RegularisedIDS
from omg_lab.rivals.information.rlsvi import RLSVI
from omg_lab.rivals.information.vids import VIDS
from omg_lab.rivals.local_igw import LocalIGW
from omg_lab.rivals.occupancy_entropy import OccupancyEntropy
from omg_lab.rivals.pac.cover_rmax import CoverRmax
from omg_lab.rivals.pac.kwik_rmax import KWIKRmax
from omg_lab.rivals.pac.olive import OLIVE
from omg_lab.rivals.pac.witness import WitnessRank
from omg_lab.rivals.pc_igw import PCIGW
from omg_lab.rivals.ucbvi import UCBVI, UCBVIBF

__all__ = [
    "FALCON",
    "GLMORL",
    "GLMRLSVI",
    "ILTCB",
    "OLIVE",
    "PCIGW",
    "RLSVI",
    "RMUCDD",
    "UC3RL",
    "UCBVI",
    "UCBVIBF",
    "UCCB",
    "VIDS",
    "AdaCB",
    "Blind",
    "Boltzmann",
    "Cover",
    "CoverRmax",
    "ERMReduction",
    "EliminatingSquareCB",
    "EpochGamma",
    "EpochGreedy",
    "FastCB",
    "FeelGoodThompson",
    "KWIKRmax",
    "LinMED",
    "LocalIGW",
    "NormalisedIGW",
    "OccupancyEntropy",
    "OnlineCover",
    "PerBall",
    "PerCentre",
    "PerContext",
    "RegCB",
    "RegressorElimination",
    "RegularisedIDS",
    "SquareCB",
    "WitnessRank",
    "epoch_omg",
    "epoch_pc_igw",
]
