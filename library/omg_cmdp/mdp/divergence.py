"""Distances between distributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.validation import FloatArray, float_table, in_range


def squared_hellinger(p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    """Return D²(p, q) = Σ (√p - √q)² over the last axis: the squared Hellinger distance, in [0, 2].

    The factor ½ is left out. This is the convention of Levy et al. (2023); ‖p - q‖₁² <= 4·D².

    Parameters
    ----------
    p, q : array (..., S)
        Distributions, or tables of them. Entries are at least 0; rows need not sum to one, and those of inadmissible
        actions do not.

    Examples
    --------
    >>> float(squared_hellinger([1.0, 0.0], [0.0, 1.0]))
    2.0
    """
    first, second = _roots("p", p), _roots("q", q)
    try:
        differences = first - second
    except ValueError:
        raise ValueError(f"`p` and `q` must have shapes that fit, got {first.shape} and {second.shape}") from None
    return np.asarray((differences * differences).sum(axis=-1))


def _roots(name: str, value: ArrayLike) -> FloatArray:
    table = float_table(name, value)
    if table.ndim == 0:
        raise ValueError(f"`{name}` must be a distribution or a table of them, got a number")
    in_range(name, table, 0.0, np.inf)
    return np.asarray(np.sqrt(table))
