"""Several oracles as one, where the class of the truth is not known: Vovk's algorithm over experts.

The aggregate's loss exceeds that of the best of K oracles by at most (H/η)·log K, frozen predictions included, for
square loss η = 2 and for log loss η = 1. Oracles without a bound of their own, such as adapters, may take part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.combined.composite import Composite, checked_oracles
from omg_cmdp.oracles.draws import Streams, resample
from omg_cmdp.oracles.frame import DynamicsFrame, RewardFrame
from omg_cmdp.oracles.losses import LOG, SQUARE, Examples, Loss, exponential_weights
from omg_cmdp.validation import FloatArray


class _Aggregate(Composite):
    """Forecasters that are whole oracles."""

    def __init__(self, oracles: Sequence[Any], loss: Loss, horizon: int) -> None:
        experts = checked_oracles(oracles, loss)
        super().__init__(experts, loss, horizon, count=len(experts))

    def forecasts(self, context: Context) -> FloatArray:
        return self.predictions(context)

    def learn(self, context: Context, episode: Examples) -> None:
        self.teach([(oracle, episode) for oracle in self.oracles], context)

    def draws(self, context: Context, streams: Streams) -> FloatArray:
        """Return draws of the experts, each expert's share of them being its weight at the textbook's rate."""
        experts = resample(exponential_weights(self.account.losses, self.loss.rate), streams)
        drawn = np.empty((streams.count, *self.predictions(context).shape[1:]))
        for i in np.unique(experts).tolist():
            drawn[experts == i] = self.oracles[i].draws_from(context, streams.of(i))[experts == i]
        return drawn

    def expected_divergence(self, context: Context, prediction: FloatArray) -> FloatArray:
        """Return Σ w·(u + divergence from the expert to the aggregate), w at the textbook's rate."""
        weights = exponential_weights(self.account.losses, self.loss.rate)
        experts = np.stack([oracle.uncertainty(context) for oracle in self.oracles])
        # Experts may be certain and disagree: that is uncertainty too.
        moved = self.loss.divergence(self.predictions(context), prediction)
        return np.asarray(np.tensordot(weights, experts + moved, axes=1))

    def _comparators(self) -> list[Any]:
        """Return the oracles that have a bound: the aggregate is proven against their classes. All, if none has one."""
        # A foreign model has no class to compare with: it may help, but not be a comparator.
        proven = [oracle for oracle in self.oracles if oracle.regret_bound(1, self.horizon) < math.inf]
        return proven or self.oracles

    def best_loss(self) -> float:
        """Return the best loss of the classes that have a bound; nan if one of them is not known."""
        return float(np.min([oracle.best_loss() for oracle in self._comparators()]))

    def bound(self, episodes: int, horizon: int) -> float:
        """Return the largest finite bound of the K oracles."""
        # The aggregate follows whichever class is best, and pays at most for the dearest.
        return float(max(oracle.regret_bound(episodes, horizon) for oracle in self._comparators()))


@final
class AggregateRewards(RewardFrame[_Aggregate]):
    """Several reward oracles aggregated into one that is nearly as good as the best of them.

    The regret against the best of K oracles is at most (H/2)·log K, whatever happens.

    Parameters
    ----------
    oracles : sequence of RewardOracle
        The experts, at least one and all different objects. They learn every episode and must not be updated by others.
    horizon : int
        The number of steps of an episode, H; the horizon of every expert.

    Examples
    --------
    >>> from omg_cmdp.oracles import CountRewards, KnownRewards
    >>> experts = [KnownRewards([[0.9]], horizon=1), CountRewards(states=1, actions=1, horizon=1)]
    >>> oracle = AggregateRewards(experts, horizon=1)
    >>> for _ in range(100):
    ...     oracle.update("any", states=[0], actions=[0], rewards=[0.2])  # the simulator is wrong
    >>> oracle.predict("any").round(2)
    array([[0.21]])

    References
    ----------
    V. Vovk, *Aggregating strategies*, COLT 1990; docs/oracles.md, Theorem 1.
    """

    def __init__(self, oracles: Sequence[RewardOracle], *, horizon: int) -> None:
        super().__init__(_Aggregate(oracles, SQUARE, horizon))


@final
class AggregateDynamics(DynamicsFrame[_Aggregate]):
    """Several dynamics oracles aggregated into one that is nearly as good as the best of them.

    The regret against the best of K oracles is at most H·log K, whatever happens.

    Parameters
    ----------
    oracles : sequence of DynamicsOracle
        The experts, at least one and all different objects. They learn every episode and must not be updated by others.
    horizon : int
        The number of steps of an episode, H; the horizon of every expert.

    Examples
    --------
    >>> from omg_cmdp.oracles import CountDynamics, KnownDynamics
    >>> simulator = KnownDynamics([[[0.9, 0.1]], [[0.0, 1.0]]], horizon=1)
    >>> oracle = AggregateDynamics([simulator, CountDynamics(states=2, actions=1, horizon=1)], horizon=1)
    >>> for _ in range(100):
    ...     oracle.update("any", states=[0], actions=[0], next_states=[0])
    >>> oracle.predict("any")[0].round(2)  # the counts have found out
    array([[1., 0.]])

    References
    ----------
    V. Vovk, *Aggregating strategies*, COLT 1990; docs/oracles.md, Theorem 1.
    """

    def __init__(self, oracles: Sequence[DynamicsOracle], *, horizon: int) -> None:
        super().__init__(_Aggregate(oracles, LOG, horizon))
