"""Mixtures of kernels: known kernels with unknown weights, and unknown kernels with known weights.

Both predict what is linear in unknown points of simplices, under log loss; each has two forecasters.

*Proven*: follow the regularised leader with the log barrier (docs/oracles.md, Theorem 5). With r the gradient of the
episode's log likelihood divided by H, w maximises Σ⟨r, w⟩ + (1/η)·Σ log w, no matter how small the probabilities. With
D coordinates for each of G groups, m <= 1 the share of an episode's steps that fall into a group, M = Σm², and
η = min(½, √(D/(1 + M))) the regret is at most, L = log(T + 1):

    H·G·[2DL + L·√(D(1 + T/G)) + 1.6·√(D·T/G)] + H

*Practical*, no constant claimed: weighted least squares of the indicator of the next state, moved into the simplex.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.features import FeatureMap, SimplexFeatures
from omg_cmdp.oracles.frame import DynamicsForecasters, Rated
from omg_cmdp.oracles.function_class import FunctionClass, Functions, Predictions
from omg_cmdp.oracles.losses import Episode, IntArray
from omg_cmdp.oracles.simplex import barrier_bound, barrier_leader, simplex_least_squares
from omg_cmdp.oracles.support import support_mask
from omg_cmdp.persistence import State, fingerprint
from omg_cmdp.validation import FloatArray, positive_integer

RAREST = 1e-6
"""Least squares weighs a next state by one over its probability, or over this if it is smaller."""


@final
class MixtureDynamics(Rated, DynamicsForecasters):
    """P(s'|c,s,a) = Σ w_i·P_i(s'|c,s,a): `predictions`, context -> (N, S, A, S), are known, the weights w are not.

    The comparator is the best mixture, where `FiniteDynamics` has the best single kernel.

    >>> kernels = np.array([[[[1.0, 0.0]], [[0.0, 1.0]]], [[[0.0, 1.0]], [[0.0, 1.0]]]])  # state 0 lasts, or ends
    >>> oracle = MixtureDynamics(lambda context: kernels, horizon=4)
    >>> for _ in range(200):
    ...     oracle.update("any", states=[0, 0, 0, 0], actions=[0, 0, 0, 0], next_states=[0, 0, 0, 1])
    >>> oracle.predict("any")[0].round(2)
    array([[0.74, 0.26]])
    """

    learned = ("gains", "information", "scores")

    def __init__(self, predictions: Predictions, *, horizon: int, rate: str = "guarded") -> None:
        super().__init__(horizon, rate)
        self._functions = FunctionClass(predictions, self.game)
        self._gains, self._information, self._scores = np.zeros(0), np.zeros((0, 0)), np.zeros(0)

    @property
    def contexts(self) -> tuple[Any, ...] | None:
        """The contexts of a mapping; None for a callable."""
        return self._functions.contexts

    def _prepare(self, context: Context) -> Functions:
        functions = self._functions(context)
        if len(self._gains) not in (0, len(functions.tables)):
            wanted, got = len(self._gains), len(functions.tables)
            raise ValueError(f"`predictions` must hold {wanted} kernels as before, got {got}")
        return functions

    def _forecasts(self, functions: Functions) -> FloatArray:
        count = len(functions.tables)
        both = {"realizable": [self._fitted(count)], "proven": [self._leader(count)]}
        weights = np.stack(both.get(self.rate, [self._fitted(count), self._leader(count)]))
        flat = functions.tables.reshape(count, -1)
        return np.asarray((weights @ flat).reshape(len(weights), *functions.shape))

    def _leader(self, count: int) -> FloatArray:
        """Return the weights of the regularised leader."""
        gains = self._gains if len(self._gains) else np.zeros(count)
        return barrier_leader(gains, min(0.5, math.sqrt(count / (1.0 + self.episodes))))

    def _fitted(self, count: int) -> FloatArray:
        """Return the least-squares weights, with half a pseudo-example for each kernel."""
        if self.episodes == 0:
            return np.full(count, 1.0 / count)
        weights = simplex_least_squares(self._information + np.eye(count), self._scores + 1.0 / count)
        examples = self.episodes * self.horizon
        return np.asarray((examples * weights + 0.5) / (examples + 0.5 * count))

    def _learn(self, functions: Functions, episode: Episode) -> None:
        count = len(functions.tables)
        flat = functions.tables.reshape(count, -1)
        seen = flat.take(episode.cells, axis=1)
        fitted, leader = self._fitted(count), self._leader(count)
        rows = flat.reshape(count, -1, functions.shape[-1])[:, episode.pairs]
        scaled = rows / np.maximum(np.tensordot(fitted, rows, axes=1), RAREST)
        information = np.tensordot(scaled, rows, axes=([1, 2], [1, 2]))
        scores = (seen / np.maximum(fitted @ seen, RAREST)).sum(axis=1)
        likelihoods = leader @ seen
        gains = np.divide(seen, likelihoods, out=np.zeros_like(seen), where=likelihoods > 0.0).mean(axis=1)
        first = not len(self._gains)
        self._gains = gains if first else self._gains + gains
        self._information = information if first else self._information + information
        self._scores = scores if first else self._scores + scores

    def _expected_divergence(self, functions: Functions, prediction: FloatArray) -> FloatArray:
        """Return ¼·Σ Var(P)/P by the least-squares covariance of the weights, and the distance of the fit from P̂."""
        count = len(functions.tables)
        flat = functions.tables.reshape(count, -1)
        information = self._information if len(self._gains) else np.zeros((count, count))
        covariance = np.linalg.inv(information + np.eye(count))
        total = covariance.sum(axis=0)
        covariance = covariance - np.outer(total, total) / total.sum()  # weights sum to one
        fitted = self._fitted(count) @ flat
        variances = np.einsum("ic,ic->c", flat, covariance @ flat)
        spread = 0.25 * (variances / np.maximum(fitted, RAREST)).reshape(functions.shape).sum(axis=-1)
        return np.asarray(np.minimum(spread + self.game.divergence(fitted.reshape(functions.shape), prediction), 2.0))

    def _textbook_bound(self, episodes: int) -> float:
        count = len(self._gains) or self._functions.size
        return math.inf if count is None else barrier_bound(episodes, groups=1, coordinates=count)

    def _learned_shape(self, name: str) -> tuple[int | None, ...]:
        size = self._functions.size
        return (size, size) if name == "information" else (size,)


@final
class BasisDynamics(Rated, DynamicsForecasters):
    """P(s'|c,s,a) = Σ c_i·P_i(s'|s,a): the context, or `features` of it, are weights of d unknown kernels.

    This is the linear CMDP of Modi and Tewari (2020), under log loss. `support` (S, A, S) says which transitions can
    happen.

    >>> oracle = BasisDynamics(states=2, actions=1, bases=2, horizon=1)
    >>> for _ in range(200):
    ...     oracle.update([1.0, 0.0], states=[0], actions=[0], next_states=[0])
    ...     oracle.update([0.0, 1.0], states=[0], actions=[0], next_states=[1])
    >>> oracle.predict([0.3, 0.7])[0].round(1)
    array([[0.3, 0.7]])
    """

    learned = ("gains", "shares", "information", "scores")

    def __init__(
        self,
        *,
        states: int,
        actions: int,
        bases: int,
        horizon: int,
        features: FeatureMap | None = None,
        rate: str = "guarded",
        support: ArrayLike | None = None,
    ) -> None:
        super().__init__(horizon, rate)
        self.shape = (positive_integer("states", states), positive_integer("actions", actions), int(states))
        self.bases = positive_integer("bases", bases)
        self._features = SimplexFeatures(features, (self.bases,), norm=1.0)
        self._support = support_mask(support, *self.shape[:2]).reshape(-1, self.shape[2])
        self._uniform = self._support / self._support.sum(axis=-1, keepdims=True)
        groups, successors = self._support.shape
        self._coordinates = self.bases * int(self._support.sum(axis=-1).max())
        self._gains = np.zeros((groups, self.bases, successors))
        self._shares = np.zeros(groups)
        self._information = np.zeros((groups, self.bases, self.bases))
        self._scores = np.zeros((groups, self.bases, successors))
        self._leaders, self._fits = np.empty((2, groups, self.bases, successors))
        self._covariances = np.empty((groups, self.bases, self.bases))
        self._solve(np.arange(groups, dtype=np.int64))

    def _prepare(self, context: Context) -> FloatArray:
        return np.asarray(self._features(context)[0])

    def _forecasts(self, weights: FloatArray) -> FloatArray:
        tables = {"realizable": [self._fitted(weights)], "proven": [self._leading(weights)]}
        both = tables.get(self.rate, [*tables["realizable"], *tables["proven"]])
        return np.stack(both).reshape(len(both), *self.shape)

    def _leading(self, weights: FloatArray) -> FloatArray:
        return np.asarray(weights @ self._leaders)

    def _fitted(self, weights: FloatArray) -> FloatArray:
        """Return the least-squares rows, cut at zero, with half a pseudo-example for each next state."""
        rows = np.maximum(weights @ self._fits, 0.0)
        rows /= rows.sum(axis=-1, keepdims=True)
        pseudo = 0.5 * self._support.sum(axis=-1) * self._leverages(weights)
        share = (pseudo / (1.0 + pseudo))[:, None]
        return np.asarray((1.0 - share) * rows + share * self._uniform)

    def _leverages(self, weights: FloatArray) -> FloatArray:
        """Return cᵀA⁻¹c: one over the number of examples that speak about this mixture."""
        return np.asarray((self._covariances @ weights) @ weights)

    def _learn(self, weights: FloatArray, episode: Episode) -> None:
        possible = self._support[episode.pairs, episode.outcomes]  # what cannot happen teaches nothing about what can
        seen, outcomes = episode.pairs[possible], episode.outcomes[possible]
        pairs, visits = np.unique(seen, return_counts=True)
        gains = 1.0 / (self.horizon * self._leading(weights)[seen, outcomes])
        for pair, outcome, gain in zip(seen, outcomes, gains, strict=True):
            self._gains[pair, :, outcome] += gain * weights
            self._scores[pair, :, outcome] += weights
        self._information[pairs] += visits[:, None, None] * np.outer(weights, weights)
        self._shares[pairs] += (visits / self.horizon) ** 2
        self._solve(pairs)

    def _solve(self, pairs: IntArray) -> None:
        """Refresh what follows from the sums of `pairs`."""
        rates = np.minimum(0.5, np.sqrt(self._coordinates / (1.0 + self._shares[pairs])))
        possible = np.where(self._support[pairs][:, None], self._gains[pairs], -np.inf)
        self._leaders[pairs] = barrier_leader(possible, rates[:, None])
        self._covariances[pairs] = np.linalg.inv(self._information[pairs] + np.eye(self.bases))
        self._fits[pairs] = self._covariances[pairs] @ (self._scores[pairs] + self._uniform[pairs][:, None])

    def _expected_divergence(self, weights: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return ¼·Σ Var(P)/P = ¼·(K-1)·leverage, and the distance of the fit from P̂."""
        freedoms = self._support.sum(axis=-1) - 1.0
        spread = (0.25 * freedoms * self._leverages(weights)).reshape(self.shape[:2])
        moved = self.game.divergence(self._fitted(weights).reshape(self.shape), prediction)
        return np.asarray(np.minimum(spread + moved, 2.0))

    def load_state(self, state: State) -> None:
        """Load a state saved by an oracle with the same settings; learning continues bit for bit."""
        super().load_state(state)
        self._solve(np.arange(len(self._shares), dtype=np.int64))

    def _textbook_bound(self, episodes: int) -> float:
        return barrier_bound(episodes, groups=len(self._shares), coordinates=self._coordinates)

    def _settings(self) -> str:
        return f"{super()._settings()}, support {fingerprint(self._support)}"
