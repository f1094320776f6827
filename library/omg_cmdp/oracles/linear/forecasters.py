"""Rewards linear in features of the context: the forecaster of Vovk (1998) and of Azoury and Warmuth (2001), clipped.

With A = τλI + Σ zzᵀ and b = Σ (r - ½)z over past examples, a forecaster of temper τ predicts

    f̂(z) = ½ + zᵀ(A + τ·zzᵀ)⁻¹b = ½ + zᵀA⁻¹b/(1 + τ·zᵀA⁻¹z),  clipped to [0, 1]:

ridge regression with τ more examples, the question itself with the answer ½. τ = 1 is the textbook's, τ = H
the proven one for frozen episodes. Regret against ‖u‖ <= B with ‖z‖ <= X, for G weight vectors (docs/oracles.md,
Theorem 2):

    H·G·[λB² + (d/4)·log(1 + T·X²/(λdG))]

The state is the root R of [[A, b], [bᵀ, Σ(r-½)²]] = RᵀR, updated by plane rotations, which lose no digits: a
prediction costs one triangular solve, and the best loss in hindsight follows from R for τ = 0.

*Uncertainty and draws*: rewards have variance at most ¼, so that the ridge λ is a prior N(0, I/(4λ)) of the weights.
Mean rewards in [0, 1] have variance at most ¼ too, so that it is N(0, I/(4Λ)) with Λ = max(λ, X²). An added constant
has half of that variance, and the features the other half: Λ is max(λ, 2X²) for these, and max(λ, 2) for the constant.
With the noise σ² of each weight vector, estimated from its own residuals, the posterior is

    θ ~ N(C·b/σ², C),  C = (4Λ + Σzzᵀ/σ²)⁻¹ = σ²·(ρ + Σzzᵀ)⁻¹,  ρ = 4Λσ², both diagonal.

What was not tried keeps the variance zᵀz/(4Λ), whatever was seen elsewhere.
"""

from __future__ import annotations

import math

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.oracles.ball import least_squares
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.oracles.features import Features
from omg_cmdp.oracles.forecasters import Forecasters
from omg_cmdp.oracles.losses import Examples
from omg_cmdp.oracles.memory import check_memory
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.validation import FloatArray

compiled = Lazy("omg_cmdp.oracles.compiled.linear")


