"""Dynamics softmax in features of the context: P(s'|c,s,a) ∝ P₀(s'|s,a)·exp(w(s,a,s')·z(c)).

Two forecasters, for "realizable" and "proven"; "guarded" aggregates them.

*Newton*, practical, nothing proven: recursive regularised maximum likelihood. A quadratic around the current weights
stands for the past, with one (d, d) covariance for each next state that can happen; an episode's examples are fitted
exactly against it, and their curvature p(1-p)·zzᵀ is added.

*Online Newton step*, proven (docs/oracles.md, Theorem 4): for ‖W‖ <= B (Frobenius) and ‖z‖ <= X every probability is at
least κ = b/(b + (1-b)·exp(√2·B·X)), b the smallest entry of P₀, and the loss curves at least like κ/2·‖Wz‖². One step
W ← W - G·A⁻¹, A = HλI + κ·Σzzᵀ, projected to the ball in the norm of A. Regret with λ = d/(κB²), over G pairs:

    H·G·(d/κ)·[½ + log(1 + κ²B²X²·T/(G·d²))]
"""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.jit import Lazy
from omg_cmdp.oracles.ball import multiplier
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.oracles.features import FeatureFunction, Features
from omg_cmdp.oracles.forecasters import Forecasters
from omg_cmdp.oracles.frame import DynamicsFrame
from omg_cmdp.oracles.losses import LOG, Examples
from omg_cmdp.oracles.memory import check_memory
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.oracles.simplex import support_mask
from omg_cmdp.validation import (
    BoolArray,
    FloatArray,
    distributions,
    first_index,
    float_table,
    one_of_shapes,
    positive_integer,
    positive_number,
)

compiled_softmax = Lazy("omg_cmdp.oracles.compiled.softmax")

RAREST = 1e-140
"""The smallest probability that the weights may give to what can happen."""


