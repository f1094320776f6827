"""The version space of linear rewards: self-normalised ellipsoids (Abbasi-Yadkori, Pál and Szepesvári, NeurIPS 2011).

Rewards in [0, 1] are ½-sub-Gaussian around their means ½ + θ·z. With V = λI + Σ zzᵀ and θ̂ = V⁻¹Σ(r - ½)z, for all
times at once, with probability 1 - δ/G for each of G weight vectors of norm at most B,

    |θ·z - θ̂·z| <= ‖z‖_{V⁻¹}·(½·√(2·log(G/δ) + log det V/λ^d) + √λ·B).
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Keyed
from omg_cmdp.oracles.linear.forecasters import LinearForecasters
from omg_cmdp.theory.ceiling.sets import Observed, PlausibleRewards, VersionSpace
from omg_cmdp.validation import FloatArray


@final
class Ellipsoids(VersionSpace):
    """Weights in an ellipsoid around those of ridge regression, one ellipsoid for each weight vector."""

    learned = ("gram", "moments")

    def __init__(self, forecasters: LinearForecasters, delta: float) -> None:
        self._features, self._pairs = forecasters.features, forecasters.pairs
        self._shared, self._ridge = forecasters.shared, forecasters.ridge
        groups, size = 1 if self._shared else math.prod(self._pairs), forecasters.dimension
        self._slack, self._bias = 2.0 * math.log(groups / delta), math.sqrt(self._ridge) * forecasters.weight_norm
        self.gram = np.tile(self._ridge * np.eye(size), (groups, 1, 1))
        self.moments = np.zeros((groups, size))
        self._inverses, self._radii = np.linalg.inv(self.gram), np.full(groups, self._radius(0.0))

    def _radius(self, growth: FloatArray | float) -> FloatArray:
        return 0.5 * np.sqrt(self._slack + growth) + self._bias

    def plausible(self, context: Keyed) -> PlausibleRewards:
        """Return bounds on the mean rewards, within [0, 1]."""
        rows = self._features(context.context)
        if self._shared:
            means = 0.5 + rows @ (self._inverses[0] @ self.moments[0])
            norms = np.sqrt(np.einsum("pi,ij,pj->p", rows, self._inverses[0], rows))
        else:
            projected = self._inverses @ rows[0]
            means, norms = 0.5 + np.einsum("gi,gi->g", projected, self.moments), np.sqrt(projected @ rows[0])
        widths = norms * self._radii
        low, high = ((means + side * widths).reshape(1, *self._pairs) for side in (-1.0, 1.0))
        return PlausibleRewards(np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))

    def learn(self, context: Keyed, seen: Observed) -> None:
        """Add the examples to the regressions."""
        rows = self._features(context.context)
        groups = np.zeros_like(seen.pairs) if self._shared else seen.pairs
        vectors = rows[seen.pairs] if self._shared else np.repeat(rows, len(seen.pairs), axis=0)
        np.add.at(self.gram, groups, vectors[:, :, None] * vectors[:, None, :])
        np.add.at(self.moments, groups, vectors * (seen.outcomes - 0.5)[:, None])
        self._redraw(np.unique(groups))

    def _redraw(self, groups: NDArray[Any]) -> None:
        for group in groups:
            self._inverses[group] = np.linalg.inv(self.gram[group])
            growth = np.linalg.slogdet(self.gram[group] / self._ridge)[1]
            self._radii[group] = self._radius(max(float(growth), 0.0))

    def refresh(self) -> None:
        """Draw all ellipsoids that follow from the sums."""
        self._redraw(np.arange(len(self.gram)))
