"""A finite class of rewards judged by log loss: each function as the probability of a coin, not as a mean.

For a reward r in [0, 1] and a forecast f the loss is -r·log f - (1-r)·log(1-f). f^r·(1-f)^(1-r) is concave in f, so the
mean of the class, weighted by exp(-loss), has a log loss at most log N above that of the best function, whatever the
rewards; frozen for H steps, weights exp(-loss/H) and H·log N (as in docs/oracles.md, Theorem 1). Log loss punishes an
error near 0 and 1 more than in the middle: that is what first-order regret bounds, as FastCB's, ask for.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from omg_cmdp.jit import lazy
from omg_cmdp.oracles.finite import _Finite
from omg_cmdp.oracles.frame import RewardForecasters
from omg_cmdp.oracles.function_class import Functions, Predictions
from omg_cmdp.oracles.losses import LOG, SMALLEST_PROBABILITY, Episode
from omg_cmdp.validation import FloatArray

kernels = lazy("omg_cmdp.oracles.kernels.classes")


@final
class LogLossRewards(_Finite, RewardForecasters):
    """Rewards from a class of N functions, `predictions`: context -> (N, S, A) or (N, H, S, A), in [0, 1].

    `loss` is in squares, as for all reward oracles. For squares nothing is proven here: `regret_bound` is inf.

    >>> oracle = LogLossRewards({"c": np.array([[[0.5]], [[0.01]]])}, horizon=1)
    >>> oracle.update("c", states=[0], actions=[0], rewards=[1.0])
    >>> oracle.predict("c").round(2)  # weights 50 : 1
    array([[0.49]])
    """

    def __init__(self, predictions: Predictions, *, horizon: int) -> None:
        super().__init__(predictions, horizon, "proven")

    def _textbook_posterior(self, functions: Functions) -> FloatArray:
        return self._weights(functions, LOG.rate)

    def _weights(self, functions: Functions, rate: float) -> FloatArray:
        weights = np.empty(len(functions.tables))
        kernels.exponential_weights(self._losses_of(functions), rate, weights)
        return weights

    def _forecasts(self, functions: Functions) -> FloatArray:
        mean = functions.columns @ self._weights(functions, LOG.rate / self.horizon)
        return np.asarray(np.clip(mean, 0.0, 1.0).reshape(1, *functions.shape))

    def _learn(self, functions: Functions, episode: Episode) -> None:
        said, rewards = functions.columns[episode.cells].T, episode.outcomes  # (N, H) and (H,)
        successes, failures = (np.log(np.maximum(part, SMALLEST_PROBABILITY)) for part in (said, 1.0 - said))
        self._class_losses = self._losses_of(functions) - (successes @ rewards + failures @ (1.0 - rewards))

    def _expected_divergence(self, functions: Functions, prediction: FloatArray) -> FloatArray:
        """Return E(f - f̂)²."""
        squares = (functions.tables - prediction) ** 2
        return np.tensordot(self._textbook_posterior(functions), squares, axes=1)

    def best_loss(self) -> float:
        """Return nan: the class keeps no squares."""
        return math.nan

    def regret_bound(self, episodes: int, horizon: int) -> float:
        """Return inf: the bound H·log N is for log loss."""
        super().regret_bound(episodes, horizon)  # refuses what are no numbers of episodes and steps
        return math.inf
