"""Means by cell, with slopes in features: ȳ + β·(φ - φ̄) in every cell, by ridge regression."""

from __future__ import annotations

import numpy as np

from omg_cmdp.validation import FloatArray, IntArray

RIDGE = 1.0


class CellRegression:
    """Least squares of any targets on the same cells (N,) and features (N, d) of N examples."""

    def __init__(self, cells: IntArray, features: FloatArray, count: int) -> None:
        self._cells, self._count = cells, count
        self._sizes = np.bincount(cells, minlength=count)
        self._centres = np.array([self._mean(column) for column in features.T]).reshape(-1, count).T
        self._features = features - self._centres[cells]
        dimension = features.shape[1]
        gram = np.empty((count, dimension, dimension))
        for row in range(dimension):
            for column in range(dimension):
                gram[:, row, column] = self._sum(self._features[:, row] * self._features[:, column])
        # Small matrices, one for each cell, and the same for all targets.
        self._inverse = np.linalg.inv(gram + RIDGE * np.eye(dimension))

    def fit(self, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean (count,) and the slopes (count, d) of every cell; an empty one has the mean of all."""
        means = np.where(self._sizes > 0, self._mean(targets), targets.mean())
        moments = [self._sum(column * targets) for column in self._features.T]
        return means, np.einsum("kij,jk->ki", self._inverse, np.array(moments).reshape(-1, self._count))

    def predict(self, fit: tuple[FloatArray, FloatArray], cells: IntArray, features: FloatArray) -> FloatArray:
        """Return what `fit` says of queries with these cells and features."""
        means, slopes = fit
        return np.asarray(means[cells] + ((features - self._centres[cells]) * slopes[cells]).sum(axis=1))

    def _sum(self, values: FloatArray) -> FloatArray:
        return np.bincount(self._cells, values, minlength=self._count).astype(np.float64)

    def _mean(self, values: FloatArray) -> FloatArray:
        return self._sum(values) / np.maximum(self._sizes, 1)
