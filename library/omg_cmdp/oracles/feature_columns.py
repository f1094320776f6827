"""The rules by which one column of a table becomes features: a scaled number, or a one-hot category."""

from __future__ import annotations

import collections
import dataclasses
import math
from typing import Any, final

import numpy as np

from omg_cmdp.recipes.recipe import Made
from omg_cmdp.records import plain


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class Number(Made):
    """The rule of a column of numbers: `low` and `high` become -1 and 1, and `median` stands for a missing number.

    Parameters
    ----------
    column : str or int
        The column's name, or its place in a row.
    low, high : float
        The range that becomes [-1, 1]; numbers outside are cut off.
    median : float
        The number that stands for a missing one.
    missing : bool
        Whether an entry says that the number was missing; False by default, for columns that are always there.

    >>> Number(column="age", low=20.0, median=50.0, high=80.0).high
    80.0
    """

    column: str | int
    low: float
    median: float
    high: float
    missing: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and self.low <= self.median <= self.high and 0.0 < self._half < math.inf):
            rule = "have a finite `low` < `high` with the `median` in between"
            raise ValueError(f"a number must {rule}, got {self}")

    @property
    def _half(self) -> float:
        return 0.5 * self.high - 0.5 * self.low

    @property
    def blocks(self) -> int:
        """The most that the column adds to the squared norm."""
        return 1 + self.missing

    def names(self) -> list[str]:
        """Return the name of the main entry."""
        return [f"{self.column}"]

    def entries(self, value: Any) -> list[float]:
        """Return the scaled number."""
        number = _number(value)
        # Halves are taken first: low + high may overflow.
        moved = (self.median if number is None else number) - (0.5 * self.low + 0.5 * self.high)
        return [min(max(moved / self._half, -1.0), 1.0)]

    def marks(self, value: Any) -> list[float]:
        """Return whether the value is missing, if such values have an entry."""
        return [float(_number(value) is None)] if self.missing else []


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class Category(Made):
    """The rule of a column of categories, of which those in `labels` have an entry.

    Parameters
    ----------
    column : str or int
        The column's name, or its place in a row.
    labels : tuple of str
        The categories with an entry of their own, in this order; all others are 0 everywhere.

    >>> Category(column="ward", labels=("a", "b")).labels
    ('a', 'b')
    """

    column: str | int
    labels: tuple[str, ...]

    missing, blocks = False, 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        if not self.labels or len(set(self.labels)) < len(self.labels) or not all(type(x) is str for x in self.labels):
            raise ValueError(f"a category must have distinct texts as `labels`, got {self}")

    def names(self) -> list[str]:
        """Return the names of the entries."""
        return [f"{self.column}={label}" for label in self.labels]

    def entries(self, value: Any) -> list[float]:
        """Return the one-hot vector of the value, or zeros."""
        own = self.label(value)
        return [float(label == own) for label in self.labels]

    @staticmethod
    def label(value: Any) -> str | None:
        """Return the text by which a value is known, whether it is one of `labels` or not; None if it is missing.

        1 and 1.0 are the same, as whole numbers become floats where some are missing.

        >>> Category.label(1.0)
        '1'
        """
        value = plain(value)
        # pandas turns whole numbers into floats in a column with missing values.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return None if value is None else str(value)

    def marks(self, value: Any) -> list[float]:
        """Return nothing: a missing category has zeros only."""
        return []


def fit_number(column: str | int, values: list[Any], outside: float) -> Number:
    """Return the rule of a column of numbers, with the quantiles `outside` and 1 - `outside` as its ends."""
    known = [number for value in values if (number := _number(value)) is not None]
    finite = [number for number in known if math.isfinite(number)]
    if not finite or min(finite) == max(finite):
        raise ValueError(f"`table` must have different numbers in column {column!r}, got {values!r:.60}")
    low, median, high = np.quantile(finite, [outside, 0.5, 1.0 - outside]).tolist()
    if low == high:  # nearly all are the same
        low, high = min(finite), max(finite)
    return Number(column=column, low=low, median=median, high=high, missing=len(known) < len(values))


def fit_category(column: str | int, values: list[Any], most: int) -> Category:
    """Return the rule of a column of categories, with an entry for each of the `most` frequent ones."""
    counts = collections.Counter(label for value in values if (label := Category.label(value)) is not None)
    if not counts:
        raise ValueError(f"`table` must have a category in column {column!r}, got {values!r:.60}")
    # By frequency, ties by label: the same table makes the same map in any order of rows.
    frequent = sorted(counts, key=lambda label: (-counts[label], label))[:most]
    return Category(column=column, labels=tuple(sorted(frequent)))


def fits_a_number(value: Any) -> bool:
    """Return whether a column with this value may be one of numbers."""
    return value is None or isinstance(value, (int, float))


def _number(value: Any) -> float | None:
    """Return a number, also from text such as "1.5"; None for anything else."""
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        return None
    return None if math.isnan(number) else number