class _Softmax(Forecasters):
    """The Newton fit, and the online Newton step, for the n transitions that can happen."""

    learned = ("weights", "covariances", "step_weights", "step_inverses")
    rate: Rate
    features: Features

    def __init__(
        self,
        support: BoolArray,
        base: FloatArray | None,
        features: Features,
        ridge: float,
        weight_norm: float,
        rate: Rate,
    ) -> None:
        super().__init__(rate.horizon, rate)
        self.shape, self.possible = support.shape, None if support.all() else support
        self.features = self.source = features
        self.ridge, self.weight_norm = ridge, weight_norm
        flat = support.reshape(-1, support.shape[-1])
        counts, size = flat.sum(axis=1), features.shape[-1]
        groups, cells, self._most = len(flat), int(counts.sum()), int(counts.max())
        instead = "give `support`, use fewer features for the dynamics, or BasisDynamics or CountDynamics"
        check_memory("SoftmaxDynamics", size**2 * (cells + groups) + 2 * size * cells + 3 * support.size, instead)
        self._cells = np.flatnonzero(flat)
        self.starts, self.successors = np.append(0, np.cumsum(counts)), self._cells % flat.shape[1]
        self._counts = np.repeat(counts, counts)
        rows = 1.0 / self._counts if base is None else base[support]
        self.offsets = np.log(rows)
        self.curvature = self._least_curvature(rows.min())
        own = f"support {fingerprint(support)}", f"base {fingerprint(self.offsets)}"
        self.settings = f"ridge {ridge}", f"weight_norm {weight_norm}", *own
        # The λ that balances both terms of the bound.
        step_ridge = size / (self.curvature * weight_norm**2)
        self.weights, self.step_weights = np.zeros((2, cells, size))
        self.covariances, self.step_inverses = np.empty((cells, size, size)), np.empty((groups, size, size))
        self.covariances[:] = np.eye(size) / ridge
        self.step_inverses[:] = np.eye(size) / (self.horizon * step_ridge)

    def _least_curvature(self, rarest: float) -> float:
        """Return κ, the smallest probability of what can happen; refuse one that is lost beside the ε of log loss."""
        reach = self.weight_norm * self.features.norm
        if reach > 200.0:
            raise ValueError(f"`weight_norm` times `feature_norm` must be at most 200, got {reach:g}")
        least = float(rarest / (rarest + (1.0 - rarest) * math.exp(math.sqrt(2.0) * reach)))
        # -log(P + ε) is flat where P is below ε = 1e-150: nothing could be learned there, and Theorem 4 would not hold.
        if least < RAREST:
            rule = f"leave what can happen a probability of {RAREST:g} under all weights; exclude the rest by `support`"
            raise ValueError(f"`base` must {rule}, got {least:.3g} for an entry of {rarest:g}")
        return least

    def prepare(self, context: Context) -> FloatArray:
        return np.asarray(self.features(context)[0])

    def forecasts(self, row: FloatArray) -> FloatArray:
        return np.stack([self.table(w, row) for w in self.rate.choose(self.weights, self.step_weights)])

    def table(self, weights: FloatArray, row: FloatArray) -> FloatArray:
        """Return softmax(log P₀ + w·z)."""
        return np.asarray(self._moved_tables(weights, row, np.zeros((1, len(self.offsets))))[0])

    def _moved_tables(self, weights: FloatArray, row: FloatArray, moves: FloatArray) -> FloatArray:
        """Return (count, S, A, S): softmax(log P₀ + w·z + move) for each of `moves` (count, n)."""
        tables = np.zeros((len(moves), *self.shape))
        flat, rows = tables.reshape(len(moves), -1, self.shape[-1]), (self.starts, self.successors)
        compiled_softmax.softmax_tables(weights, self.offsets, row, moves, *rows, flat)
        return tables

    def learn(self, row: FloatArray, episode: Examples) -> None:
        # The pairs that the episode visits, and how often each led to its 1st, 2nd, ... successor.
        distinct, counts = np.empty_like(episode.pairs), np.empty((len(episode.pairs), self._most))
        seen = episode.pairs, episode.outcomes, self.starts, self.successors
        found = compiled_softmax.tally(*seen, distinct, counts)
        pairs = distinct[:found]
        given = self.offsets, row, self.starts, pairs, counts[:found]
        compiled_softmax.newton_fit(self.weights, self.covariances, *given)
        if not self.rate.is_proven:
            return
        # A projection costs an eigenvalue decomposition: only if a step has left the ball.
        step = compiled_softmax.newton_step(self.step_weights, self.step_inverses, *given, self.curvature)
        if step > self.weight_norm**2:
            for pair in pairs:
                self._project(pair)

    def _project(self, pair: int) -> None:
        """Move the weights of `pair` to the ball, the shortest way in the norm of A."""
        weights = self.step_weights[self.starts[pair] : self.starts[pair + 1]]  # a view
        if np.vdot(weights, weights) <= self.weight_norm**2:
            return
        spectrum, basis = np.linalg.eigh(self.step_inverses[pair])
        strengths = 1.0 / spectrum
        moments = weights @ basis * strengths
        # At this μ every coordinate has shrunk at least as much as the ball asks.
        most = strengths.max() * np.linalg.norm(weights) / self.weight_norm
        weights[:] = (moments / (strengths + multiplier(moments, strengths, self.weight_norm, most))) @ basis.T

    def expected_divergence(self, row: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return ¼·Σ p(1-p)·Var(logit), to first order ¼·Σ Var(p)/p = E D², and the distance of the fit from P̂."""
        fitted, variances = self.table(self.weights, row), np.zeros(self.shape)
        variances.reshape(-1)[self._cells] = self._logit_variances(row)
        spread = 0.25 * (fitted * (1.0 - fitted) * variances).sum(axis=-1)
        return np.asarray(np.minimum(spread + LOG.divergence(fitted, prediction), 2.0))

    def _logit_variances(self, row: FloatArray) -> FloatArray:
        """Return (n,), each times (K-1)/K.

        Adding a constant to all logits of a pair changes nothing; independent covariances ignore this.
        """
        return np.asarray(((self.covariances @ row) @ row) * (1.0 - 1.0 / self._counts))

    def draws(self, row: FloatArray, streams: Streams) -> FloatArray:
        """Return tables from Laplace's approximation: normal logits around the Newton fit, within the support."""
        deviations = np.sqrt(np.maximum(self._logit_variances(row), 0.0))
        return self._moved_tables(self.weights, row, deviations * streams.normals(len(self.offsets)))

    def bound(self, episodes: int, horizon: int) -> float:
        groups, size, kappa = len(self.step_inverses), self.features.shape[-1], self.curvature
        growth = math.log1p((kappa * self.weight_norm * self.features.norm / size) ** 2 * episodes / groups)
        return self.rate.frozen_bound(groups * size / kappa * (0.5 + growth))

    def late_bound(self, episodes: int, horizon: int, delay: int, constant: bool) -> float:
        """Return the bound with the logarithm times 1 + d·(1 + ρ), ρ = 1 + d·(κBX)²/dimension (Theorem 8)."""
        if self.rate.name != "proven":
            return math.inf
        half = 0.5 * self.horizon * len(self.step_inverses) * self.features.shape[-1] / self.curvature
        reach = (self.curvature * self.weight_norm * self.features.norm) ** 2 / self.features.shape[-1]
        return half + (1.0 + delay * (2.0 + delay * reach)) * (self.bound(episodes, horizon) - half)


@final
class SoftmaxDynamics(DynamicsFrame[_Softmax]):
    """Transitions softmax in features: P(s'|c, s, a) ∝ P₀(s'|s, a)·exp(w(s, a, s')·z(c)).

    The "realizable" forecaster is recursive maximum likelihood, the "proven" one an online Newton step with regret
    H·G·(d/κ)·[½ + log(1 + κ²B²X²·T/(G·d²))] over G = S·A pairs, κ the smallest probability possible; with an intercept
    z has a constant 1 more, d is larger by one and X² as well. Memory is about n·d² numbers, n the transitions that can
    happen. Choose it where the context is a vector and transitions change smoothly with it.

    Parameters
    ----------
    states : int
        The number of states, S.
    actions : int
        The number of actions, A.
    dimension : int
        The number of features, d, without the constant of `intercept`.
    horizon : int
        The largest number of steps of an episode, H.
    features : callable, optional
        context -> z of shape (d,), such as a `FeatureMap`. By default the context is z itself.
    intercept : bool, default True
        Whether a constant 1 is added to the features; not to those that have one, as a `FeatureMap`. Without a
        constant P = P₀ wherever z = 0, whatever was seen there.
    support : array_like of bool, shape (S, A, S), optional
        The transitions that can happen; by default all. Memory and time grow with their number, and an episode with
        another transition is refused.
    base : array_like, shape (S, A, S), optional
        The transitions P₀ that the weights tilt: positive in the support, 0 elsewhere. By default uniform over it.
    rate : {"guarded", "proven", "realizable"}, default "guarded"
        "proven" is safe against any adversary, "realizable" faster on benign data and without a bound; "guarded"
        aggregates both.
    ridge : float, default 1.0
        The inverse prior variance of a weight in the Newton fit. Choose a smaller one if weights may be large, else
        `uncertainty` is too small (4 times, for weights of three times 1/√ridge).
    feature_norm : float, default 1.0
        X, the largest norm of z, without the constant. Longer features are refused.
    weight_norm : float, default 3.0
        B, the largest norm of the weights of a pair that the proven forecaster competes with.

    Examples
    --------
    >>> oracle = SoftmaxDynamics(states=2, actions=1, dimension=1, horizon=1)
    >>> for _ in range(300):
    ...     oracle.update([1.0], states=[0], actions=[0], next_states=[1])
    ...     oracle.update([-1.0], states=[0], actions=[0], next_states=[0])
    >>> oracle.predict([1.0])[0].round(2), oracle.predict([-1.0])[0].round(2)
    (array([[0.01, 0.99]]), array([[0.99, 0.01]]))

    References
    ----------
    docs/oracles.md, Theorems 4 and 8.
    """

    def __init__(
        self,
        *,
        states: int,
        actions: int,
        dimension: int,
        horizon: int,
        features: FeatureFunction | None = None,
        intercept: bool = True,
        support: ArrayLike | None = None,
        base: ArrayLike | None = None,
        rate: str = "guarded",
        ridge: float = 1.0,
        feature_norm: float = 1.0,
        weight_norm: float = 3.0,
    ) -> None:
        chosen = Rate(rate, horizon)
        inputs = Features(features, (positive_integer("dimension", dimension),), feature_norm, intercept=intercept)
        norms = positive_number("ridge", ridge), positive_number("weight_norm", weight_norm)
        mask = support_mask(support, positive_integer("states", states), positive_integer("actions", actions))
        super().__init__(_Softmax(mask, _base_transitions(base, mask), inputs, *norms, chosen))


def _base_transitions(base: ArrayLike | None, support: BoolArray) -> FloatArray | None:
    """Return P₀ (S, A, S), positive where `support` is; None: uniform."""
    if base is None:
        return None
    table = float_table("base", base)
    one_of_shapes("base", table, support.shape)
    distributions("base", table)
    if ((table > 0.0) != support).any():
        where = first_index((table > 0.0) != support)
        rule = "be positive exactly where transitions can happen; say by `support` which can"
        raise ValueError(f"`base` must {rule}, got {float(table[where])} at index {where}")
    return table
