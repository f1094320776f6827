"""A class of N known functions of the context, as tables: checked once per context, and cached."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import KEPT_BYTES, Context, ContextCache, Listing
from omg_cmdp.oracles.losses import Loss
from omg_cmdp.validation import FloatArray, float_table, frozen

Predictions = Callable[[Any], ArrayLike] | Mapping[Any, ArrayLike]
"""context -> (N, S, A), or (N, S, A, S) for dynamics, or either with steps (N, H, S, A, ...)."""

SHARE = 5
"""The tables of a context, and all that is computed from them, take at most this many times their size."""


class Functions:
    """The tables of all N functions at one context, (N, ...), and what is computed from them once.

    Tables are also kept transposed, as columns (cells, N): sums over the class are faster so.
    """

    def __init__(self, tables: FloatArray) -> None:
        self.tables = tables
        self.shape = tables.shape[1:]

    @functools.cached_property
    def columns(self) -> FloatArray:
        """The tables as (cells, N)."""
        # A row of this layout is the class at one cell: sums over the class read memory in order.
        return np.array(self.tables.reshape(len(self.tables), -1).T, order="C")

    @functools.cached_property
    def exponentials(self) -> FloatArray:
        """exp(-2f²) and exp(-2(1-f)²), (2·cells, N): for the substitution function."""
        return np.concatenate([np.exp(-2.0 * self.columns**2), np.exp(-2.0 * (1.0 - self.columns) ** 2)])

    @functools.cached_property
    def roots(self) -> FloatArray:
        """√P, (cells, N): for Hellinger distances."""
        return np.sqrt(self.columns)


class FunctionClass:
    """`predictions`, a callable or a mapping, with checks and a small cache."""

    def __init__(self, predictions: Predictions, loss: Loss, argument: str = "predictions") -> None:
        if not callable(predictions) and not (isinstance(predictions, Mapping) and predictions):
            kinds = "a callable or a mapping of contexts to tables"
            raise ValueError(f"`{argument}` must be {kinds}, got {predictions!r:.60}")
        self.argument = argument
        self._predictions: Predictions = predictions
        self.listed: tuple[Any, ...] | None = None
        if type(predictions) is dict:
            # Copied at the door: what callers do with their tables later must not change the class.
            self._predictions = {key: frozen(float_table("predictions", each)) for key, each in predictions.items()}
            self.listed = tuple(predictions)
        self._listing = Listing(predictions.keys(), "in `predictions`") if isinstance(predictions, Mapping) else None
        self.contexts = None if self._listing is None else self._listing.contexts
        """The labels of a mapping; None for a callable."""
        self.loss = loss
        self.shape: tuple[int, ...] | None = None
        """The shape of the tables, (N, ...); None before the first context."""
        self._kept: ContextCache[Functions] = ContextCache(KEPT_BYTES, size=_bytes)

    @property
    def size(self) -> int | None:
        """N; None before the first context."""
        return None if self.shape is None else self.shape[0]

    @property
    def sizes(self) -> tuple[int, int] | None:
        """S and A of tables that are listed, or were seen; None otherwise."""
        first = next(iter(self._predictions.values()), None) if isinstance(self._predictions, dict) else None
        shape = self.shape if first is None else np.shape(first)
        pairs = () if shape is None or len(shape) < 3 else self.loss.pairs(shape)[-2:]
        return (pairs[0], pairs[1]) if len(pairs) == 2 else None

    def __call__(self, context: Context) -> Functions:
        """Return the tables at `context`. The class never changes, so a recent context is not evaluated again."""
        return self._kept.get(context, self._evaluate)

    def facts(self, context: Context) -> FloatArray:
        """Return the tables, by which a state knows the class again."""
        return self(context).tables

    def _evaluate(self, context: Context) -> Functions:
        if isinstance(self._predictions, Mapping):
            assert self._listing is not None
            values = self._predictions[self._listing.contexts[self._listing.number(context)]]
        else:
            values = self._predictions(context)
        tables = frozen(float_table("predictions", values)) if self.listed is None else np.asarray(values)
        self.loss.check_tables("predictions", tables)
        if self.shape not in (None, tables.shape):
            raise ValueError(f"`predictions` must have one shape for all contexts, {self.shape}, got {tables.shape}")
        # The first context fixes N and the sizes; a class whose size changes has no regret bound.
        self.shape = tables.shape
        return Functions(tables)


def _bytes(functions: Functions) -> int:
    return SHARE * functions.tables.nbytes
