"""Mixtures of unknown transitions with known weights, the linear contextual MDP, under log loss.

*Proven*: follow the regularised leader with the log barrier (docs/oracles.md, Theorem 5). With r the gradient of the
episode's log likelihood, Σ log(P + ε), divided by H, w maximises Σ⟨r, w⟩ + (1/η)·Σ log w, no matter how small the
probabilities. With D coordinates for each of G groups, m <= 1 the share of an episode's steps that fall into a group,
M = Σm², and η = min(½, √(D/(1 + M))) the regret is at most, L = log(T + 1):

    H·G·[2DL + L·√(D(1 + T/G)) + 1.6·√(D·T/G)] + H

*Practical*, nothing proven: least squares of the indicator of the next state, moved into the simplex.
"""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.oracles.features import FeatureFunction, SimplexFeatures
from omg_cmdp.oracles.forecasters import Forecasters
from omg_cmdp.oracles.frame import DynamicsFrame
from omg_cmdp.oracles.losses import SMALLEST_PROBABILITY, Examples
from omg_cmdp.oracles.memory import check_memory
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.oracles.simplex import barrier_bound, barrier_leader, dirichlet_divergence, support_mask
from omg_cmdp.validation import BoolArray, FloatArray, IntArray, positive_integer


class _Basis(Forecasters):
    """Rows of d unknown transition tables, by least squares and by the log barrier; a group is a pair."""

    learned = ("gains", "shares", "information", "scores")
    rate: Rate
    features: SimplexFeatures

    def __init__(self, support: BoolArray, features: SimplexFeatures, rate: Rate) -> None:
        super().__init__(rate.horizon, rate)
        self.shape, self.bases = support.shape, features.shape[0]
        self.features = self.source = features
        self.possible = None if support.all() else support
        self._support = support.reshape(-1, self.shape[2])
        self._uniform = self._support / self._support.sum(axis=-1, keepdims=True)
        self.settings = (f"support {fingerprint(support)}",)
        groups, successors = self._support.shape
        numbers = self.bases * groups * (4 * successors + 2 * self.bases) + 4 * support.size
        check_memory("BasisDynamics", numbers, "use fewer tables, or merge states")
        self._coordinates = self.bases * int(self._support.sum(axis=-1).max())
        self.gains = np.zeros((groups, self.bases, successors))
        self.shares = np.zeros(groups)
        self.information = np.zeros((groups, self.bases, self.bases))
        self.scores = np.zeros((groups, self.bases, successors))
        self._leaders, self._fits = np.empty((2, groups, self.bases, successors))
        self._covariances = np.empty((groups, self.bases, self.bases))
        self._solve(np.arange(groups, dtype=np.int64))

    def prepare(self, context: Context) -> FloatArray:
        return np.asarray(self.features(context)[0])

    def forecasts(self, weights: FloatArray) -> FloatArray:
        tables = self.rate.choose(self._fitted(weights), weights @ self._leaders)
        return np.stack(tables).reshape(len(tables), *self.shape)

    def _fitted(self, weights: FloatArray) -> FloatArray:
        """Return the least-squares rows, cut at zero, with half a pseudo-example for each next state."""
        # Least squares ignores the simplex: cut at zero, and normalised.
        rows = np.maximum(weights @ self._fits, 0.0)
        rows /= rows.sum(axis=-1, keepdims=True)
        pseudo = 0.5 * self._support.sum(axis=-1) * self._leverages(weights)
        # Half a pseudo-example per next state, in units of effective examples.
        share = (pseudo / (1.0 + pseudo))[:, None]
        return np.asarray((1.0 - share) * rows + share * self._uniform)

    def _leverages(self, weights: FloatArray) -> FloatArray:
        """Return cᵀA⁻¹c: one over the effective number of examples of this mixture."""
        return np.asarray((self._covariances @ weights) @ weights)

    def learn(self, weights: FloatArray, episode: Examples) -> None:
        """Add to the sums of the pairs visited."""
        seen, outcomes = episode.pairs, episode.outcomes
        pairs, visits = np.unique(seen, return_counts=True)
        # The gradient of log(P + ε) in the leader's forecast, divided by H as the proof asks.
        gains = 1.0 / (self.horizon * ((weights @ self._leaders)[seen, outcomes] + SMALLEST_PROBABILITY))
        for pair, outcome, gain in zip(seen, outcomes, gains, strict=True):
            self.gains[pair, :, outcome] += gain * weights
            self.scores[pair, :, outcome] += weights
        self.information[pairs] += visits[:, None, None] * np.outer(weights, weights)
        self.shares[pairs] += (visits / self.horizon) ** 2
        self._solve(pairs)

    def _solve(self, pairs: IntArray) -> None:
        """Refresh what follows from the sums of `pairs`."""
        rates = np.minimum(0.5, np.sqrt(self._coordinates / (1.0 + self.shares[pairs])))
        possible = np.where(self._support[pairs][:, None], self.gains[pairs], -np.inf)
        # Only pairs that were visited: the others keep their leaders to the bit.
        self._leaders[pairs] = barrier_leader(possible, rates[:, None])
        self._covariances[pairs] = np.linalg.inv(self.information[pairs] + np.eye(self.bases))
        self._fits[pairs] = self._covariances[pairs] @ (self.scores[pairs] + self._uniform[pairs][:, None])

    def _shapes(self, weights: FloatArray) -> FloatArray:
        """Return the Dirichlet posterior (S, A, S) of each row: 1/leverage examples, and the pseudo-examples."""
        # As many examples as a count of the same certainty would have.
        examples = 1.0 / self._leverages(weights) + 0.5 * self._support.sum(axis=-1)
        return np.asarray((examples[:, None] * self._fitted(weights)).reshape(self.shape))

    def expected_divergence(self, weights: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return E[D²] of the Dirichlet posterior of each row."""
        return dirichlet_divergence(self._shapes(weights), prediction)

    def draws(self, weights: FloatArray, streams: Streams) -> FloatArray:
        """Return rows drawn from their Dirichlet posteriors, zero outside the support."""
        return streams.rows(self._shapes(weights))

    def refresh(self) -> None:
        """Solve for what follows from the sums."""
        self._solve(np.arange(len(self.shares), dtype=np.int64))

    def bound(self, episodes: int, horizon: int) -> float:
        return self.rate.frozen_bound(barrier_bound(episodes, len(self.shares), self._coordinates))


@final
class BasisDynamics(DynamicsFrame[_Basis]):
    """A linear contextual MDP: P(s'|c, s, a) = Σ c_i·P_i(s'|s, a) with known weights c and d unknown tables P_i.

    Regret over G = S·A pairs, D the number of unknown probabilities of a pair, L = log(T + 1):
    H·G·[2DL + L·√(D(1 + T/G)) + 1.6·√(D·T/G)] + H.

    Parameters
    ----------
    states : int
        The number of states, S.
    actions : int
        The number of actions, A.
    bases : int
        The number of unknown tables, d.
    horizon : int
        The largest number of steps of an episode, H.
    features : callable, optional
        context -> (d,), non-negative weights that sum to one. By default the context is these weights itself.
    rate : {"guarded", "proven", "realizable"}, default "guarded"
        "proven" follows the regularised leader, "realizable" least squares without a bound; "guarded" aggregates both.
    support : array_like of bool, shape (S, A, S), optional
        The transitions that can happen; by default all. An episode with another one is refused.

    Examples
    --------
    >>> oracle = BasisDynamics(states=2, actions=1, bases=2, horizon=1)
    >>> for _ in range(200):
    ...     oracle.update([1.0, 0.0], states=[0], actions=[0], next_states=[0])
    ...     oracle.update([0.0, 1.0], states=[0], actions=[0], next_states=[1])
    >>> oracle.predict([0.3, 0.7])[0].round(1)
    array([[0.3, 0.7]])

    References
    ----------
    A. Modi and A. Tewari, *No-regret exploration in contextual reinforcement learning*, UAI 2020; docs/oracles.md,
    Theorem 5.
    """

    def __init__(
        self,
        *,
        states: int,
        actions: int,
        bases: int,
        horizon: int,
        features: FeatureFunction | None = None,
        rate: str = "guarded",
        support: ArrayLike | None = None,
    ) -> None:
        chosen = Rate(rate, horizon)
        weights = SimplexFeatures(features, (positive_integer("bases", bases),), norm=1.0)
        mask = support_mask(support, positive_integer("states", states), positive_integer("actions", actions))
        super().__init__(_Basis(mask, weights, chosen))
