"""Contexts as points: tables of finite numbers, and Euclidean distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.validation import FloatArray, float_table


def read_points(name: str, values: ArrayLike) -> FloatArray:
    """Return a table (N, d) of finite numbers."""
    table = float_table(name, values)
    if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all():
        raise ValueError(f"`{name}` must be finite numbers of shape (N, d), got shape {table.shape}")
    return table


def read_point(context: Context) -> FloatArray:
    """Return a context that is a vector, or a number, as a vector."""
    array = float_table("context", context)
    if array.ndim > 1 or not np.isfinite(array).all():
        raise ValueError(f"`context` must be a vector of finite numbers, got {context!r:.60}")
    return array.reshape(-1)


def distances_to(points: FloatArray, context: Context) -> FloatArray:
    """Return the Euclidean distances of `points` (N, d) and a context."""
    place = read_point(context)
    if len(points) and points.shape[1] != len(place):
        raise ValueError(f"`context` must be a vector of {points.shape[1]} numbers, got {context!r:.60}")
    return np.asarray(np.sqrt(((points - place) ** 2).sum(axis=1))) if len(points) else np.empty(0)
