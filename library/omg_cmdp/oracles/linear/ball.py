"""Least squares in a ball: the weights of norm at most B with the smallest sum of squares."""

from __future__ import annotations

import numpy as np

from omg_cmdp.validation import FloatArray

HALVINGS = 200


def least_squares(root: FloatArray, norm: float, ridge: float = 0.0) -> tuple[FloatArray, float]:
    """Return argmin of uᵀGu - 2uᵀb + y + ridge·‖u‖² over ‖u‖ <= norm, and uᵀGu - 2uᵀb + y there, without the ridge.

    G, b and y are the blocks of RᵀR, R the `root` (d+1, d+1).

    >>> root = np.array([[1.0, 2.0], [0.0, 0.0]])  # (u - 2)²
    >>> [round(float(least_squares(root, norm)[0][0]), 9) for norm in (1.0, 3.0)], round(least_squares(root, 1.0)[1], 9)
    ([1.0, 2.0], 1.0)
    """
    blocks = root.T @ root
    gram, moment, total = blocks[:-1, :-1], blocks[-1, :-1], blocks[-1, -1]
    spectrum, basis = np.linalg.eigh(gram)
    # Rounding may leave a singular Gram matrix slightly indefinite.
    spectrum, moment = np.maximum(spectrum, 0.0), moment @ basis
    strengths = spectrum + ridge
    low, high = 1e-14 * strengths[-1] + 1e-300, np.linalg.norm(moment) / norm
    # ‖(G + μ)⁻¹b‖ falls in μ: bisect for the ball's surface, unless the minimum lies inside.
    for _ in range(HALVINGS if np.linalg.norm(moment / (strengths + low)) > norm else 0):
        middle = 0.5 * (low + high)
        outside = np.linalg.norm(moment / (strengths + middle)) > norm
        low, high = (middle, high) if outside else (low, middle)
    weights = moment / (strengths + low)
    return weights @ basis.T, float(max(total - 2.0 * weights @ moment + weights**2 @ spectrum, 0.0))
