"""Tables as lists of contexts: a row is a *record*, a dictionary by column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from omg_cmdp.validation import listed


def context_rows(name: str, contexts: Iterable[Any]) -> Iterable[Any]:
    """Return `contexts`; of a pandas DataFrame or a structured array, the rows as records, None for a missing value.

    For vectors, pass a matrix, such as `frame.to_numpy()`: it is a list of its rows already.

    >>> list(context_rows("contexts", np.array([(70, "a"), (50, "b")], dtype=[("age", int), ("ward", "U1")])))
    [{'age': 70, 'ward': 'a'}, {'age': 50, 'ward': 'b'}]
    """
    if isinstance(contexts, Mapping):
        raise ValueError(f"`{name}` must be a list of contexts or a table, got a {type(contexts).__name__}")
    if not _is_table(contexts):
        try:
            iter(contexts)
        except TypeError:
            raise ValueError(f"`{name}` must be a list of contexts, got {contexts!r:.60}") from None
        return contexts
    columns = columns_of(name, contexts)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def columns_of(name: str, table: Any) -> dict[Any, list[Any]]:
    """Return the columns of a DataFrame, a structured array, a dictionary of columns, or a list of records."""
    if _is_table(table):
        names = list(table.columns if hasattr(table, "columns") else table.dtype.names)
        rows = table.itertuples(index=False, name=None) if hasattr(table, "columns") else table.tolist()
        found = dict(zip(names, map(list, zip(*rows, strict=True)), strict=False))
    elif isinstance(table, Mapping):
        names, found = list(table), {column: listed(name, values) for column, values in table.items()}
    elif isinstance(table, Sequence) and len(table) and all(isinstance(row, Mapping) for row in table):
        names = list(dict.fromkeys(column for row in table for column in row))
        found = {column: [row.get(column) for row in table] for column in names}
    else:
        raise ValueError(f"`{name}` must be a table, got {table!r:.60}")
    lengths = {len(values) for values in found.values()}
    if len(found) < len(names) or len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"`{name}` must have rows, and distinct columns of one length, got {names!r:.60}")
    return {column: [plain(value) for value in values] for column, values in found.items()}


def plain(value: Any) -> Any:
    """Return `value` without numpy's or pandas' clothes; None for one that is missing.

    >>> plain(np.int64(3)), plain(float("nan"))
    (3, None)
    """
    if missing(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def missing(value: Any) -> bool:
    """Return whether `value` is None, NaN, or what pandas writes for a missing one."""
    undefined = isinstance(value, float) and value != value
    return value is None or undefined or type(value).__name__ in ("NAType", "NaTType")


def _is_table(value: Any) -> bool:
    named = isinstance(value, np.ndarray) and value.dtype.names is not None
    return named or (hasattr(value, "columns") and hasattr(value, "itertuples"))