class LinearForecasters(Forecasters):
    """Vovk's forecasters: a root for each temper and weight vector, (d+1, d+1)."""

    learned = ("roots", "visits")
    rate: Rate
    features: Features

    def __init__(
        self, pairs: tuple[int, int], features: Features, ridge: float, weight_norm: float, rate: Rate
    ) -> None:
        super().__init__(rate.horizon, rate)
        self.pairs = pairs
        self.features = self.source = features
        self.ridge, self.weight_norm = ridge, weight_norm
        self.shared = len(features.shape) == 3
        self.dimension = features.shape[-1]
        # A larger prior than mean rewards in [0, 1] can have would call everything uncertain: Λ, not λ. Apart for the
        # constant: beside features of norm 1000 it would never be learned, and beside small ones they would not be.
        reach = np.full(self.dimension, (1.0 + features.adds_constant) * features.longest**2)
        reach[self.dimension - features.adds_constant :] = 2.0
        self._prior_precision = 4.0 * np.maximum(ridge, reach)
        # Shared weights are of the same shape for any number of pairs.
        own = f"weight_norm {weight_norm}", f"shared {self.shared}", f"pairs {pairs}"
        self.settings = f"ridge {ridge}", *own, *rate.settings
        # Kept in any case: the root without a ridge, and the textbook's, by whose residuals noise is measured.
        kept = np.unique([0.0, 1.0, *rate.tempers])
        self._groups = 1 if self.shared else math.prod(pairs)
        instead = "use fewer features, or `shared` ones, with one weight vector for all pairs"
        check_memory("LinearRewards", (len(kept) + 1) * self._groups * (self.dimension + 1) ** 2, instead)
        self.roots = np.zeros((len(kept), self.dimension + 1, self.dimension + 1, self._groups))
        diagonal = np.arange(self.dimension)
        self.roots[:, diagonal, diagonal] = np.sqrt(kept * ridge)[:, None, None]
        self.visits = np.zeros(self._groups)
        self._posterior = np.empty(self.roots.shape[1:])
        self._changed = np.ones(self._groups, dtype=np.bool_)  # since the posterior was computed

    def prepare(self, context: Context) -> FloatArray:
        """Return the features, (1, d) or (S·A, d)."""
        return self.features(context)

    def forecasts(self, rows: FloatArray) -> FloatArray:
        """Return ½ + zᵀA⁻¹b/(1 + τ·zᵀA⁻¹z), clipped, for each temper."""
        if self.rate.delay:
            return self._in_ball(rows)
        tempers = self.rate.tempers
        forecasts = np.empty((len(tempers), *self.pairs))
        compiled.vaw(self._of_pairs(self.roots, rows), rows, tempers, forecasts.reshape(len(tempers), -1))
        return forecasts

    def _in_ball(self, rows: FloatArray) -> FloatArray:
        """Return ½ + θ·z, clipped, θ the best weights in the ball with the ridge λH(d + 1), for late outcomes."""
        ridge, roots = self.ridge * self.horizon * (self.rate.delay + 1), np.moveaxis(self.roots[0], -1, 0)
        weights = np.array([least_squares(root, self.weight_norm, ridge)[0] for root in roots])
        forecasts = np.clip(0.5 + (rows * weights).sum(axis=1), 0.0, 1.0)
        return np.asarray(forecasts.reshape(1, *self.pairs))

    def learn(self, rows: FloatArray, episode: Examples) -> None:
        """Rotate the examples into the roots of their weight vectors."""
        rows, groups = (rows[episode.pairs], np.zeros_like(episode.pairs)) if self.shared else (rows, episode.pairs)
        compiled.rotate_in(self.roots, rows, groups, episode.outcomes - 0.5)
        np.add.at(self.visits, groups, 1.0)
        self._changed[groups] = True

    def refresh(self) -> None:
        """Let the posterior follow from the roots."""
        self._changed[:] = True

    def _of_pairs(self, groups: FloatArray, rows: FloatArray) -> FloatArray:
        """Return what there is for each weight vector, (..., G), for each pair."""
        return np.broadcast_to(groups, (*groups.shape[:-1], len(rows))) if self.shared else groups

    def expected_divergence(self, rows: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return zᵀCz, and the squared distance of the posterior mean from f̂."""
        means, variances, _ = self._regressions(rows)
        biases = np.clip(0.5 + means, 0.0, 1.0) - prediction.reshape(-1)
        return np.asarray(np.minimum(variances + biases**2, 1.0).reshape(self.pairs))

    def draws(self, rows: FloatArray, streams: Streams) -> FloatArray:
        """Return ½ + θ·z, cut to [0, 1], for θ from the posterior: one θ if `shared`, else one for each pair."""
        means, variances, solved = self._regressions(rows)
        if self.shared:
            moved = streams.normals(self.dimension) @ (np.sqrt(self._noise()) * solved)
        else:
            moved = streams.normals(len(means)) * np.sqrt(variances)
        return np.asarray(np.clip(0.5 + means + moved, 0.0, 1.0).reshape(-1, *self.pairs))

    def _regressions(self, rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return mean and variance of θ·z, (S·A,) each, and R⁻ᵀz, (d, S·A), R the posterior's root."""
        self._refresh()
        means, leverages, solved = self._solve(self._posterior, rows)
        return means, leverages * self._of_pairs(self._noise(), rows), solved

    def _solve(self, root: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return zᵀA⁻¹b, zᵀA⁻¹z and R⁻ᵀz for the root R of A, in arrays of their own."""
        filled = np.empty((self.dimension + 3, math.prod(self.pairs)))
        means, leverages = filled[:2]
        compiled.regressions(self._of_pairs(root, rows), rows, means, leverages, filled[2:])
        return means, leverages, filled[2:-1]

    def covariance(self, rows: FloatArray) -> FloatArray:
        """Return zᵀA⁻¹z' of the actions of each state, (S, A, A), the ridge in A; 0 for different weight vectors."""
        _, leverages, solved = self._solve(self.roots[1], rows)  # at temper 1
        if not self.shared:
            # Different weight vectors are independent under the posterior.
            return np.asarray(leverages.reshape(self.pairs)[..., None] * np.eye(self.pairs[1]))
        directions = solved.reshape(-1, *self.pairs)
        return np.asarray(np.einsum("dsa,dsb->sab", directions, directions))

    def _noise(self) -> FloatArray:
        """Return σ² (G,): the mean squared residual, with one pseudo-example of variance ¼, the largest possible."""
        return np.asarray((0.25 + self.roots[1, -1, -1] ** 2) / (1.0 + self.visits))

    def _refresh(self) -> None:
        """Add the prior to the roots without ridge that have changed: d examples √ρ·e of the answer ½."""
        # Only the pairs of the last episodes: S·A solves in every step would dominate the cost of an episode. Threads
        # that ask at once may do so twice, and write the same bits; `_changed` falls when all of them are there.
        for group in np.flatnonzero(self._changed).tolist():
            root = self.roots[:1, :, :, group : group + 1].copy()
            examples = np.diag(np.sqrt(self._prior_precision * self._noise()[group]))
            none = np.zeros(self.dimension)
            compiled.rotate_in(root, examples, none.astype(np.int64), none)
            self._posterior[:, :, group] = root[0, :, :, 0]
        self._changed[:] = False

    def best_loss(self) -> float:
        """Return the loss of the best weights of norm at most `weight_norm`, for each weight vector."""
        return math.fsum(least_squares(root, self.weight_norm)[1] for root in np.moveaxis(self.roots[0], -1, 0))

    def bound(self, episodes: int, horizon: int) -> float:
        """Return the bound of Theorem 2, or 8 if outcomes are late."""
        groups, size, norm = self._groups, self.dimension, self.weight_norm
        late, reach = self.rate.delay + 1, self.features.norm
        growth = size * math.log1p(episodes * reach**2 / (self.ridge * size * groups * late))
        if self.rate.delay:
            return self.horizon * late * groups * (self.ridge * norm**2 + 4.0 * (0.5 + norm * reach) * growth)
        return self.rate.frozen_bound(groups * (self.ridge * (norm * norm) + 0.25 * growth))
