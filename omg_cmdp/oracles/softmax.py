"""Dynamics softmax in features of the context: P(s'|c,s,a) ∝ P₀(s'|s,a)·exp(w(s,a,s')·z(c)).

Two forecasters, for "realizable" and "proven"; "guarded" aggregates them.

*Newton*, practical, no constant claimed: recursive regularised maximum likelihood. The past is summed up by a quadratic
around the current weights, one (d, d) covariance for each next state; an episode's examples are fitted exactly against
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
from omg_cmdp.jit import lazy
from omg_cmdp.oracles.features import FeatureMap, Features
from omg_cmdp.oracles.frame import DynamicsForecasters, Rated
from omg_cmdp.oracles.losses import Episode
from omg_cmdp.persistence import fingerprint
from omg_cmdp.validation import FloatArray, distributions, float_table, one_of_shapes, positive_integer, positive_number

softmax_kernels = lazy("omg_cmdp.oracles.kernels.softmax")


@final
class SoftmaxDynamics(Rated, DynamicsForecasters):
    """Transitions that are softmax in `features` of the context, with weights for each (s, a, s').

    `base` is a kernel P₀ (S, A, S) to tilt, uniform by default; where it is zero, no transition can happen.
    `feature_norm` is X, `weight_norm` B, `ridge` the inverse prior variance of a weight in the Newton fit: choose it
    smaller if weights may be large, or `uncertainty` is too small (4 times, for weights of three times 1/√ridge).

    >>> oracle = SoftmaxDynamics(states=2, actions=1, dimension=1, horizon=1)
    >>> for _ in range(300):
    ...     oracle.update([1.0], states=[0], actions=[0], next_states=[1])
    ...     oracle.update([-1.0], states=[0], actions=[0], next_states=[0])
    >>> oracle.predict([1.0])[0].round(2), oracle.predict([-1.0])[0].round(2)
    (array([[0.01, 0.99]]), array([[0.99, 0.01]]))
    """

    learned = ("weights", "covariances", "step_weights", "step_inverses")

    def __init__(
        self,
        *,
        states: int,
        actions: int,
        dimension: int,
        horizon: int,
        features: FeatureMap | None = None,
        base: ArrayLike | None = None,
        rate: str = "guarded",
        ridge: float = 1.0,
        feature_norm: float = 1.0,
        weight_norm: float = 3.0,
    ) -> None:
        super().__init__(horizon, rate)
        self.shape = (positive_integer("states", states), positive_integer("actions", actions), int(states))
        self.dimension = positive_integer("dimension", dimension)
        self.ridge = positive_number("ridge", ridge)
        self.weight_norm = positive_number("weight_norm", weight_norm)
        self._features = Features(features, (self.dimension,), feature_norm)
        kernel = self._base_kernel(base)
        with np.errstate(divide="ignore"):
            self._offsets = np.log(kernel)
        self._possible = (kernel > 0.0).astype(np.float64)
        self.curvature = self._least_curvature(kernel[kernel > 0.0].min())
        groups, successors, size = *kernel.shape, self.dimension
        self._step_ridge = size / (self.curvature * self.weight_norm**2)
        self._weights = np.zeros((groups, successors, size))
        self._covariances = np.zeros((groups, successors, size, size)) + np.eye(size) / self.ridge
        self._step_weights = np.zeros((groups, successors, size))
        self._step_inverses = np.zeros((groups, size, size)) + np.eye(size) / (self.horizon * self._step_ridge)

    def _base_kernel(self, base: ArrayLike | None) -> FloatArray:
        """Return P₀ as (S·A, S)."""
        if base is None:
            return np.full((self.shape[0] * self.shape[1], self.shape[2]), 1.0 / self.shape[2])
        kernel = float_table("base", base)
        one_of_shapes("base", kernel, self.shape)
        distributions("base", kernel)
        return np.asarray(kernel.reshape(-1, self.shape[2]))

    def _least_curvature(self, rarest: float) -> float:
        """Return κ; beyond e³⁰⁰ neither floats nor users have use for it."""
        reach = self.weight_norm * self._features.norm
        if reach > 200.0:
            raise ValueError(f"`weight_norm` times `feature_norm` must be at most 200, got {reach:g}")
        return float(rarest / (rarest + (1.0 - rarest) * math.exp(math.sqrt(2.0) * reach)))

    def _prepare(self, context: Context) -> FloatArray:
        return np.asarray(self._features(context)[0])

    def _forecasts(self, row: FloatArray) -> FloatArray:
        tables = {"realizable": (self._weights,), "proven": (self._step_weights,)}
        return np.stack([self._table(w, row) for w in tables.get(self.rate, (self._weights, self._step_weights))])

    def _table(self, weights: FloatArray, row: FloatArray, offsets: FloatArray | None = None) -> FloatArray:
        table = np.empty(self.shape)
        offsets = self._offsets if offsets is None else offsets
        softmax_kernels.softmax_table(weights, offsets, row, table.reshape(self._offsets.shape))
        return table

    def _learn(self, row: FloatArray, episode: Episode) -> None:
        distinct, counts = np.empty_like(episode.pairs), np.empty((self.horizon, self.shape[2]))
        found = softmax_kernels.tally(episode.pairs, episode.outcomes, self._possible, distinct, counts)
        pairs, counts = distinct[:found], counts[:found]
        softmax_kernels.newton_fit(self._weights, self._covariances, self._offsets, row, pairs, counts)
        if self.rate == "realizable":
            return
        step = self._step_weights, self._step_inverses, self._offsets, row, pairs, counts, self.curvature
        if softmax_kernels.newton_step(*step) > self.weight_norm**2:
            for pair in pairs:
                self._project(pair)

    def _project(self, pair: int) -> None:
        """Move the weights of `pair` to the ball, the shortest way in the norm of A."""
        weights = self._step_weights[pair]
        if np.vdot(weights, weights) <= self.weight_norm**2:
            return
        spectrum, basis = np.linalg.eigh(self._step_inverses[pair])
        rotated, strengths = weights @ basis, 1.0 / spectrum
        low, high = 0.0, strengths.max() * np.linalg.norm(weights) / self.weight_norm
        for _ in range(100):  # W(A + μ)⁻¹A shrinks as μ grows: bisect for the ball's surface
            middle = 0.5 * (low + high)
            outside = np.linalg.norm(rotated * strengths / (strengths + middle)) > self.weight_norm
            low, high = (middle, high) if outside else (low, middle)
        self._step_weights[pair] = (rotated * strengths / (strengths + high)) @ basis.T

    def _expected_divergence(self, row: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return ¼·Σ p(1-p)·Var(logit), to first order ¼·Σ Var(p)/p = E D², and the distance of the fit from P̂."""
        fitted = self._table(self._weights, row)
        spread = 0.25 * (fitted * (1.0 - fitted) * self._logit_variances(row).reshape(self.shape)).sum(axis=-1)
        return np.asarray(np.minimum(spread + self.game.divergence(fitted, prediction), 2.0))

    def _logit_variances(self, row: FloatArray) -> FloatArray:
        """Return (S·A, S), each times (K-1)/K.

        Adding one number to all logits of a pair changes nothing, which their independent covariances do not know.
        """
        successors = self._possible.sum(axis=-1, keepdims=True)
        return np.asarray(((self._covariances @ row) @ row) * (1.0 - 1.0 / successors))

    def sample(self, context: Context, generator: np.random.Generator) -> FloatArray:
        """Return a table from Laplace's approximation: normal logits around the Newton fit."""
        row = self._prepare(context)
        variances = self._logit_variances(row)
        shifted = self._offsets + np.sqrt(np.maximum(variances, 0.0)) * generator.standard_normal(variances.shape)
        return self._table(self._weights, row, shifted)

    def _textbook_bound(self, episodes: int) -> float:
        groups, size, kappa = len(self._weights), self.dimension, self.curvature
        growth = math.log1p((kappa * self.weight_norm * self._features.norm / size) ** 2 * episodes / groups)
        return groups * size / kappa * (0.5 + growth)

    def _settings(self) -> str:
        norms = f"feature_norm {self._features.norm}, weight_norm {self.weight_norm}"
        return f"{super()._settings()}, ridge {self.ridge}, {norms}, base {fingerprint(self._offsets)}"
