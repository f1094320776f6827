"""Distances between distributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def squared_hellinger(p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    """Return D²(p, q) = Σ (√p - √q)² over the last axis: the squared Hellinger distance, in [0, 2].

    The factor ½ is left out. This is the convention of Levy et al. (2023); ‖p - q‖₁² <= 4·D².

    >>> float(squared_hellinger([1.0, 0.0], [0.0, 1.0]))
    2.0
    """
    roots = np.sqrt(np.asarray(p, dtype=np.float64)) - np.sqrt(np.asarray(q, dtype=np.float64))
    return np.asarray((roots * roots).sum(axis=-1))
