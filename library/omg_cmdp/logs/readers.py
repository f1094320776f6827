"""Tables of logged episodes, read into a `Log`; an error names the column, the rule and the row.

`read_frame` takes a row for every step, in any order:

    episode      a label; the log has the episodes in the order in which the table first names them
    step         0, 1, ..., at most H-1, each once in every episode
    context      the columns named by `context`, equal in all rows of an episode
    state, action, reward, next_state   the next state is the state of the following step
    propensity   the probability with which the action was taken, in (0, 1]; the column may be absent
    terminated   whether the episode ended with this step, of its own accord; the column may be absent

A reward may be missing: it is not known yet. An episode with fewer than H steps was *truncated*: what would have
followed is not known. If its last step says *terminated*, it is continued in the last state of the space, where ended
episodes stay and earn nothing.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.logs.log import RECORD, Log
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.space import Space
from omg_cmdp.records import missing, plain
from omg_cmdp.validation import FloatArray, first_index, instance_of, interval, listed

if TYPE_CHECKING:
    import pandas

ContextColumns = str | Sequence[str] | Mapping[str, str]
"""The column of a label, the columns of a vector, or the fields of a record and their columns."""

COLUMNS = ("episode", "step", "state", "action", "reward", "next_state", "propensity", "terminated")
"""The columns of a table of steps; the last two may be absent."""


def read_frame(
    frame: pandas.DataFrame,
    space: Space,
    *,
    context: ContextColumns | None = None,
    columns: Mapping[str, str] | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
) -> Log:
    """Return the log of a table with a row for every step; an error names the column, the rule and the row.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table with the columns episode, step, state, action, reward, next_state, and perhaps propensity and
        terminated; the module says what they hold.
    space : Space
        The states, actions and horizon.
    context : str, sequence of str, or mapping, optional
        The name of one column of labels; a list of columns of numbers, which make a vector; or the fields of a record
        and their columns, {"age": "age", "ward": "unit"}, whatever they hold. By default the columns of `Log.table`.
    columns : mapping, optional
        The names of columns that are called otherwise: {"state": "s_t"}.
    reward_range : pair of float, default (0, 1)
        An interval that holds all rewards.

    Examples
    --------
    >>> import pandas
    >>> rows = {"episode": [7, 7], "step": [0, 1], "age": [0.4, 0.4], "state": [0, 1], "action": [1, 0]}
    >>> frame = pandas.DataFrame({**rows, "reward": [0.0, 1.0], "next_state": [1, 1], "propensity": [0.5, 0.5]})
    >>> log = read_frame(frame, Space(states=2, actions=2, horizon=2), context=["age"])
    >>> log.episodes[0].context, log.episodes[0].states
    (array([0.4]), array([0, 1, 1]))
    """
    instance_of("space", space, Space)
    table = _Steps(frame, _names({} if columns is None else columns), space.horizon)
    states, actions = table.whole("state", space.states), table.whole("action", space.actions)
    next_states, rewards = table.whole("next_state", space.states), table.numbers("reward", missing=True)
    low, high = interval("reward_range", reward_range)
    table.refuse("reward", (rewards < low) | (rewards > high), f"lie in [{low:g}, {high:g}]")
    table.refuse("action", ~space.admissible[states, actions], "be admissible in its state")
    broken = np.append(next_states[:-1] != states[1:], False) & ~table.ends
    table.refuse("next_state", broken, "be the state of the next step")
    chances = None
    if table.names["propensity"] in frame:
        chances = table.numbers("propensity")
        table.refuse("propensity", ~((chances > 0.0) & (chances <= 1.0)), "lie in (0, 1]")
    over, contexts = table.terminated(), table.contexts(_usual(frame) if context is None else context)
    log = Log(space, reward_range=reward_range)
    for label, first, end in zip(contexts, *table.spans(), strict=True):
        seen, last = slice(first, end), None if over[end - 1] else int(next_states[end - 1])
        known = None if chances is None else chances[seen]
        steps = states[seen], actions[seen], rewards[seen], known
        # Not `add`: the columns were checked as a whole above, with the row in the message.
        log.episodes.append(Episode.of_steps(space, label, *steps, last=last))
    return log


def _usual(frame: pandas.DataFrame) -> ContextColumns:
    fields = [name for name in map(str, frame) if name.startswith(RECORD)]
    if fields:
        return {name.removeprefix(RECORD): name for name in fields}
    numbered = [name for name in frame if re.fullmatch(r"context_\d+", str(name))]
    return sorted(numbered, key=lambda name: int(name.removeprefix("context_"))) or "context"


class _Steps:
    """The rows of a frame, sorted by episode and step; `ends` marks the last one of each episode."""

    def __init__(self, frame: pandas.DataFrame, names: Mapping[str, str], horizon: int) -> None:
        require_columns(frame, [names[name] for name in COLUMNS[:-2]])
        self.frame, self.names = frame, names
        self.rows: NDArray[np.int64] = np.arange(len(frame))
        episodes = frame[names["episode"]].factorize()[0]
        self.refuse("episode", episodes < 0, "be a label")
        steps = self.whole("step", horizon)
        # By episode, and within it by step: the table may come in any order.
        self.rows = np.lexsort((steps, episodes))
        episodes, steps = episodes[self.rows], steps[self.rows]
        # The place of each row in its episode; where it is not the step, one is missing or double.
        places = np.arange(len(frame)) - np.searchsorted(episodes, episodes)
        self.refuse("step", steps != places, f"run from 0 to {horizon - 1}, each once in an episode")
        self.ends = np.append(np.diff(episodes) > 0, True)

    def spans(self) -> tuple[list[int], list[int]]:
        """Return where each episode begins, and where it ends."""
        ends = (np.flatnonzero(self.ends) + 1).tolist()
        return [0, *ends[:-1]], ends

    def terminated(self) -> NDArray[np.bool_]:
        """Return which steps end their episode of its own accord."""
        if self.names["terminated"] not in self.frame:
            return np.zeros(len(self.rows), dtype=np.bool_)
        over: NDArray[np.bool_] = self.whole("terminated", 2) == 1
        self.refuse("terminated", over & ~self.ends, "be true in the last step of an episode only")
        return over

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
            return columns[0]
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

    def _firsts(self, name: str, entries: list[Any]) -> list[Any]:
        """Return the entry of every episode; raise unless all its rows have the same."""
        begins, ends = self.spans()
        spans = [entries[begin:end] for begin, end in zip(begins, ends, strict=True)]
        changed = [entry != span[0] for span in spans for entry in span]
        self.refuse(name, np.array(changed), "be the same in all rows of an episode")
        return [span[0] for span in spans]

    def refuse(self, name: str, bad: NDArray[np.bool_], rule: str) -> None:
        """Raise at the first entry of `bad`, an array like `rows`, if there is one."""
        if not bad.any():
            return
        row, column = self.rows[first_index(np.asarray(bad))], self.names.get(name, name)
        value, label = self.frame[column].iloc[row], self.frame.index[row]
        raise ValueError(f"column {column!r} must {rule}, got {value} in row {label}")


def _names(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the name of each column in the table."""
    instance_of("columns", columns, Mapping)
    for name in columns:
        if name not in COLUMNS:
            raise ValueError(f"`columns` must rename some of {', '.join(COLUMNS)}, got {name!r}")
    return {name: columns.get(name, name) for name in COLUMNS}


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
