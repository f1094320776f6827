"""Rewards linear in features of the context: the forecaster of Vovk (1998) and of Azoury and Warmuth (2001), clipped.

With A = τλI + Σ zzᵀ and b = Σ (r - ½)z over past examples, a forecaster of temper τ predicts

    f̂(z) = ½ + zᵀ(A + τ·zzᵀ)⁻¹b = ½ + zᵀA⁻¹b/(1 + τ·zᵀA⁻¹z),  clipped to [0, 1]:

ridge regression that expects its question to come τ times with the middling answer ½. τ = 1 is the textbook's, τ = H
the proven one for frozen episodes. Regret against ‖u‖ <= B with ‖z‖ <= X, for G weight vectors (docs/oracles.md,
Theorem 2):

    H·G·[λB² + (d/4)·log(1 + T·X²/(λdG))]

What is kept is the root R of [[A, b], [bᵀ, Σ(r-½)²]] = RᵀR, updated by plane rotations, which lose no digits: a
prediction costs one triangular solve, and the best loss in hindsight can be read off.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.jit import lazy
from omg_cmdp.oracles.features import FeatureMap, Features
from omg_cmdp.oracles.frame import RewardForecasters, Tempered
from omg_cmdp.oracles.losses import Episode
from omg_cmdp.validation import FloatArray, positive_integer, positive_number

kernels = lazy("omg_cmdp.oracles.kernels.classes")


@final
class LinearRewards(Tempered, RewardForecasters):
    """f(c, s, a) = ½ + θ(s, a)·z(c), or with `shared` features ½ + θ·z(c, s, a).

    `features` maps a context to z, of shape (d,), or (S, A, d) if `shared`; without it the context is z itself.
    `ridge` is λ, `feature_norm` X, `weight_norm` B: the last enters the bound and the comparator only.

    >>> oracle = LinearRewards(states=1, actions=2, dimension=2, horizon=1)
    >>> for _ in range(200):
    ...     oracle.update([1.0, 0.0], states=[0], actions=[1], rewards=[0.9])
    >>> oracle.predict([1.0, 0.0]).round(2), oracle.predict([0.0, 1.0]).round(2)
    (array([[0.5, 0.9]]), array([[0.5, 0.5]]))
    """

    learned = ("roots",)

    def __init__(
        self,
        *,
        states: int,
        actions: int,
        dimension: int,
        horizon: int,
        features: FeatureMap | None = None,
        shared: bool = False,
        rate: str = "guarded",
        ridge: float = 1.0,
        feature_norm: float = 1.0,
        weight_norm: float = 1.0,
    ) -> None:
        super().__init__(horizon, rate)
        self.pairs = (positive_integer("states", states), positive_integer("actions", actions))
        self.dimension = positive_integer("dimension", dimension)
        self.shared = bool(shared)
        if self.shared and features is None:
            raise ValueError("`features` must be given if `shared`, got None")
        shape = (*self.pairs, self.dimension) if self.shared else (self.dimension,)
        self._features = Features(features, shape, feature_norm)
        self.ridge = positive_number("ridge", ridge)
        self.weight_norm = positive_number("weight_norm", weight_norm)
        # The textbook's root is kept in any case: uncertainty is measured by it.
        kept = np.unique([1.0, *self.tempers])
        self._groups = 1 if self.shared else math.prod(self.pairs)
        self._roots = np.zeros((len(kept), self.dimension + 1, self.dimension + 1, self._groups))
        diagonal = np.arange(self.dimension)
        self._roots[:, diagonal, diagonal] = np.sqrt(kept * self.ridge)[:, None, None]
        self._scratch = np.empty((self.dimension + 1, math.prod(self.pairs)))
        self._carried = np.empty(self.dimension + 1)

    def _prepare(self, context: Context) -> FloatArray:
        return self._features(context)

    def _forecasts(self, rows: FloatArray) -> FloatArray:
        forecasts = np.empty((len(self.tempers), *self.pairs))
        flat = forecasts.reshape(len(self.tempers), -1)
        kernels.vaw(self._roots_of_pairs(rows), rows, self.tempers, flat, self._scratch)
        return forecasts

    def _learn(self, rows: FloatArray, episode: Episode) -> None:
        rows, groups = (rows[episode.pairs], np.zeros_like(episode.pairs)) if self.shared else (rows, episode.pairs)
        kernels.rotate_in(self._roots, rows, groups, episode.outcomes - 0.5, self._carried)

    def _roots_of_pairs(self, rows: FloatArray) -> FloatArray:
        return np.broadcast_to(self._roots, (*self._roots.shape[:3], len(rows))) if self.shared else self._roots

    def _expected_divergence(self, rows: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return leverage × noise, and the squared distance of the ridge mean from f̂."""
        means, leverages = self._regressions(rows)
        biases = np.clip(0.5 + means, 0.0, 1.0) - prediction.reshape(-1)
        return np.asarray(np.minimum(self._noise() * leverages + biases**2, 1.0).reshape(self.pairs))

    def _regressions(self, rows: FloatArray) -> FloatArray:
        """Return (2, S·A): zᵀA⁻¹b and zᵀA⁻¹z at temper 1. The scratch then holds R⁻ᵀz, (d, S·A), R the root of A."""
        answers = np.empty((2, math.prod(self.pairs)))
        kernels.regressions(self._roots_of_pairs(rows)[0], rows, *answers, self._scratch)
        return answers

    def _noise(self) -> float:
        """Return the mean squared residual, with one pseudo-example of variance ¼, the largest possible."""
        residuals = float((self._roots[0, -1, -1] ** 2).sum())
        return (0.25 + residuals) / (1.0 + self.episodes * self.horizon)

    def sample(self, context: Context, generator: np.random.Generator) -> FloatArray:
        """Return ½ + θ·z, clipped to [0, 1], for θ ~ N(A⁻¹b, noise·A⁻¹): one θ if `shared`, else one for each pair."""
        means, _ = self._regressions(self._prepare(context))
        directions = self._scratch[:-1]
        normals = generator.standard_normal((self.dimension, 1) if self.shared else directions.shape)
        drawn = 0.5 + means + math.sqrt(self._noise()) * (directions * normals).sum(axis=0)
        return np.asarray(np.clip(drawn, 0.0, 1.0).reshape(self.pairs))

    def best_loss(self) -> float:
        """Return the loss of the best weights of norm at most `weight_norm`, for each weight vector."""
        return math.fsum(self._best_group_loss(root) for root in np.moveaxis(self._roots[0], -1, 0))

    def _best_group_loss(self, root: FloatArray) -> float:
        """Minimise uᵀGu - 2uᵀb + Σ(r-½)² over the ball; G, b and the sum are the blocks of RᵀR."""
        blocks = root.T @ root
        gram, moment, total = blocks[:-1, :-1] - self.ridge * np.eye(self.dimension), blocks[-1, :-1], blocks[-1, -1]
        spectrum, basis = np.linalg.eigh(gram)
        spectrum, moment = np.maximum(spectrum, 0.0), moment @ basis
        low, high = 1e-14 * spectrum[-1] + 1e-300, np.linalg.norm(moment) / self.weight_norm
        # ‖(G + μ)⁻¹b‖ falls in μ: bisect for the ball's surface, unless the minimum lies inside.
        for _ in range(200 if np.linalg.norm(moment / (spectrum + low)) > self.weight_norm else 0):
            middle = 0.5 * (low + high)
            outside = np.linalg.norm(moment / (spectrum + middle)) > self.weight_norm
            low, high = (middle, high) if outside else (low, middle)
        weights = moment / (spectrum + low)
        return float(max(total - 2.0 * weights @ moment + weights**2 @ spectrum, 0.0))

    def _textbook_bound(self, episodes: int) -> float:
        groups, size = self._groups, self.dimension
        growth = math.log1p(episodes * self._features.norm**2 / (self.ridge * size * groups))
        return groups * (self.ridge * self.weight_norm**2 + 0.25 * size * growth)

    def _settings(self) -> str:
        return f"{super()._settings()}, ridge {self.ridge}, shared {self.shared}"
