"""Draws by inversion: one uniform number, one index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def draw_index(weights: NDArray[np.float64], uniform: float) -> int:
    """Return the index that `uniform` in [0, 1) falls on: i with probability wᵢ/Σw, never one of weight 0.

    >>> [draw_index(np.array([1.0, 0.0, 3.0]), uniform) for uniform in (0.0, 0.2, 0.25, 0.9)]
    [0, 0, 2, 2]
    """
    cumulative = weights.cumsum()
    return int(cumulative.searchsorted(uniform * cumulative[-1], side="right"))
