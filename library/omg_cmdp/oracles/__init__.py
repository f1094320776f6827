"""Online regression oracles: square loss for rewards, log loss for dynamics, each with its theorem."""

from omg_cmdp.oracles.adapters import RefittedDynamics as RefittedDynamics
from omg_cmdp.oracles.adapters import RefittedRewards as RefittedRewards
from omg_cmdp.oracles.base import DynamicsOracle as DynamicsOracle
from omg_cmdp.oracles.base import RewardOracle as RewardOracle
from omg_cmdp.oracles.basis import BasisDynamics as BasisDynamics
from omg_cmdp.oracles.combined.aggregate import AggregateDynamics as AggregateDynamics
from omg_cmdp.oracles.combined.aggregate import AggregateRewards as AggregateRewards
from omg_cmdp.oracles.combined.copies import CopiesDynamics as CopiesDynamics
from omg_cmdp.oracles.combined.copies import CopiesRewards as CopiesRewards
from omg_cmdp.oracles.combined.epochs import EpochRewards as EpochRewards
from omg_cmdp.oracles.combined.stepwise import StepwiseDynamics as StepwiseDynamics
from omg_cmdp.oracles.combined.stepwise import StepwiseRewards as StepwiseRewards
from omg_cmdp.oracles.counts.dynamics import CountDynamics as CountDynamics
from omg_cmdp.oracles.counts.rewards import CountRewards as CountRewards
from omg_cmdp.oracles.feature_map import FeatureMap as FeatureMap
from omg_cmdp.oracles.finite.aggregating import FiniteDynamics as FiniteDynamics
from omg_cmdp.oracles.finite.aggregating import FiniteRewards as FiniteRewards
from omg_cmdp.oracles.finite.known import KnownDynamics as KnownDynamics
from omg_cmdp.oracles.finite.known import KnownRewards as KnownRewards
from omg_cmdp.oracles.finite.log_loss import LogLossRewards as LogLossRewards
from omg_cmdp.oracles.finite.offline import Offline as Offline
from omg_cmdp.oracles.finite.offline import OfflineFiniteDynamics as OfflineFiniteDynamics
from omg_cmdp.oracles.finite.offline import OfflineFiniteRewards as OfflineFiniteRewards
from omg_cmdp.oracles.finite.offline import OfflineLeastSquaresDynamics as OfflineLeastSquaresDynamics
from omg_cmdp.oracles.finite.product import ProductRewards as ProductRewards
from omg_cmdp.oracles.linear.rewards import LinearRewards as LinearRewards
from omg_cmdp.oracles.softmax import SoftmaxDynamics as SoftmaxDynamics

__all__ = sorted(name for name, each in vars().items() if not name.startswith("_") and callable(each))
