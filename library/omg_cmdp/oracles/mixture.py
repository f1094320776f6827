"""Mixtures of transitions: known parts with unknown weights, and unknown parts with known weights.

Both predict something linear in unknown points of simplices, under log loss; each has two forecasters.

*Proven*: follow the regularised leader with the log barrier (docs/oracles.md, Theorem 5). With r the gradient of the
episode's log likelihood, Σ log(P + ε), divided by H, w maximises Σ⟨r, w⟩ + (1/η)·Σ log w, no matter how small the
probabilities. With D coordinates for each of G groups, m <= 1 the share of an episode's steps that fall into a group,
M = Σm², and η = min(½, √(D/(1 + M))) the regret is at most, L = log(T + 1):

    H·G·[2DL + L·√(D(1 + T/G)) + 1.6·√(D·T/G)] + H

*Practical*, nothing proven: weighted least squares of the indicator of the next state, moved into the simplex.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.oracles.finite.function_class import FunctionClass, Functions, Predictions
from omg_cmdp.oracles.forecasters import Forecasters
from omg_cmdp.oracles.frame import DynamicsFrame
from omg_cmdp.oracles.losses import LOG, SMALLEST_PROBABILITY, Examples
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.oracles.simplex import (
    barrier_bound,
    barrier_leader,
    simplex_least_squares,
)
from omg_cmdp.persistence import State, numbers
from omg_cmdp.validation import FloatArray

RAREST = 1e-6
"""Least squares weighs a next state by one over its probability, or over this if that is larger."""


class _Mixture(Forecasters):
    """Weights of N known transition tables, by least squares and by the log barrier."""

    learned = ("gains", "information", "scores")
    takes_keyed = True
    rate: Rate

    def __init__(self, functions: FunctionClass, rate: Rate) -> None:
        super().__init__(rate.horizon, rate)
        self._functions = self.source = functions
        self.contexts, self.sizes = functions.contexts, functions.sizes
        self.gains, self.information, self.scores = np.zeros(0), np.zeros((0, 0)), np.zeros(0)

    def prepare(self, context: Context) -> Functions:
        functions = self._functions(context)
        if len(self.gains) not in (0, len(functions.tables)):
            wanted, got = len(self.gains), len(functions.tables)
            raise ValueError(f"`predictions` must hold {wanted} tables as before, got {got}")
        return functions

    def forecasts(self, functions: Functions) -> FloatArray:
        count = len(functions.tables)
        weights = np.stack(self.rate.choose(self._fitted(count), self._leader(count)))
        flat = functions.tables.reshape(count, -1)
        return np.asarray((weights @ flat).reshape(len(weights), *functions.shape))

    def _leader(self, count: int) -> FloatArray:
        """Return the weights of the regularised leader."""
        gains = self.gains if len(self.gains) else np.zeros(count)
        # The rate of Theorem 5 for one group, with M = T: each episode falls into it wholly.
        return barrier_leader(gains, min(0.5, math.sqrt(count / (1.0 + self.account.episodes))))

    def _fitted(self, count: int) -> FloatArray:
        """Return the least-squares weights, with half a pseudo-example for each table."""
        # Before the first context N is known from the question alone.
        if self.account.episodes == 0:
            return np.full(count, 1.0 / count)
        weights = simplex_least_squares(self.information + np.eye(count), self.scores + 1.0 / count)
        examples = self.account.examples
        return np.asarray((examples * weights + 0.5) / (examples + 0.5 * count))

    def learn(self, functions: Functions, episode: Examples) -> None:
        count = len(functions.tables)
        flat = functions.tables.reshape(count, -1)
        seen = flat.take(episode.cells, axis=1)
        fitted, leader = self._fitted(count), self._leader(count)
        rows = flat.reshape(count, -1, functions.shape[-1])[:, episode.pairs]
        # Weighted least squares: an indicator of probability p has variance about p.
        scaled = rows / np.maximum(np.tensordot(fitted, rows, axes=1), RAREST)
        information = np.tensordot(scaled, rows, axes=([1, 2], [1, 2]))
        scores = (seen / np.maximum(fitted @ seen, RAREST)).sum(axis=1)
        gains = (seen / (leader @ seen + SMALLEST_PROBABILITY)).sum(axis=1) / self.horizon
        # N is fixed by the first episode, and with it the shape of the sums.
        first = not len(self.gains)
        self.gains = gains if first else self.gains + gains
        self.information = information if first else self.information + information
        self.scores = scores if first else self.scores + scores

    def _covariance(self, count: int) -> FloatArray:
        """Return the least-squares covariance (N, N) of the weights, which sum to one.

        The prior is the covariance of weights that are uniform on the simplex, I/(N(N+1)) within it.
        """
        information = self.information if len(self.gains) else np.zeros((count, count))
        covariance = np.linalg.inv(information + count * (count + 1.0) * np.eye(count))
        # Conditioned on weights that sum to one: the direction (1, ..., 1) has no variance.
        total = covariance.sum(axis=0)
        return np.asarray(covariance - np.outer(total, total) / total.sum())

    def expected_divergence(self, functions: Functions, prediction: FloatArray) -> FloatArray:
        """Return ¼·Σ Var(P)/P by the least-squares covariance of the weights, and the distance of the fit from P̂."""
        count = len(functions.tables)
        flat = functions.tables.reshape(count, -1)
        fitted = self._fitted(count) @ flat
        variances = np.einsum("ic,ic->c", flat, self._covariance(count) @ flat)
        spread = 0.25 * (variances / np.maximum(fitted, RAREST)).reshape(functions.shape).sum(axis=-1)
        return np.asarray(np.minimum(spread + LOG.divergence(fitted.reshape(functions.shape), prediction), 2.0))

    def draws(self, functions: Functions, streams: Streams) -> FloatArray:
        """Return mixtures with normal weights around the least-squares fit, cut at zero."""
        size = len(functions.tables)
        spectrum, basis = np.linalg.eigh(self._covariance(size))
        root = np.sqrt(np.maximum(spectrum, 0.0)) * basis
        weights = np.maximum(self._fitted(size) + streams.normals(size) @ root.T, 0.0)
        weights /= weights.sum(axis=-1, keepdims=True)
        return np.asarray((weights @ functions.tables.reshape(size, -1)).reshape(-1, *functions.shape))

    def bound(self, episodes: int, horizon: int) -> float:
        """Return the bound of Theorem 5; nothing before the first context, when N is not known yet."""
        count = len(self.gains) or self._functions.size
        return math.inf if count is None else self.rate.frozen_bound(barrier_bound(episodes, 1, count))

    def load_state(self, state: State) -> None:
        """Load the sums; of an oracle that had learned nothing, none."""
        if numbers("gains", state, (None,)).size:
            super().load_state(state)
        else:
            self.gains, self.information, self.scores = np.zeros(0), np.zeros((0, 0)), np.zeros(0)

    def shape_of(self, name: str) -> tuple[int | None, ...]:
        size = self._functions.size
        return (size, size) if name == "information" else (size,)


@final
class MixtureDynamics(DynamicsFrame[_Mixture]):
    """A mixture of known transitions: P(s'|c, s, a) = Σ w_i·P_i(s'|c, s, a) with unknown weights w.

    The comparator is the best mixture, where `FiniteDynamics` has the best single function. Regret, L = log(T + 1):
    H·[2NL + L·√(N(1 + T)) + 1.6·√(N·T)] + H.

    Parameters
    ----------
    predictions : callable or mapping
        context -> (N, S, A, S) or (N, H, S, A, S), the tables P_i of all N parts. They must not change.
    horizon : int
        The largest number of steps of an episode, H.
    rate : {"guarded", "proven", "realizable"}, default "guarded"
        "proven" follows the regularised leader, "realizable" least squares without a bound; "guarded" aggregates both.

    Examples
    --------
    >>> tables = np.array([[[[1.0, 0.0]], [[0.0, 1.0]]], [[[0.0, 1.0]], [[0.0, 1.0]]]])  # state 0 lasts, or ends
    >>> oracle = MixtureDynamics(lambda context: tables, horizon=4)
    >>> for _ in range(200):
    ...     oracle.update("any", states=[0, 0, 0, 0], actions=[0, 0, 0, 0], next_states=[0, 0, 0, 1])
    >>> oracle.predict("any")[0].round(2)
    array([[0.74, 0.26]])

    References
    ----------
    docs/oracles.md, Theorem 5.
    """

    def __init__(self, predictions: Predictions, *, horizon: int, rate: str = "guarded") -> None:
        super().__init__(_Mixture(FunctionClass(predictions, LOG), Rate(rate, horizon)))
