"""A table with a row for every step, its columns checked as a whole: errors name the column, the rule and the row."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context, context_from_json
from omg_cmdp.logs.writers import EXACT
from omg_cmdp.records import missing, plain
from omg_cmdp.validation import FloatArray, first_index, instance_of, listed

if TYPE_CHECKING:
    import pandas

ContextColumns = str | Sequence[str] | Mapping[str, str]
"""The column of a label, the columns of a vector, or the fields of a record and their columns."""

NEEDED, OURS = ("episode", "step", "state", "action", "reward", "next_state"), ("length", "total")
COLUMNS = (*NEEDED, "propensity", "terminated", *OURS)
"""The columns of a table of steps."""

SAME = "be the same in all rows of an episode"


class StepTable:
    """The rows of a frame, sorted by episode and step.

    `first` is the place of the first row of each row's episode, `sizes` the number of its rows; `ends` marks its last.
    """

    def __init__(self, frame: pandas.DataFrame, columns: Mapping[str, str], horizon: int) -> None:
        names = {name: name for name in COLUMNS} | _checked(columns)
        require_columns(frame, [names[name] for name in NEEDED])
        own = EXACT in frame  # a file of ours; elsewhere a length may be that of a stay
        self.present = {name for name in names if names[name] in frame and (own or name not in OURS or name in columns)}
        self.frame, self.names = frame, names
        self.rows: NDArray[np.int64] = np.arange(len(frame))
        episodes = frame[names["episode"]].factorize()[0]
        self.refuse("episode", episodes < 0, "be a label")
        steps = self.whole("step", horizon)
        # By episode, and within it by step: the table may come in any order.
        self.rows = np.lexsort((steps, episodes))
        episodes, steps = episodes[self.rows], steps[self.rows]
        # The place of each row in its episode; where it is not the step, one is missing or double.
        self.first = np.searchsorted(episodes, episodes)
        places = np.arange(len(frame)) - self.first
        self.refuse("step", steps != places, f"run from 0 to {horizon - 1}, each once in an episode")
        self.ends = np.append(np.diff(episodes) > 0, True)
        self.sizes = np.bincount(episodes)[episodes]

    def spans(self) -> tuple[list[int], list[int]]:
        """Return where each episode begins, and where it ends."""
        ends = (np.flatnonzero(self.ends) + 1).tolist()
        return [0, *ends[:-1]], ends

    def terminated(self) -> NDArray[np.bool_]:
        """Return which steps end their episode of its own accord."""
        if "terminated" not in self.present:
            return np.zeros(len(self.rows), dtype=np.bool_)
        over: NDArray[np.bool_] = self.whole("terminated", 2) == 1
        self.refuse("terminated", over & ~self.ends, "be true in the last step of an episode only")
        return over

    def optional(self, name: str) -> FloatArray:
        """Return a column of finite numbers, nan where one is missing; all are if the table has no such column."""
        return self.numbers(name, missing=True) if name in self.present else np.full(len(self.rows), np.nan)

    def per_episode(self, name: str) -> FloatArray:
        """Return such a column that is the same in all rows of an episode."""
        values = self.optional(name)
        first = values[self.first]
        self.refuse(name, (values != first) & ~(np.isnan(values) & np.isnan(first)), SAME)
        return values

    def numbers(self, name: str, advice: str = "", *, missing: bool = False) -> FloatArray:
        """Return a column of finite numbers; nan for missing ones, if they may be."""
        import pandas

        column = pandas.to_numeric(self.frame[self.names.get(name, name)], errors="coerce")
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)[self.rows]
        absent = self.frame[self.names.get(name, name)].isna().to_numpy()[self.rows] if missing else False
        self.refuse(name, ~(np.isfinite(values) | absent), f"be a finite number{advice}")
        return np.asarray(values)

    def whole(self, name: str, count: int) -> NDArray[np.int64]:
        """Return a column of numbers in 0..count-1."""
        values = self.numbers(name)
        self.refuse(name, (values != values.round()) | (values < 0) | (values >= count), f"lie in 0..{count - 1}")
        return values.astype(np.int64)

    def contexts(self, context: ContextColumns) -> list[Context]:
        """Return the context of every episode: a label, a vector, or a record with None for what is missing."""
        fields = context.values() if isinstance(context, Mapping) else context
        names = [context] if isinstance(context, str) else listed("context", fields)
        if not names:
            raise ValueError("`context` must name at least one column, got none")
        require_columns(self.frame, names)
        columns = [self._firsts(name, self._entries(name, context)) for name in names]
        if isinstance(context, str):
            return columns[0] if context != EXACT else list(map(self._decoded, columns[0], self.spans()[0]))
        rows = zip(*columns, strict=True)
        return [dict(zip(context, row, strict=True)) if isinstance(context, Mapping) else np.array(row) for row in rows]

    def _entries(self, name: str, context: ContextColumns) -> list[Any]:
        """Return a column of labels, of numbers for a vector, or of whatever a record holds."""
        column: NDArray[Any] = self.frame[name].astype(object).to_numpy()[self.rows]
        if isinstance(context, Mapping):
            return [plain(entry) for entry in column]
        if isinstance(context, str):
            unfit = [missing(entry) or not isinstance(entry, Hashable) for entry in column]
            self.refuse(name, np.array(unfit), "be a label (a vector needs columns of numbers)")
            return list(column)
        # A likely mistake, for which the message has advice.
        labels = isinstance(self.frame[name].iloc[0], str)
        return list(self.numbers(name, f" (for a column of labels: context={name!r})" if labels else ""))

    def _decoded(self, text: Any, place: int) -> Context:
        """Return the context of which `context_json` is the text."""
        try:
            return context_from_json(str(text)[1:-1])
        except (KeyError, TypeError, ValueError):
            self.refuse(EXACT, np.arange(len(self.rows)) == place, "hold what `Log.write` wrote")

    def _firsts(self, name: str, entries: list[Any]) -> list[Any]:
        """Return the entry of every episode; raise unless all its rows have the same."""
        changed = [entry != entries[first] for entry, first in zip(entries, self.first.tolist(), strict=True)]
        self.refuse(name, np.array(changed), SAME)
        return [entries[begin] for begin in self.spans()[0]]

    def refuse(self, name: str, bad: NDArray[np.bool_], rule: str) -> None:
        """Raise at the first entry of `bad`, an array like `rows`, if there is one."""
        if not bad.any():
            return
        row, column = self.rows[first_index(np.asarray(bad))], self.names.get(name, name)
        value, label = self.frame[column].iloc[row], self.frame.index[row]
        raise ValueError(f"column {column!r} must {rule}, got {value} in row {label}")


def _checked(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the names of columns that are called otherwise."""
    instance_of("columns", columns, Mapping)
    for name in columns:
        if name not in COLUMNS:
            raise ValueError(f"`columns` must rename some of {', '.join(COLUMNS)}, got {name!r}")
    return dict(columns)


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
