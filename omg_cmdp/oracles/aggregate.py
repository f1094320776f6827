"""Several oracles of different kinds as one, so that nobody need choose the class: Vovk's algorithm over experts.

The aggregate's loss exceeds that of the best of K oracles by at most (H/η)·log K, frozen predictions included, for
square loss η = 2 and for log loss η = 1. Oracles without a bound of their own, such as adapted ones, are welcome.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.base import DynamicsOracle, Oracle, RewardOracle, State
from omg_cmdp.oracles.forecasters import DynamicsForecasters, Forecasters, RewardForecasters
from omg_cmdp.oracles.games import Episode, exponential_weights
from omg_cmdp.validation import FloatArray, positive_integer


class _Aggregate(Forecasters):
    """Forecasters that are whole oracles."""

    kind: type[Oracle]

    def __init__(self, oracles: Sequence[Any], *, horizon: int) -> None:
        self.oracles = checked_oracles(oracles, self.kind, horizon)
        super().__init__(horizon, len(self.oracles))

    def _prepare(self, context: Context) -> Context:
        return context

    def _forecasts(self, context: Context) -> FloatArray:
        return stacked([oracle.predict(context) for oracle in self.oracles])

    def _learn(self, context: Context, episode: Episode) -> None:
        for oracle in self.oracles:
            oracle.update(context, episode.states, episode.actions, episode.outcomes)

    def _expected_divergence(self, context: Context, prediction: FloatArray) -> FloatArray:
        """Return Σ w·(u + divergence from the expert to the aggregate), w at the textbook's rate."""
        weights = exponential_weights(self._losses, self.game.rate)
        experts = np.stack([oracle.uncertainty(context) for oracle in self.oracles])
        moved = self.game.divergence(self._forecasts(context), prediction)
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

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state of all oracles, each behind its number, and the account of the aggregate."""
        return {**super().state(), **joint_state(self.oracles)}

    def restore(self, state: State) -> None:
        """Restore all oracles and the account, or nothing."""
        own = {name: state[name] for name in state if "/" not in name}
        before = super().state()
        super().restore(own)
        try:
            restore_all(self.oracles, state)
        except ValueError:
            super().restore(before)
            raise


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


def checked_oracles(oracles: Sequence[Any], kind: type[Oracle], horizon: int) -> list[Any]:
    """Return the list of `oracles`: at least one, all of `kind`, none twice, all for episodes of `horizon` steps."""
    found = list(oracles)
    if not found or not all(isinstance(oracle, kind) for oracle in found):
        names = [type(oracle).__name__ for oracle in found]
        raise ValueError(f"`oracles` must be at least one {kind.__name__}, got {names}")
    if len({id(oracle) for oracle in found}) < len(found):
        raise ValueError("`oracles` must be different objects, got one of them twice")
    horizons = [getattr(oracle, "horizon", horizon) for oracle in found]
    if any(other != horizon for other in horizons):
        raise ValueError(f"`oracles` must have horizon {horizon}, got {horizons}")
    return found


def stacked(tables: Sequence[FloatArray]) -> FloatArray:
    """Return the predictions as one array, all of one shape."""
    shapes = [np.shape(table) for table in tables]
    if len(set(shapes)) > 1:
        raise ValueError(f"`oracles` must predict tables of one shape, got {shapes}")
    return np.stack(tables)


def joint_state(oracles: Sequence[Oracle]) -> dict[str, NDArray[Any]]:
    """Return the states of all `oracles` in one mapping: "0/loss", "1/loss", ..."""
    return {f"{i}/{name}": array for i, oracle in enumerate(oracles) for name, array in oracle.state().items()}


def restore_all(oracles: Sequence[Oracle], state: State) -> None:
    """Undo `joint_state`; if one of the oracles refuses, all stay as they were."""
    before = joint_state(oracles)
    try:
        _restore_each(oracles, state)
    except ValueError:
        _restore_each(oracles, before)
        raise


def _restore_each(oracles: Sequence[Oracle], state: State) -> None:
    for i, oracle in enumerate(oracles):
        prefix = f"{i}/"
        oracle.restore({name.removeprefix(prefix): state[name] for name in state if name.startswith(prefix)})
