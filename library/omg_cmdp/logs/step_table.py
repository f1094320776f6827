"""A table with a row for every step, checked as a whole: all that is wrong is said at once, by column, rule and row."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.records import missing, plain
from omg_cmdp.validation import BoolArray, FloatArray, IntArray, listed

if TYPE_CHECKING:
    import pandas

ContextColumns = str | Sequence[str] | Mapping[str, str]
"""The column of a label, the columns of a vector or record, or the fields of a record and their columns."""


MOST_ROWS = 8
"""The number of rows that a message lists for one rule."""


class StepTable:
    """The rows of a frame, sorted by person and step, and all that is wrong with them.

    `first` is the place of the first row of each row's person, `sizes` the number of its rows; `ends` marks its last.
    `sound` marks the rows of persons whose steps follow one another: only of these can next states be checked.
    """

    def __init__(self, frame: pandas.DataFrame, names: Mapping[str, str], horizon: int | None) -> None:
        require_columns(frame, names.values())
        self.frame, self.names = frame, names
        self.problems: list[str] = []
        self._blamed: dict[str, BoolArray] = {}
        self.rows: IntArray = np.arange(len(frame))
        people = frame[names["person"]].factorize()[0]
        self.refuse("person", people < 0, "be a label")
        steps, lowest = self._steps(people)
        idle = self.absent("action")  # such a row may stand after the last step
        self.horizon = int(steps.max(initial=0, where=~idle)) + 1 if horizon is None else horizon
        allowed = f"lie in {lowest}..{lowest + self.horizon - 1}"
        self.refuse("step", (steps < 0) | (steps >= self.horizon + idle), allowed)
        # By person, and within it by step: the table may come in any order.
        self.rows = np.lexsort((steps, people))
        people = people[self.rows]
        self._arrange(people)
        # Where its place is not its step, one is missing or double.
        rule = f"run from {lowest} to {lowest + self.horizon - 1}, each once in an episode"
        self.refuse("step", steps[self.rows] != self.places, rule)
        broken = np.bincount(people + 1, self._blamed.get("step", np.zeros(len(frame)))[self.rows])
        self.sound: BoolArray = (broken[people + 1] == 0) & (people >= 0)

    def _arrange(self, people: IntArray) -> None:
        """Let `first`, `places`, `ends` and `sizes` follow from the person of each row, sorted."""
        self.first = np.searchsorted(people, people)
        self.places = np.arange(len(people)) - self.first
        self.ends: BoolArray = np.append(np.diff(people) > 0, True)
        self.sizes = np.searchsorted(people, people, side="right") - self.first

    def _steps(self, people: IntArray) -> tuple[IntArray, int]:
        """Return the steps, counted from 0, and the number that the table has for the first; dates are only ordered."""
        import pandas

        column = self.frame[self.names["step"]]
        if pandas.api.types.is_datetime64_any_dtype(column):
            self.refuse("step", column.isna().to_numpy(), "be a date")
            by_date = column.groupby(people).rank(method="first").fillna(1.0)
            return by_date.to_numpy().astype(np.int64) - 1, 0
        values = self.numbers("step")
        self.refuse("step", values != values.round(), "be a whole number")
        # The usual first step: one person that begins elsewhere is wrong, not all the others.
        firsts = pandas.Series(values).groupby(people).min().mode()
        lowest = float(firsts.iloc[0]) if len(firsts) else 0.0
        return np.clip(values - lowest, -1, 2**40).astype(np.int64), int(lowest)

    def keep(self, kept: BoolArray) -> None:
        """Leave out the other rows, each of them the last of its person."""
        self.rows, self.sound = self.rows[kept], self.sound[kept]
        self._arrange(self.first[kept])  # which is as good a number of a person as any

    def spans(self) -> tuple[list[int], list[int]]:
        """Return where each person begins, and where it ends."""
        ends = (np.flatnonzero(self.ends) + 1).tolist()
        return [0, *ends[:-1]], ends

    def terminated(self) -> BoolArray:
        """Return which steps end their episode of its own accord."""
        if "terminated" not in self.names:
            return np.zeros(len(self.rows), dtype=np.bool_)
        over: BoolArray = self.codes("terminated", 2) == 1
        self.refuse("terminated", over & ~self.ends & self.sound, "be true in the last step of an episode only")
        return over

    def optional(self, name: str) -> FloatArray:
        """Return a column of finite numbers, nan where one is missing; all are if the table has no such column."""
        return self.numbers(name, missing=True) if name in self.names else np.full(len(self.rows), np.nan)

    def numbers(self, name: str, *, missing: bool = False) -> FloatArray:
        """Return a column of finite numbers; nan for missing ones, if they may be, and 0 for those that are refused."""
        import pandas

        column = self.frame[self.names.get(name, name)]
        if column.dtype == object:  # pandas fails at an integer that no float can hold
            column = column.map(lambda each: np.inf if isinstance(each, int) and not _is_number(each) else each)
        column = pandas.to_numeric(column, errors="coerce")
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)[self.rows]
        absent = self.absent(name) if missing else np.zeros(len(self.rows), dtype=np.bool_)
        bad = ~(np.isfinite(values) | absent)
        self.refuse(name, bad, "be a finite number")
        return np.where(bad, 0.0, values)

    def absent(self, name: str) -> BoolArray:
        """Return where nothing stands in a column."""
        return np.asarray(self.frame[self.names.get(name, name)].isna().to_numpy()[self.rows])

    def codes(self, name: str, count: int, labels: Sequence[Any] | None = None, *, missing: bool = False) -> IntArray:
        """Return a column of numbers in 0..count-1, or of `labels`, as numbers; 0 if refused, -1 for a missing one."""
        absent = self.absent(name)
        if labels is None:
            values = self.numbers(name, missing=missing)
            bad = (values != values.round()) | ~(values >= 0) | ~(values < count)
            self.refuse(name, bad & ~absent, f"lie in 0..{count - 1}")
        else:
            known = {label: place for place, label in enumerate(labels)}
            entries = [plain(entry) for entry in self.frame[self.names[name]].astype(object).to_numpy()[self.rows]]
            values = np.array([known.get(each, -1) if isinstance(each, Hashable) else -1 for each in entries])
            bad = values < 0
            self.refuse(name, bad & ~absent, f"be one of {', '.join(map(repr, labels)):.200}")
        if not missing:
            self.refuse(name, absent, "be a finite number" if labels is None else "be known")
        return np.where(absent, -1 if missing else 0, np.where(bad, 0, values)).astype(np.int64)

    def contexts(self, context: ContextColumns) -> list[Context]:
        """Return the context of every person: a label, a vector, or a record with None for what is missing."""
        fields = context.values() if isinstance(context, Mapping) else context
        names = [context] if isinstance(context, str) else listed("context", fields)
        if not names:
            raise ValueError("`context` must name at least one column, got none")
        require_columns(self.frame, names)
        if isinstance(context, str):
            entries = self._entries(context)
            unfit = [missing(entry) or not isinstance(entry, Hashable) for entry in entries]
            self.refuse(context, np.array(unfit), "be a label (a vector needs columns of numbers)")
            return self._firsts(context, entries)
        columns = [self._firsts(name, [plain(each) for each in self._entries(name)]) for name in names]
        rows = zip(*columns, strict=True)
        if isinstance(context, Mapping) or not all(_is_number(each) for column in columns for each in column):
            return [dict(zip(context, row, strict=True)) for row in rows]
        return [np.array(row, dtype=np.float64) for row in rows]

    def _entries(self, name: str) -> list[Any]:
        return list(self.frame[name].astype(object).to_numpy()[self.rows])

    def _firsts(self, name: str, entries: list[Any]) -> list[Any]:
        """Return the entry of every person, the same in all its rows."""
        firsts = self.first.tolist()
        differ = [
            not (missing(entry) and missing(entries[first])) and bool(np.any(entry != entries[first]))
            for entry, first in zip(entries, firsts, strict=True)
        ]
        self.refuse(name, np.array(differ), "be the same in all rows of an episode")
        return [entries[begin] for begin in self.spans()[0]]

    def refuse(self, name: str, bad: BoolArray, rule: str) -> None:
        """Note a problem in the rows where `bad`, an array like `rows`; each row of a column is blamed once."""
        blamed = self._blamed.setdefault(name, np.zeros(len(self.frame), dtype=np.bool_))
        rows = self.rows[np.asarray(bad) & ~blamed[self.rows]]
        if not len(rows):
            return
        blamed[rows] = True
        rows = np.sort(rows)
        column, where = self.names.get(name, name), self.frame.index.name or "row"
        said = f"column {column!r} must {rule}, got {self.frame[column].iloc[rows[0]]}"
        said += f" in {where} {self.frame.index[rows[0]]}"
        if len(rows) > 1:
            more = ", ".join(map(str, self.frame.index[rows[1:MOST_ROWS]])) + ", …" * (len(rows) > MOST_ROWS)
            said += f" ({len(rows)} in all, also in {more})"
        self.problems.append(said)

    def raise_problems(self) -> None:
        """Raise if anything is wrong, with all of it."""
        if len(self.problems) == 1:
            raise ValueError(self.problems[0])
        if self.problems:
            raise ValueError("\n- ".join([f"the table has {len(self.problems)} problems:", *self.problems]))


def _is_number(value: Any) -> bool:
    """Return whether it is a number that a float can hold: no infinity, nor an integer of 400 digits."""
    try:
        return isinstance(value, (int, float)) and math.isfinite(value)
    except OverflowError:
        return False


def labels_of(frame: pandas.DataFrame, names: Iterable[str]) -> list[Any]:
    """Return what stands in these columns, each once: in the order of their categories, of numbers or of letters."""
    import pandas

    columns = [frame[name] for name in names]
    if all(isinstance(column.dtype, pandas.CategoricalDtype) for column in columns):
        found = [each for column in columns for each in column.cat.categories]
        return list(dict.fromkeys(map(plain, found)))
    known = {plain(each): None for column in columns for each in column.dropna().astype(object).unique()}
    # Numbers before texts, each in their order.
    return sorted(known, key=lambda each: (isinstance(each, str), each if _is_number(each) else 0.0, str(each)))


def require_columns(frame: Any, names: Iterable[str]) -> None:
    """Raise unless `frame` is a data frame with rows and with these columns, each once."""
    import pandas

    if not isinstance(frame, pandas.DataFrame) or not len(frame):
        raise ValueError(f"`frame` must be a pandas.DataFrame with at least one row, got {type(frame).__name__}")
    if not frame.columns.is_unique:
        raise ValueError(f"`frame` must have each column once, got {list(frame.columns)}")
    for name in names:
        try:
            known = name in frame
        except TypeError:  # what is no label at all
            known = False
        if not known:
            raise ValueError(f"`frame` must have a column {name!r:.60}, got {list(frame.columns)}")
