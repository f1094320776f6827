"""Agents of other papers, one file each. A new one needs its import here; CONTRIBUTING.md has the rest."""

from omg_lab.rivals.bandits.ada_cb import AdaCB as AdaCB
from omg_lab.rivals.bandits.epoch_greedy import EpochGreedy as EpochGreedy
from omg_lab.rivals.bandits.iltcb import ILTCB as ILTCB
from omg_lab.rivals.bandits.inverse_gap import FALCON as FALCON
from omg_lab.rivals.bandits.inverse_gap import FastCB as FastCB
from omg_lab.rivals.bandits.inverse_gap import SquareCB as SquareCB
from omg_lab.rivals.bandits.lin_med import LinMED as LinMED
from omg_lab.rivals.bandits.reg_cb import RegCB as RegCB
from omg_lab.rivals.bandits.regressor_elimination import RegressorElimination as RegressorElimination
from omg_lab.rivals.bandits.uccb import UCCB as UCCB
from omg_lab.rivals.boltzmann import Boltzmann as Boltzmann
from omg_lab.rivals.budgets.clipped import Clipped as Clipped
from omg_lab.rivals.budgets.lagrangian import LagrangianGreedy as LagrangianGreedy
from omg_lab.rivals.budgets.opt_cmdp import OptCMDP as OptCMDP
from omg_lab.rivals.budgets.opt_cmdp import OptPess as OptPess
from omg_lab.rivals.budgets.primal_dual import OptPrimalDual as OptPrimalDual
from omg_lab.rivals.counterfactual.rm_ucdd import RMUCDD as RMUCDD
from omg_lab.rivals.counterfactual.uc3rl import UC3RL as UC3RL
from omg_lab.rivals.covers import Blind as Blind
from omg_lab.rivals.covers import Cover as Cover
from omg_lab.rivals.covers import PerBall as PerBall
from omg_lab.rivals.covers import PerContext as PerContext
from omg_lab.rivals.erm_reduction import ERMReduction as ERMReduction
from omg_lab.rivals.feel_good import FeelGoodThompson as FeelGoodThompson
from omg_lab.rivals.glm import GLMORL as GLMORL
from omg_lab.rivals.glm import GLMRLSVI as GLMRLSVI
from omg_lab.rivals.information.regularised_ids import RegularisedIDS as RegularisedIDS
from omg_lab.rivals.information.rlsvi import RLSVI as RLSVI
from omg_lab.rivals.information.vids import VIDS as VIDS
from omg_lab.rivals.mvp import MVP as MVP
from omg_lab.rivals.occupancy_entropy import OccupancyEntropy as OccupancyEntropy
from omg_lab.rivals.pac.cover_rmax import CoverRmax as CoverRmax
from omg_lab.rivals.pac.kwik_rmax import KWIKRmax as KWIKRmax
from omg_lab.rivals.pac.olive import OLIVE as OLIVE
from omg_lab.rivals.pac.witness import WitnessRank as WitnessRank
from omg_lab.rivals.pc_igw import PCIGW as PCIGW
from omg_lab.rivals.ucbvi import UCBVI as UCBVI
from omg_lab.rivals.ucbvi import UCBVIBF as UCBVIBF

__all__ = sorted(name for name, each in vars().items() if not name.startswith("_") and callable(each))
