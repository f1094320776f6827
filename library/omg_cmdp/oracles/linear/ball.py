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
        moments = strengths * (targets @ left)
        low, high = 0.0, float(np.linalg.norm(moments)) / norm
        # ‖(G + μ)⁻¹b‖ falls in μ: bisect for the ball's surface.
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            outside = np.linalg.norm(moments / (strengths**2 + middle)) > norm
            low, high = (middle, high) if outside else (low, middle)
        weights = (moments / (strengths**2 + high)) @ right
    errors = root[:, :size] @ weights - root[:, size]
    return weights, float(errors @ errors)
