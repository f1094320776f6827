"""Dynamics softmax in features of the context: P(s'|c,s,a) ∝ P₀(s'|s,a)·exp(w(s,a,s')·z(c)).

Two forecasters, for "realizable" and "proven"; "guarded" aggregates them.

*Newton*, practical, nothing proven: recursive regularised maximum likelihood. A quadratic around the current weights
stands for the past, with one (d, d) covariance for each next state; an episode's examples are fitted exactly against
it, and their curvature p(1-p)·zzᵀ is added.

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
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.oracles.features import FeatureFunction, Features
from omg_cmdp.oracles.frame import DynamicsFrame, Forecasters
from omg_cmdp.oracles.losses import LOG, Examples, IntArray
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.validation import FloatArray, distributions, float_table, one_of_shapes, positive_integer, positive_number

compiled_softmax = Lazy("omg_cmdp.oracles.compiled.softmax")

RAREST = 1e-140
"""The smallest probability that the weights may give to what can happen."""


class _Softmax(Forecasters):
    """The Newton fit, and the online Newton step."""

    learned = ("weights", "covariances", "step_weights", "step_inverses")
    rate: Rate
    features: Features

    def __init__(self, base: FloatArray, features: Features, ridge: float, weight_norm: float, rate: Rate) -> None:
        super().__init__(rate.horizon, rate)
        self.shape = base.shape
        self.features = self.source = features
        self.ridge, self.weight_norm = ridge, weight_norm
        flat = base.reshape(-1, base.shape[-1])
        self.possible = (flat > 0.0).astype(np.float64)
        # A logit of -inf is a transition that cannot happen, and stays one under any weights.
        with np.errstate(divide="ignore"):
            self.offsets = np.log(flat)
        self.curvature = self._least_curvature(flat[flat > 0.0].min())
        norms = f"feature_norm {features.norm}, weight_norm {weight_norm}"
        self.settings = f"ridge {ridge}", norms, f"base {fingerprint(self.offsets)}"
        groups, successors, size = *flat.shape, features.shape[-1]
        # The λ that balances both terms of the bound.
        step_ridge = size / (self.curvature * weight_norm**2)
        self.weights = np.zeros((groups, successors, size))
        self.covariances = np.zeros((groups, successors, size, size)) + np.eye(size) / ridge
        self.step_weights = np.zeros((groups, successors, size))
        self.step_inverses = np.zeros((groups, size, size)) + np.eye(size) / (self.horizon * step_ridge)

    def _least_curvature(self, rarest: float) -> float:
        """Return κ, the smallest probability of what can happen; refuse one that is lost beside the ε of log loss."""
        reach = self.weight_norm * self.features.norm
        if reach > 200.0:
            raise ValueError(f"`weight_norm` times `feature_norm` must be at most 200, got {reach:g}")
        least = float(rarest / (rarest + (1.0 - rarest) * math.exp(math.sqrt(2.0) * reach)))
        # -log(P + ε) is flat where P is below ε = 1e-150: nothing could be learned there, and Theorem 4 would not hold.
        if least < RAREST:
            rule = f"leave what can happen a probability of {RAREST:g} under all weights, and be 0 elsewhere"
            raise ValueError(f"`base` must {rule}, got {least:.3g} for an entry of {rarest:g}")
        return least

    def prepare(self, context: Context) -> FloatArray:
        return np.asarray(self.features(context)[0])

    def forecasts(self, row: FloatArray) -> FloatArray:
        return np.stack([self.table(w, row) for w in self.rate.choose(self.weights, self.step_weights)])

    def table(self, weights: FloatArray, row: FloatArray) -> FloatArray:
        """Return softmax(log P₀ + w·z)."""
        table = np.empty(self.shape)
        compiled_softmax.softmax_table(weights, self.offsets, row, table.reshape(self.offsets.shape))
        return table

    def learn(self, row: FloatArray, episode: Examples) -> None:
        pairs, counts = self.tally(episode)
        compiled_softmax.newton_fit(self.weights, self.covariances, self.offsets, row, pairs, counts)
        if not self.rate.is_proven:
            return
        # A projection costs an eigenvalue decomposition: only if a step has left the ball.
        step = self.step_weights, self.step_inverses, self.offsets, row, pairs, counts, self.curvature
        if compiled_softmax.newton_step(*step) > self.weight_norm**2:
            for pair in pairs:
                self._project(pair)

    def tally(self, episode: Examples) -> tuple[IntArray, FloatArray]:
        """Return the pairs that an episode visits, (n,), and how often each led where, (n, S)."""
        distinct, counts = np.empty_like(episode.pairs), np.empty((self.horizon, self.shape[2]))
        found = compiled_softmax.tally(episode.pairs, episode.outcomes, self.possible, distinct, counts)
        return distinct[:found], counts[:found]

    def _project(self, pair: int) -> None:
        """Move the weights of `pair` to the ball, the shortest way in the norm of A."""
        weights = self.step_weights[pair]
        if np.vdot(weights, weights) <= self.weight_norm**2:
            return
        spectrum, basis = np.linalg.eigh(self.step_inverses[pair])
        rotated, strengths = weights @ basis, 1.0 / spectrum
        # At this μ every coordinate has shrunk at least as much as the ball asks.
        low, high = 0.0, strengths.max() * np.linalg.norm(weights) / self.weight_norm
        for _ in range(100):  # W(A + μ)⁻¹A shrinks as μ grows: bisect for the ball's surface
            middle = 0.5 * (low + high)
            outside = np.linalg.norm(rotated * strengths / (strengths + middle)) > self.weight_norm
            low, high = (middle, high) if outside else (low, middle)
        self.step_weights[pair] = (rotated * strengths / (strengths + high)) @ basis.T

    def expected_divergence(self, row: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return ¼·Σ p(1-p)·Var(logit), to first order ¼·Σ Var(p)/p = E D², and the distance of the fit from P̂."""
        fitted = self.table(self.weights, row)
        spread = 0.25 * (fitted * (1.0 - fitted) * self._logit_variances(row).reshape(self.shape)).sum(axis=-1)
        return np.asarray(np.minimum(spread + LOG.divergence(fitted, prediction), 2.0))

    def _logit_variances(self, row: FloatArray) -> FloatArray:
        """Return (S·A, S), each times (K-1)/K.

        Adding a constant to all logits of a pair changes nothing; independent covariances ignore this.
        """
        successors = self.possible.sum(axis=-1, keepdims=True)
        return np.asarray(((self.covariances @ row) @ row) * (1.0 - 1.0 / successors))

    def draws(self, row: FloatArray, streams: Streams) -> FloatArray:
        """Return tables from Laplace's approximation: normal logits around the Newton fit, within the support."""
        deviations = np.sqrt(np.maximum(self._logit_variances(row), 0.0))
        normals = streams.normals(np.count_nonzero(self.possible))
        drawn = np.zeros((streams.count, *self.shape))
        flat = drawn.reshape(-1, *self.offsets.shape)
        compiled_softmax.softmax_draws(self.weights, self.offsets, row, deviations, normals, flat)
        return drawn

    def bound(self, episodes: int, horizon: int) -> float:
        groups, size, kappa = len(self.weights), self.features.shape[-1], self.curvature
        growth = math.log1p((kappa * self.weight_norm * self.features.norm / size) ** 2 * episodes / groups)
        return self.rate.frozen_bound(groups * size / kappa * (0.5 + growth))

    def late_bound(self, episodes: int, horizon: int, delay: int, constant: bool) -> float:
        """Return the bound with the logarithm times 1 + d·(1 + ρ), ρ = 1 + d·(κBX)²/dimension (Theorem 8)."""
        if self.rate.name != "proven":
            return math.inf
        half = 0.5 * self.horizon * len(self.weights) * self.features.shape[-1] / self.curvature
        reach = (self.curvature * self.weight_norm * self.features.norm) ** 2 / self.features.shape[-1]
        return half + (1.0 + delay * (2.0 + delay * reach)) * (self.bound(episodes, horizon) - half)


