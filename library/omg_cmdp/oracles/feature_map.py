"""Features of records: scaled, cut, one-hot, crossed, by rules that are fitted to a table and saved with the agent.

A vector is [1, numbers, categories, crosses], divided by the root of the number of its blocks, so that its norm is at
most 1. The rules:

    a number      middle and half width are those of the table's quantiles: z = (x - middle)/half, cut to [-1, 1]
    an outlier    is cut like that
    a missing one counts as the table's median; if the table misses some too, one more entry says so
    a category    has an entry of its own if it is one of the most frequent; all others, and missing ones, are zeros
    a cross       the products of the entries of two columns
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.oracles.feature_columns import Category, Number, fit_category, fit_number, fits_a_number
from omg_cmdp.recipes.recipe import Made
from omg_cmdp.records import columns_of
from omg_cmdp.validation import FloatArray, instance_of, listed, positive_integer

__all__ = ["Category", "FeatureMap", "Number"]


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class FeatureMap(Made):
    """Rules that make a vector of norm at most 1 of any record, whatever is missing or strange in it.

    `FeatureMap.fit` finds them from a table. They are saved with an agent that uses them, and compared when a state is
    loaded.

    Parameters
    ----------
    columns : tuple of Number or Category
        The rule of each column, at least one.
    crosses : tuple of pairs of columns, default ()
        Pairs of columns whose entries are multiplied with each other.

    Examples
    --------
    >>> table = {"age": [20, 40, 60, None], "ward": ["a", "b", "a", "a"]}
    >>> features = FeatureMap.fit(table, crosses=[("age", "ward")])
    >>> features.names
    ('1', 'age', 'age missing', 'ward=a', 'ward=b', 'age × ward=a', 'age × ward=b')
    >>> (features({"age": 1000, "ward": "b"}) * 5**0.5).round(2)
    array([1., 1., 0., 0., 1., 0., 1.])
    >>> (features({"ward": "new"}) * 5**0.5).round(2)
    array([1., 0., 1., 0., 0., 0., 0.])
    """

    has_intercept: ClassVar[bool] = True
    """The first entry is a constant, so that oracles add none."""

    columns: tuple[Number | Category, ...]
    crosses: tuple[tuple[str | int, str | int], ...] = ()

    def __post_init__(self) -> None:
        columns = tuple(listed("columns", self.columns))
        for each in columns:
            instance_of("columns", each, Number, Category)
        crosses = tuple(tuple(listed("crosses", pair)) for pair in listed("crosses", self.crosses))
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "crosses", crosses)
        known = [each.column for each in columns]
        if not known or len(set(known)) < len(known):
            raise ValueError(f"`columns` must be distinct, and at least one, got {known}")
        for pair in crosses:
            if len(pair) != 2 or not _are_among(known, pair):
                raise ValueError(f"`crosses` must be pairs of the columns {known}, got {pair!r}")

    @classmethod
    def fit(
        cls,
        table: Any,
        *,
        numbers: Sequence[str | int] | None = None,
        categories: Sequence[str | int] | None = None,
        crosses: Sequence[tuple[str | int, str | int]] = (),
        outside: float = 0.01,
        most: int = 20,
    ) -> FeatureMap:
        """Return the rules for a table.

        Parameters
        ----------
        table : DataFrame, structured array, mapping of columns, or list of records
            Past contexts, from which quantiles and frequent categories are read.
        numbers, categories : sequence of columns, optional
            The columns to use. Without either, all columns are used, as numbers where all values are.
        crosses : sequence of pairs of columns, default ()
            Pairs of columns whose entries are multiplied with each other.
        outside : float, default 0.01
            Numbers beyond the quantiles `outside` and 1 - `outside` are outliers, which are cut.
        most : int, default 20
            The number of categories of a column that have an entry of their own, the most frequent ones.
        """
        if not isinstance(outside, (int, float)) or not 0.0 <= outside < 0.5:
            raise ValueError(f"`outside` must lie in [0, 1/2), got {outside!r}")
        most, found = positive_integer("most", most), columns_of("table", table)
        if numbers is None and categories is None:
            # A column of numbers with one text in it is one of categories: nothing is guessed from the text.
            numbers = [column for column, values in found.items() if all(map(fits_a_number, values))]
            categories = [column for column in found if column not in numbers]
        known = list(found)
        of_numbers = [fit_number(each, found[each], outside) for each in _columns("numbers", numbers, known)]
        of_categories = [fit_category(each, found[each], most) for each in _columns("categories", categories, known)]
        return cls(columns=(*of_numbers, *of_categories), crosses=tuple(listed("crosses", crosses)))

    def __call__(self, context: Context) -> FloatArray:
        """Return the features (d,) of a record that has some of the columns."""
        if not isinstance(context, Mapping) or not any(each.column in context for each in self.columns):
            known = [each.column for each in self.columns]
            advice = "a row of a data frame becomes one by `row.to_dict()`"
            raise ValueError(
                f"`context` must be a record with some of the columns {known}, got {context!r:.80}; {advice}"
            )
        blocks = {each.column: each.entries(context.get(each.column)) for each in self.columns}
        flat = [1.0]
        for each in self.columns:
            flat += blocks[each.column] + each.marks(context.get(each.column))
        for one, other in self.crosses:
            flat += [x * y for x in blocks[one] for y in blocks[other]]
        # Each block has norm at most 1: divided by the root of their number, so has the whole vector.
        return np.array(flat) * self._weight

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the entries."""
        blocks = {each.column: each.names() for each in self.columns}
        own = [[*each.names(), *[f"{each.column} missing"][: each.missing]] for each in self.columns]
        crossed = [[f"{x} × {y}" for x in blocks[one] for y in blocks[other]] for one, other in self.crosses]
        return ("1", *(name for names in [*own, *crossed] for name in names))

    @property
    def dimension(self) -> int:
        """The number of features."""
        return len(self.names)

    @functools.cached_property
    def _weight(self) -> float:
        return 1.0 / math.sqrt(1 + sum(each.blocks for each in self.columns) + len(self.crosses))

    @functools.cached_property
    def fingerprint(self) -> str:
        """A short text that tells maps apart, in the settings of every oracle that uses one."""
        rules = json.dumps(dataclasses.asdict(self))
        return fingerprint(np.frombuffer(rules.encode(), dtype=np.uint8))


def _columns(name: str, given: Sequence[str | int] | None, known: list[str | int]) -> list[str | int]:
    columns = [] if given is None else listed(name, given)
    if isinstance(given, str) or not _are_among(known, columns):
        raise ValueError(f"`{name}` must list columns among {known}, got {given!r:.60}")
    return columns


def _are_among(known: list[str | int], columns: Iterable[Any]) -> bool:
    return all(isinstance(column, (str, int)) and column in known for column in columns)
