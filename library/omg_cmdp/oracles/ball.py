"""Least squares in a ball: the weights of norm at most B with the smallest sum of squares."""

from __future__ import annotations

import math

import numpy as np

from omg_cmdp.validation import FloatArray

HALVINGS = 200


def least_squares(root: FloatArray, norm: float, ridge: float = 0.0) -> tuple[FloatArray, float]:
    """Return argmin of uᵀGu - 2uᵀb + y + ridge·‖u‖² over ‖u‖ <= norm, and uᵀGu - 2uᵀb + y there, without the ridge.

    G, b and y are the blocks of RᵀR, R the `root` (d+1, d+1). The product itself is never formed: it would lose half of
    the digits, and small features beside large ones altogether.

    >>> root = np.array([[1.0, 2.0], [0.0, 0.0]])  # (u - 2)²
    >>> [round(float(least_squares(root, norm)[0][0]), 9) for norm in (1.0, 3.0)], round(least_squares(root, 1.0)[1], 9)
    ([1.0, 2.0], 1.0)
    """
    size = len(root) - 1
    rows = np.concatenate([root[:size, :size], math.sqrt(ridge) * np.eye(size)])
    targets = np.append(root[:size, size], np.zeros(size))
    # Columns of length 1 before anything is factored: the answer does not depend on units of features.
    lengths = np.linalg.norm(rows, axis=0)
    lengths[lengths == 0.0] = 1.0
    weights = np.linalg.lstsq(rows / lengths, targets)[0] / lengths
    if np.linalg.norm(weights) > norm:
        left, strengths, right = np.linalg.svd(rows, full_matrices=False)
        moments, curvatures = strengths * (targets @ left), strengths**2
        most = float(np.linalg.norm(moments)) / norm
        weights = (moments / (curvatures + multiplier(moments, curvatures, norm, most))) @ right
    errors = root[:, :size] @ weights - root[:, size]
    return weights, float(errors @ errors)


def multiplier(moments: FloatArray, curvatures: FloatArray, norm: float, most: float) -> float:
    """Return the μ in [0, most] with ‖moments/(curvatures + μ)‖ = norm, which falls in μ: the ball's surface.

    >>> round(multiplier(np.array([2.0]), np.array([1.0]), norm=0.5, most=10.0), 9)
    3.0
    """
    low, high = 0.0, most
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        outside = np.linalg.norm(moments / (curvatures + middle)) > norm
        low, high = (middle, high) if outside else (low, middle)
    return high
