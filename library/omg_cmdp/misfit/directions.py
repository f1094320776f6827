"""Directions in which a class of functions may be too small: columns of contexts, their squares and products, steps."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.contexts import Context, alike, context_numbers
from omg_cmdp.oracles.feature_map import Category, FeatureMap
from omg_cmdp.records import columns_of
from omg_cmdp.validation import FloatArray

MOST_COLUMNS = 16
"""The columns that are squared and crossed; more would make too many products."""
MOST_LABELS = 64
"""Contexts that repeat have an indicator each, if there are at most this many."""
REPEATS = 10
"""The number of episodes from which on a context has an indicator."""


class DirectionKind(enum.Enum):
    """The kinds of directions; the value is the advice for a class that lacks one."""

    CONSTANT = "give the features a constant (`intercept=True`)"
    COLUMN = "add {name} to the features, or use oracles that look at the context"
    MISSING = "add an indicator of {name} to the features"
    SQUARE = "add {name} to the features, or use boosting"
    CROSS = "add the cross {name} to the features, or use boosting"
    CONTEXT = "give each context counts of its own (`contexts=`), or use richer features or boosting"
    STEP = "use a table for each step (`StepwiseRewards`, `StepwiseDynamics`)"
    SUPPORT = "allow {name} (`support=`)"


class Direction(NamedTuple):
    """A number for each episode, of mean square about 1."""

    name: str
    kind: DirectionKind
    columns: tuple[Any, ...]
    """The columns that it is made of."""
    values: FloatArray


def columns(contexts: Sequence[Context]) -> list[Direction]:
    """Return the contexts' numbers and indicators, centred, of mean square 1; none for labels.

    >>> [each.name for each in columns([{"age": 1, "ward": "a"}, {"age": None, "ward": "b"}, {"age": 3, "ward": "b"}])]
    ['age', 'age missing', 'ward=a']
    """
    if all(isinstance(context, Mapping) and context for context in contexts):
        return _of_records(contexts)
    vectors = [context_numbers(context) for context in contexts]
    if any(vector is None for vector in vectors) or len({len(vector) for vector in vectors if vector is not None}) != 1:
        return []
    table = np.array(vectors)
    found = (
        scaled(f"column {place}", DirectionKind.COLUMN, (place,), table[:, place]) for place in range(table.shape[1])
    )
    return [each for each in found if each is not None]


def _of_records(contexts: Sequence[Context]) -> list[Direction]:
    """Return the entries of a feature map fitted to the records."""
    table = {name: values for name, values in columns_of("contexts", contexts).items() if _varies(values)}
    if not table:
        return []
    features = FeatureMap.fit(table)
    found = []
    for rule in features.columns:
        values, made_of = table[rule.column], (rule.column,)
        entries = zip(rule.names(), zip(*map(rule.entries, values), strict=True), strict=True)
        own = [scaled(name, DirectionKind.COLUMN, made_of, np.array(entry)) for name, entry in entries]
        # Of two categories, one is the complement of the other.
        found += own[:1] if isinstance(rule, Category) and len(own) == 2 else own
        if rule.missing:
            marks = np.array([rule.marks(value)[0] for value in values])
            found.append(scaled(f"{rule.column} missing", DirectionKind.MISSING, made_of, marks))
    return [each for each in found if each is not None]


def _varies(values: list[Any]) -> bool:
    known = [value for value in values if value is not None]
    return len({str(value) for value in known}) > 1


def products(found: Sequence[Direction]) -> list[Direction]:
    """Return the squares of numbers, and the products of two columns."""
    first = list(found[:MOST_COLUMNS])
    squares = [
        scaled(f"{x.name}²", DirectionKind.SQUARE, x.columns, x.values**2)
        for x in first
        if len(np.unique(x.values)) > 2
    ]
    pairs = [(x, y) for x, y in itertools.combinations(first, 2) if x.columns != y.columns]
    crosses = [
        scaled(f"{x.name} × {y.name}", DirectionKind.CROSS, x.columns + y.columns, x.values * y.values)
        for x, y in pairs
    ]
    return [each for each in (*squares, *crosses) if each is not None]


def repeated(contexts: Sequence[Context]) -> list[Direction]:
    """Return an indicator of each context that repeats often, if there are several; none if there are too many."""
    places = [each for each in alike(contexts) if len(each) >= REPEATS]
    if not 2 <= len(places) <= MOST_LABELS:
        return []
    found = []
    for own in places:
        values = np.zeros(len(contexts))
        values[own] = 1.0
        found.append(Direction("the context", DirectionKind.CONTEXT, (), values))
    return found


def scaled(name: str, kind: DirectionKind, made_of: tuple[Any, ...], values: FloatArray) -> Direction | None:
    """Return the direction, centred and of mean square 1; None if it is constant."""
    centred = values - values.mean()
    spread = float(np.sqrt((centred**2).mean()))
    if not spread > 1e-9 * max(1.0, float(np.abs(values).max())):
        return None
    return Direction(name, kind, made_of, centred / spread)
