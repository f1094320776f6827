"""Multinomial logistic regression with ridge penalties: fits tables to data.

    min_W  Σ_i w_i·(-log p(y_i|z_i)) + ½·Σ_k λ_k·‖W_k‖²,   p(·|z) = softmax(z·W)

`design` is z (n, d), `outcomes` are y (n,), in 0..K-1, `penalties` are λ (d,), `weights` w (n,) or None for ones, and W
is (d, K). All λ must be positive, since adding one vector to all columns of W changes nothing else.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.validation import FloatArray
from omg_lab.worlds.base import softmax

CLOSE = 1e-9
MOST_STEPS = 100


def fit(
    design: FloatArray,
    outcomes: NDArray[np.int64],
    penalties: FloatArray,
    *,
    start: FloatArray,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Return W by damped Newton steps from any `start` (d, K) whose rows sum to zero.

    >>> W = fit(np.ones((4, 1)), np.array([0, 0, 0, 1]), np.array([1e-9]), start=np.zeros((1, 2)))
    >>> softmax(W).round(6)  # the frequencies
    array([[0.75, 0.25]])
    """
    size, classes = start.shape
    weighted = design if weights is None else design * weights[:, None]
    coefficients, chosen = start, np.eye(classes)[outcomes]
    for _ in range(MOST_STEPS):
        p = softmax(design @ coefficients)
        gradient = weighted.T @ (p - chosen) + penalties[:, None] * coefficients
        # Σ w·(diag(p) - p·pᵀ) ⊗ z·zᵀ, as (K, d, K, d).
        crossed = (p[:, :, None] * design[:, None, :]).reshape(len(design), -1)
        curvature = -(crossed.T @ (p[:, :, None] * weighted[:, None, :]).reshape(len(design), -1))
        blocks = curvature.reshape(classes, size, classes, size)
        for k in range(classes):
            blocks[k, :, k] += (p[:, k, None] * design).T @ weighted + np.diag(penalties)
        step = np.linalg.solve(curvature, gradient.T.reshape(-1)).reshape(classes, size).T
        # Damped by log(1 + β)/β, β the range of the step in a row of logits: this converges from any start.
        span = float(np.ptp(design @ step, axis=1).max())
        length = math.log1p(span) / span if span > CLOSE else 1.0
        # Rows of W sum to zero, at the optimum and at every step towards it; the rest is rounding.
        coefficients = coefficients - length * (step - step.mean(axis=1, keepdims=True))
        if np.ptp(step, axis=1).max() < CLOSE:
            return np.asarray(coefficients)
    raise ArithmeticError(f"no fit after {MOST_STEPS} steps of Newton's method")
