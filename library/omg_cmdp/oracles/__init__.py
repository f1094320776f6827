"""Online regression oracles: square loss for rewards, log loss for dynamics, each with its theorem."""

from omg_cmdp.oracles.adapters import RefittedDynamics, RefittedRewards
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.basis import BasisDynamics
from omg_cmdp.oracles.combined.aggregate import AggregateDynamics, AggregateRewards
from omg_cmdp.oracles.combined.copies import CopiesDynamics, CopiesRewards
from omg_cmdp.oracles.combined.epochs import EpochRewards
from omg_cmdp.oracles.combined.stepwise import StepwiseDynamics, StepwiseRewards
from omg_cmdp.oracles.counts.dynamics import CountDynamics
from omg_cmdp.oracles.counts.rewards import CountRewards
from omg_cmdp.oracles.feature_map import FeatureMap
from omg_cmdp.oracles.finite.aggregating import FiniteDynamics, FiniteRewards
from omg_cmdp.oracles.finite.known import KnownDynamics, KnownRewards
from omg_cmdp.oracles.finite.log_loss import LogLossRewards
from omg_cmdp.oracles.finite.offline import (
    Offline,
    OfflineFiniteDynamics,
    OfflineFiniteRewards,
    OfflineLeastSquaresDynamics,
)
from omg_cmdp.oracles.finite.product import ProductRewards
from omg_cmdp.oracles.linear.rewards import LinearRewards
from omg_cmdp.oracles.softmax import SoftmaxDynamics

__all__ = [
    "AggregateDynamics",
    "AggregateRewards",
    "BasisDynamics",
    "CopiesDynamics",
    "CopiesRewards",
    "CountDynamics",
    "CountRewards",
    "DynamicsOracle",
    "EpochRewards",
    "FeatureMap",
    "FiniteDynamics",
    "FiniteRewards",
    "KnownDynamics",
    "KnownRewards",
    "LinearRewards",
    "LogLossRewards",
    "Offline",
    "OfflineFiniteDynamics",
    "OfflineFiniteRewards",
    "OfflineLeastSquaresDynamics",
    "ProductRewards",
    "RefittedDynamics",
    "RefittedRewards",
    "RewardOracle",
    "SoftmaxDynamics",
    "StepwiseDynamics",
    "StepwiseRewards",
]
