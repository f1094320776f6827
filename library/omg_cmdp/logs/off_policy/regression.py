"""Means by cell, with slopes in the features of the context.

Without features a cell belongs to one context, and what a fit says there is the plain mean of what was seen: nothing is
assumed of other contexts, and a context that came once has one episode to learn from. With features φ all contexts
share the cells, and a cell has a mean and slopes, ȳ + β·(φ(c) - φ̄), by ridge regression. That is right if the quantity
is linear in φ(c), and an approximation otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.logs.off_policy.steps import IntArray, LoggedSteps
from omg_cmdp.validation import FloatArray, float_table, function

Features = Callable[[Any], ArrayLike]
"""context -> (d,), numbers of the size of 1 without a constant."""

RIDGE = 1.0


class Places:
    """The cells that places share: `cells` (M,) and `features` (M, d), with d = 0 if every place has its own."""

    def __init__(self, steps: LoggedSteps, features: Features | None) -> None:
        self.cells, self.count = np.arange(len(steps.owners)), len(steps.owners)
        self.features = np.empty((self.count, 0))
        if features is not None:
            function("features", features)
            self.count = steps.space.states
            # All contexts share the cell of a state: features tell them apart.
            self.cells = steps.states
            self.features = feature_rows(features, steps.contexts)[steps.owners]


class CellRegression:
    """Least squares of any targets on the same cells and features of N examples, from several episodes."""

    def __init__(self, cells: IntArray, features: FloatArray, episodes: IntArray, count: int) -> None:
        self.cells, self.count = cells, count
        self.sizes = np.bincount(cells, minlength=count)
        self._divisors = np.maximum(self.sizes, 1)
        self.centres = np.array([self._mean(column) for column in features.T]).reshape(-1, count).T
        self.features = features - self.centres[cells]
        dimension = features.shape[1]
        gram = np.empty((count, dimension, dimension))
        for row in range(dimension):
            for column in range(dimension):
                gram[:, row, column] = self._sum(self.features[:, row] * self.features[:, column])
        # Small matrices, one for each cell, and the same for all targets.
        self._inverse = np.linalg.inv(gram + RIDGE * np.eye(dimension)) if dimension else gram
        # What the fit would miss of an example if it had been left out, as a multiple of the residual: m/(m - 1).
        pairs = np.unique(np.stack([cells, episodes]), axis=1)[0]
        those = np.bincount(pairs, minlength=count)
        # At least ½ in the denominator: a cell of one episode has no residual to scale.
        self.left_out = (those / np.maximum(those - 1.0 - dimension, 0.5))[cells]

    def fit(self, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean (count,) and the slopes (count, d) of every cell; an empty one has the mean of all."""
        means = np.where(self.sizes > 0, self._mean(targets), targets.mean())
        moments = [self._sum(column * targets) for column in self.features.T]
        return means, self._solved(moments)

    def predict(self, fit: tuple[FloatArray, FloatArray], cells: IntArray, features: FloatArray) -> FloatArray:
        """Return what `fit` says of queries with these cells and features."""
        means, slopes = fit
        return np.asarray(means[cells] + ((features - self.centres[cells]) * slopes[cells]).sum(axis=1))

    def smooth(self, targets: FloatArray) -> FloatArray:
        """Return what the fit to `targets` says of the examples themselves."""
        means, slopes = self.fit(targets)
        return np.asarray(means[self.cells] + (self.features * slopes[self.cells]).sum(axis=1))

    def pull_back(self, cells: IntArray, features: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the α, (N,), with Σ α·y = Σ weights·prediction for all targets y, empty cells left out."""
        totals = np.bincount(cells, weights, minlength=self.count)
        # The transpose of `predict`: what a sum of predictions owes to each target.
        offsets = (features - self.centres[cells]) * weights[:, None]
        moments = [np.bincount(cells, column, minlength=self.count).astype(np.float64) for column in offsets.T]
        slopes = self._solved(moments)
        return np.asarray((totals / self._divisors)[self.cells] + (self.features * slopes[self.cells]).sum(axis=1))

    def _solved(self, moments: list[FloatArray]) -> FloatArray:
        if not moments:
            return np.zeros((self.count, 0))
        return np.asarray(np.einsum("kij,jk->ki", self._inverse, np.array(moments)))

    def _sum(self, values: FloatArray) -> FloatArray:
        return np.bincount(self.cells, values, minlength=self.count).astype(np.float64)

    def _mean(self, values: FloatArray) -> FloatArray:
        return self._sum(values) / self._divisors


def feature_rows(features: Features, contexts: list[Context]) -> FloatArray:
    """Return the features of each context, (C, d)."""
    rows = [float_table("features", features(context)) for context in contexts]
    for row in rows:
        if row.ndim != 1 or row.shape != rows[0].shape or not np.isfinite(row).all():
            raise ValueError(f"`features` must return vectors of one length with finite numbers, got {row!r:.80}")
    return np.array(rows)
