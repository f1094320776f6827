"""Several oracles of different kinds as one, so that nobody need choose the class: Vovk's algorithm over experts.

The aggregate's loss exceeds that of the best of K oracles by at most (H/η)·log K, frozen predictions included, for
square loss η = 2 and for log loss η = 1. Oracles without a bound of their own, such as adapted ones, are welcome.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.combined.composite import Composite
from omg_cmdp.oracles.frame import DynamicsForecasters, RewardForecasters
from omg_cmdp.oracles.losses import Episode, exponential_weights
from omg_cmdp.validation import FloatArray, positive_integer


class _Aggregate(Composite):
    """Forecasters that are whole oracles."""

    def __init__(self, oracles: Sequence[Any], *, horizon: int) -> None:
        experts = list(oracles)
        super().__init__(experts, horizon=horizon, part_horizon=horizon, count=len(experts))

    def _forecasts(self, context: Context) -> FloatArray:
        return self._predictions(context)

    def _learn(self, context: Context, episode: Episode) -> None:
        for oracle in self.oracles:
            oracle.update(context, episode.states, episode.actions, episode.outcomes)

    def _expected_divergence(self, context: Context, prediction: FloatArray) -> FloatArray:
        """Return Σ w·(u + divergence from the expert to the aggregate), w at the textbook's rate."""
        weights = exponential_weights(self._losses, self.game.rate)
        experts = np.stack([oracle.uncertainty(context) for oracle in self.oracles])
        moved = self.game.divergence(self._predictions(context), prediction)
        return np.asarray(np.tensordot(weights, experts + moved, axes=1))

    def _comparators(self) -> list[Any]:
        """Return the oracles that have a bound, whose classes the aggregate is proven against; all, if none has."""
        proven = [oracle for oracle in self.oracles if oracle.regret_bound(1, self.horizon) < math.inf]
        return proven or self.oracles

    def best_loss(self) -> float:
        """Return the best loss of the classes that have a bound; nan if one of them cannot tell."""
        return float(np.min([oracle.best_loss() for oracle in self._comparators()]))

    def regret_bound(self, episodes: int, horizon: int) -> float:
        """Return (H/η)·log K plus the largest finite bound of the K oracles."""
        if positive_integer("horizon", horizon) > self.horizon:
            return math.inf
        return self._guard_price() + float(max(o.regret_bound(episodes, horizon) for o in self._comparators()))


@final
class AggregateRewards(_Aggregate, RewardForecasters):
    """The aggregate of reward oracles.

    >>> from omg_cmdp.oracles import CountRewards, KnownRewards
    >>> experts = [KnownRewards([[0.9]], horizon=1), CountRewards(states=1, actions=1, horizon=1)]
    >>> oracle = AggregateRewards(experts, horizon=1)
    >>> for _ in range(100):
    ...     oracle.update("any", states=[0], actions=[0], rewards=[0.2])  # the simulator is wrong
    >>> oracle.predict("any").round(2)
    array([[0.21]])
    """

    kind = RewardOracle


@final
class AggregateDynamics(_Aggregate, DynamicsForecasters):
    """The aggregate of dynamics oracles."""

    kind = DynamicsOracle