@final
class SoftmaxDynamics(DynamicsFrame[_Softmax]):
    """Transitions softmax in features: P(s'|c, s, a) ∝ P₀(s'|s, a)·exp(w(s, a, s')·z(c)).

    The "realizable" forecaster is recursive maximum likelihood, the "proven" one an online Newton step with regret
    H·G·(d/κ)·[½ + log(1 + κ²B²X²·T/(G·d²))] over G = S·A pairs, κ the smallest probability possible. Choose it where
    the context is a vector and transitions change smoothly with it.

    Parameters
    ----------
    states : int
        The number of states, S.
    actions : int
        The number of actions, A.
    dimension : int
        The number of features, d.
    horizon : int
        The largest number of steps of an episode, H.
    features : callable, optional
        context -> z of shape (d,), such as a `FeatureMap`. By default the context is z itself. A constant entry is an
        intercept: without one, P = P₀ wherever z = 0.
    base : array_like, shape (S, A, S), optional
        The transitions P₀ that the weights tilt, uniform by default; where they are zero, no transition can happen.
    rate : {"guarded", "proven", "realizable"}, default "guarded"
        "proven" is safe against any adversary, "realizable" faster on benign data and without a bound; "guarded"
        aggregates both.
    ridge : float, default 1.0
        The inverse prior variance of a weight in the Newton fit. Choose a smaller one if weights may be large, else
        `uncertainty` is too small (4 times, for weights of three times 1/√ridge).
    feature_norm : float, default 1.0
        X, the largest norm of z. Longer features are refused.
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
        base: ArrayLike | None = None,
        rate: str = "guarded",
        ridge: float = 1.0,
        feature_norm: float = 1.0,
        weight_norm: float = 3.0,
    ) -> None:
        chosen = Rate(rate, horizon)
        inputs = Features(features, (positive_integer("dimension", dimension),), feature_norm)
        norms = positive_number("ridge", ridge), positive_number("weight_norm", weight_norm)
        super().__init__(_Softmax(base_transitions(base, states, actions), inputs, *norms, chosen))


def base_transitions(base: ArrayLike | None, states: int, actions: int) -> FloatArray:
    """Return P₀ (S, A, S), uniform by default."""
    shape = positive_integer("states", states), positive_integer("actions", actions), int(states)
    if base is None:
        return np.full(shape, 1.0 / shape[2])
    table = float_table("base", base)
    one_of_shapes("base", table, shape)
    distributions("base", table)
    return table
