"""The inputs that a foreign model gets for a context: one vector of numbers for each pair of state and action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.features import Described
from omg_cmdp.validation import BoolArray, FloatArray, float_table

InputMap = Callable[[Any], ArrayLike]
"""context -> (S, A, d), or (d,), to which the pairs are added one-hot."""


class Inputs(Described):
    """`features` behind checks; a vector z, or a context that is one, becomes [z, one-hot of s, one-hot of a].

    >>> Inputs(None, np.ones((2, 1), dtype=bool))([0.5])
    array([[[0.5, 1. , 0. , 1. ]],
           [[0.5, 0. , 1. , 1. ]]])
    """

    def __init__(self, features: InputMap | None, admissible: BoolArray) -> None:
        super().__init__(features)
        self._admissible = admissible

    def __call__(self, context: Context, dimension: int | None = None) -> FloatArray:
        """Return (S, A, d), with d = `dimension` if one is given; refuse a bad context."""
        table = self._vector(context) if self.function is None else self._featured(context, self.function)
        if dimension not in (None, table.shape[-1]):
            raise ValueError(f"`context` must give inputs of {dimension} numbers as before, got {table.shape[-1]}")
        return table

    facts = __call__

    def _vector(self, context: Context) -> FloatArray:
        vector = float_table("context", context)
        if vector.ndim != 1 or not np.isfinite(vector).all():
            raise ValueError(f"`context` must be a vector of finite numbers, got {context!r}")
        return self._one_hot(vector)

    def _one_hot(self, vector: FloatArray) -> FloatArray:
        states, actions = self._admissible.shape
        # One-hot, so that a linear model has an intercept of its own for each state and action.
        parts = (vector, np.eye(states)[:, None], np.eye(actions))
        return np.concatenate([np.broadcast_to(part, (states, actions, part.shape[-1])) for part in parts], axis=-1)

    def _featured(self, context: Context, features: InputMap) -> FloatArray:
        table = float_table("features", features(context))
        table = self._one_hot(table) if table.ndim == 1 else table
        if table.ndim != 3 or table.shape[:2] != self._admissible.shape or table.size == 0:
            wanted = "(d,) or ({}, {}, d)".format(*self._admissible.shape)
            raise ValueError(f"`features` must return shape {wanted}, got {table.shape} for `context` {context!r}")
        # The features of other pairs are never used.
        if not np.isfinite(table[self._admissible]).all():
            raise ValueError(f"`features` must be finite for every `context`, got nan or inf for {context!r}")
        return table
