"""Step-dependent models: one oracle per step, each of which sees one example an episode.

Tables become (H, S, A) or (H, S, A, S). Nothing is frozen any more, so that each oracle runs at the textbook's rate and
the regret is the sum of H textbook bounds for T examples each: the same H·bound(T) as for one tempered oracle.
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
from omg_cmdp.oracles.losses import Episode
from omg_cmdp.validation import FloatArray, positive_integer


class _Stepwise(Composite):
    """One forecaster, made of H oracles with horizon 1."""

    def __init__(self, oracles: Sequence[Any]) -> None:
        steps = list(oracles)
        super().__init__(steps, horizon=max(1, len(steps)), part_horizon=1, count=1)

    def _forecasts(self, context: Context) -> FloatArray:
        tables = self._predictions(context)
        if len(self.game.pairs(tables.shape)) != 3:
            raise ValueError(f"`oracles` must predict tables without steps, got shape {tables.shape[1:]}")
        return tables[None]

    def _learn(self, context: Context, episode: Episode) -> None:
        for step, oracle in enumerate(self.oracles):
            here = slice(step, step + 1)
            oracle.update(context, episode.states[here], episode.actions[here], episode.outcomes[here])

    def _expected_divergence(self, context: Context, prediction: FloatArray) -> FloatArray:
        return np.stack([oracle.uncertainty(context) for oracle in self.oracles])

    def best_loss(self) -> float:
        """Return the sum over the steps."""
        return float(sum(oracle.best_loss() for oracle in self.oracles))

    def regret_bound(self, episodes: int, horizon: int) -> float:
        """Return the sum over the steps."""
        if positive_integer("horizon", horizon) > self.horizon:
            return math.inf
        return float(sum(oracle.regret_bound(episodes, 1) for oracle in self.oracles[:horizon]))


@final
class StepwiseRewards(_Stepwise, RewardForecasters):
    """Reward oracles, one per step, each made with `horizon=1`.

    >>> from omg_cmdp.oracles import CountRewards
    >>> oracle = StepwiseRewards([CountRewards(states=1, actions=2, horizon=1) for _ in range(3)])
    >>> oracle.predict("any").shape
    (3, 1, 2)
    """

    kind = RewardOracle


@final
class StepwiseDynamics(_Stepwise, DynamicsForecasters):
    """Dynamics oracles, one per step, each made with `horizon=1`."""

    kind = DynamicsOracle
