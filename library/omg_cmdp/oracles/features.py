"""Features of a context: checked vectors of bounded norm, with a constant for an intercept."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.feature_map import FeatureMap
from omg_cmdp.validation import FloatArray, instance_of, positive_number

FeatureFunction = Callable[[Any], ArrayLike]
"""context -> a vector (d,), or one for every pair, (S, A, d): a `FeatureMap`, or a function of yours.

What has a `fingerprint`, as a `FeatureMap` has, is checked when a state is loaded. A function whose features have a
constant, or entries that add up to one, may say so: with the attribute `has_intercept = True`, as a `FeatureMap` has,
no other constant is added.
"""


class Described:
    """A function of contexts, and its mark in the settings."""

    argument = "features"

    def __init__(self, function: FeatureFunction | None) -> None:
        if function is not None and not callable(function):
            raise ValueError(f"`features` must be a callable or None, got {type(function).__name__}")
        self.function = function
        mark = getattr(function, "fingerprint", None)
        self.settings = () if function is None else (f"features {mark or 'a function'}",)
        # Without a fingerprint, functions are told apart by what they say: see `witnesses`.
        self.listed: tuple[Context, ...] | None = None if function is not None and mark is None else ()


class Features(Described):
    """`function`, or the context itself, as an array of `shape` whose rows have Euclidean norm at most `norm`.

    With an `intercept` the rows are (z, 1), and `shape` and `norm`, √(X² + 1), are those of the longer rows; unless the
    features have a constant already.
    """

    def __init__(
        self, function: FeatureFunction | None, shape: tuple[int, ...], norm: float, *, intercept: bool = False
    ) -> None:
        super().__init__(function)
        instance_of("intercept", intercept, bool)
        if isinstance(function, FeatureMap) and shape != (function.dimension,):
            raise ValueError(f"`features` must have shape {shape}, got a map to ({function.dimension},)")
        self._given, self.longest = shape, positive_number("feature_norm", norm)
        if math.isinf(self.longest * self.longest):
            raise ValueError(f"`feature_norm` must have a finite square, got {norm!r}")
        # Normalised features miss their norm by rounding.
        self._limit = self.longest * (1.0 + 1e-9)
        self.adds_constant = intercept and not getattr(function, "has_intercept", False)
        self.shape = (*shape[:-1], shape[-1] + self.adds_constant)
        self.norm = math.hypot(self.longest, 1.0) if self.adds_constant else self.longest
        self.settings = *self.settings, f"feature_norm {self.longest}", f"intercept {self.adds_constant}"

    def __call__(self, context: Context) -> FloatArray:
        """Return the features, (rows, d)."""
        name = "context" if self.function is None else "features(context)"
        given = context if self.function is None else self.function(context)
        try:
            array = np.asarray(given)
        except Exception:  # whatever a foreign object raises
            array = np.asarray(None)
        if array.dtype.kind not in "biuf" or array.shape != self._given:
            got = array.shape if array.dtype.kind in "biuf" else repr(context)
            raise ValueError(f"`{name}` must be a vector of numbers of shape {self._given}, got {got}")
        rows = array.astype(np.float64, order="C").reshape(-1, self._given[-1])
        # hypot neither overflows nor underflows, as a sum of squares would.
        norms = [math.hypot(*row) for row in rows.tolist()]
        if not all(norm <= self._limit for norm in norms):  # a NaN is refused here too
            got = f"got {np.max(norms):.6g}"
            raise ValueError(f"`{name}` must have norm at most `feature_norm` = {self.longest:g}, {got}")
        return np.column_stack([rows, np.ones(len(rows))]) if self.adds_constant else rows

    facts = __call__


class SimplexFeatures(Features):
    """Features that are mixture weights: d numbers, none negative, that sum to one."""

    def __call__(self, context: Context) -> FloatArray:
        """Return the weights, (1, d)."""
        rows = super().__call__(context)
        if rows.min() < 0.0 or abs(rows.sum() - 1.0) > 1e-8:
            raise ValueError(f"`context` must be non-negative and sum to 1, got {rows[0]}")
        return rows
