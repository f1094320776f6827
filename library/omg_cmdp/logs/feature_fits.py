"""The models by which features are ranked: ridge and softmax regression of one pair, and a ridge step beyond them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.misfit.evidence import REWARD_PRECISION
from omg_cmdp.validation import FloatArray, IntArray

RIDGE = 1.0
ITERATIONS = 40
"""Steps of the softmax fit, each of which lowers its loss."""


class Fit:
    """A base fitted to the examples of one pair, and a ridge step along what is added to it."""

    errors: FloatArray
    """What the base leaves, (n, outcomes)."""
    weights: FloatArray
    """The curvature of the loss, (n, outcomes)."""
    precision: float

    def loss(self, rows: FloatArray, outcomes: NDArray[Any], moved: FloatArray | None) -> FloatArray:
        """Return the losses (n,), with the change `moved` (n, outcomes) of the predictions."""
        raise NotImplementedError

    def step(self, base: FloatArray, more: FloatArray, train: IntArray, test: IntArray) -> FloatArray:
        """Return by how much `more` (all, k) moves the predictions of `test`, fitted on `train`."""
        moved = np.empty((len(test), self.errors.shape[1]))
        for column in range(self.errors.shape[1]):
            weights = self.weights[:, column]
            scaled_base = weights[:, None] * base[train]
            inner = base[train].T @ scaled_base + 1e-9 * np.eye(base.shape[1])
            fit = np.linalg.lstsq(inner, scaled_base.T @ more[train])[0]
            left = more[train] - base[train] @ fit
            curvature = left.T @ (weights[:, None] * left) + self.precision * np.eye(more.shape[1])
            chosen = np.linalg.solve(curvature, left.T @ self.errors[:, column])
            moved[:, column] = (more[test] - base[test] @ fit) @ chosen
        return moved


class MeanFit(Fit):
    """Ridge regression of rewards."""

    def __init__(self, rows: FloatArray, outcomes: FloatArray) -> None:
        inner = rows.T @ rows + RIDGE * np.eye(rows.shape[1])
        self._theta = np.linalg.solve(inner, rows.T @ (outcomes - 0.5))
        self.errors = (outcomes - 0.5 - rows @ self._theta)[:, None]
        self.weights = np.ones_like(self.errors)
        self.precision = max(float((self.errors**2).mean()), 0.01) * REWARD_PRECISION

    def loss(self, rows: FloatArray, outcomes: NDArray[Any], moved: FloatArray | None) -> FloatArray:
        """Return the squared errors."""
        predicted = 0.5 + rows @ self._theta + (0.0 if moved is None else moved[:, 0])
        return np.asarray((np.clip(predicted, 0.0, 1.0) - outcomes) ** 2)


class SoftmaxFit(Fit):
    """Softmax regression of next states, on those that were seen and one for all others."""

    precision = 1.0

    def __init__(self, rows: FloatArray, outcomes: IntArray) -> None:
        self._seen = np.unique(outcomes)
        hits = self._hits(outcomes)
        self._theta = np.zeros((rows.shape[1], hits.shape[1]))
        # Böhning (1992): half of ZᵀZ bounds the curvature from above, so that every step lowers the loss.
        solve = np.linalg.inv(0.5 * rows.T @ rows + RIDGE * np.eye(rows.shape[1]))
        for _ in range(ITERATIONS):
            gradient = rows.T @ (hits - _softmax(rows @ self._theta)) - RIDGE * self._theta
            self._theta += solve @ gradient
        chances = _softmax(rows @ self._theta)
        self.errors, self.weights = hits - chances, chances * (1.0 - chances) + 1e-12

    def _hits(self, outcomes: IntArray) -> FloatArray:
        hits = (outcomes[:, None] == self._seen).astype(np.float64)
        return np.column_stack([hits, 1.0 - hits.sum(axis=1)])

    def loss(self, rows: FloatArray, outcomes: NDArray[Any], moved: FloatArray | None) -> FloatArray:
        """Return -log P̂(s')."""
        logits = rows @ self._theta + (0.0 if moved is None else np.clip(moved, -5.0, 5.0))
        return np.asarray(-np.log((_softmax(logits) * self._hits(outcomes)).sum(axis=1)))


def _softmax(logits: FloatArray) -> FloatArray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
