"""Tables of past decisions, read into a `Log`; an error names every column, rule and row that is wrong.

`read_table` takes a row for every step, in any order; a person is an episode:

    person       a label; the log has the people in the order in which the table first names them
    step         whole numbers, the same first one for all, each once for every person; or dates, which are only ordered
    context      the columns named by `context`, equal in all rows of a person
    state, action, reward
    next_state   the state of the following row
    propensity   the probability with which the action was taken, in (0, 1]; missing for a whole person if unknown
    terminated   whether the episode ended with this step, of its own accord

The last three columns may be absent. How an episode ends:

- With all H steps, it is over. Where the last action led is in `next_state`, or in one more row that has a state and no
  action, or else nobody knows: the last reward is learned, the last transition is not.
- With fewer steps, the person *dropped out*: what would have followed is not known, and nothing is made up.
- If the last step says *terminated*, it is continued in the last state of the space, where ended episodes stay and
  earn nothing; a space that is made from the table gets such a state, named `ended`.

A reward may be missing: it is not known yet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from omg_cmdp.logs.log import RECORD, Log
from omg_cmdp.logs.step_table import ContextColumns, StepTable, labels_of, require_columns
from omg_cmdp.mdp.budgets import MOST_BUDGETS
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.space import Space
from omg_cmdp.records import plain
from omg_cmdp.validation import UNEXPECTED, BoolArray, FloatArray, file_path, instance_of, interval, listed

if TYPE_CHECKING:
    import pandas

FILES = (".csv", ".parquet")
ENDED = "ended"
"""The name of the state of episodes that are over, in a space that is made from a table."""

COSTS = tuple(f"cost_{kind}" for kind in range(MOST_BUDGETS))


def read_table(
    frame: pandas.DataFrame | str | os.PathLike[str],
    *,
    person: str = "episode",
    step: str = "step",
    context: ContextColumns | None = None,
    state: str = "state",
    action: str = "action",
    reward: str = "reward",
    propensity: str | None = None,
    next_state: str | None = None,
    terminated: str | None = None,
    cost: str | Sequence[str] | None = None,
    space: Space | None = None,
    states: Sequence[Any] | None = None,
    actions: Sequence[Any] | None = None,
    reward_range: tuple[float, float] | None = None,
) -> Log:
    """Return the log of a table of past decisions, with a row for every step of every person.

    All problems of the table are reported at once, with their rows. The module says how the last step, people who
    dropped out, and missing values are dealt with.

    Parameters
    ----------
    frame : pandas.DataFrame or path
        The table, or a .csv or .parquet file that holds it; problems of a CSV are reported by line.
    person, step, state, action, reward : str
        The names of these columns; by default those of `Log.table`.
    context : str, sequence of str, or mapping, optional
        The name of one column of labels; a list of columns, which make a vector if all of them hold numbers without
        gaps, and records otherwise, for a `FeatureMap`; or the fields of a record and their columns, {"age": "years"}.
        By default the columns of `Log.table`.
    propensity, next_state, terminated : str, optional
        The names of these columns; by default a column of just that name is used if the table has one.
    cost : str or sequence of str, optional
        The columns that say what a step cost, one for each kind, at most eight; by default there are no costs.
    space : Space, optional
        The states, actions and horizon, if they are known; by default they are those of the table, with any action
        allowed anywhere.
    states, actions : sequence of labels, optional
        The labels in these columns, in the order of their numbers. By default numbers if a `space` is given, and
        otherwise all labels in the table, sorted, or in the order of a categorical column.
    reward_range : pair of float, optional
        An interval that holds all rewards, and 0 if an episode terminates before its last step. By default (0, 1) if
        that holds them, and otherwise the least and the most in the table.

    Returns
    -------
    Log
        The episodes; `state_names` and `action_names` are the labels.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({
    ...     "patient": [7, 7, 8], "visit": [1, 2, 1], "age": [41.0, 41.0, 63.0], "stage": ["mild", "severe", "mild"],
    ...     "drug": ["A", "B", "A"], "better": [0.0, 1.0, 1.0]})
    >>> log = read_table(
    ...     frame, person="patient", step="visit", context=["age"], state="stage", action="drug", reward="better")
    >>> log.state_names, log.action_names, log.steps.tolist()
    (('mild', 'severe'), ('A', 'B'), [2, 1])
    >>> read_table(frame.assign(better=[0.0, "?", None], stage=["mild", None, "mild"]), person="patient", step="visit",
    ...     context=["age"], state="stage", action="drug", reward="better")
    Traceback (most recent call last):
    ValueError: the table has 2 problems:
    - column 'stage' must be known, got nan in row 1
    - column 'better' must be a finite number, got ? in row 1
    """
    if space is not None:
        instance_of("space", space, Space)
    whole = frame if not isinstance(frame, (str, os.PathLike)) else _read_file(frame)
    names = {"person": person, "step": step, "state": state, "action": action, "reward": reward}
    require_columns(whole, names.values())
    given = {"propensity": propensity, "next_state": next_state, "terminated": terminated}
    names |= {name: name for name in given if name in whole}
    names |= {name: column for name, column in given.items() if column is not None}
    if cost is not None:
        names |= dict(zip(COSTS, [cost] if isinstance(cost, str) else listed("cost", cost), strict=False))
    table = StepTable(whole, names, None if space is None else space.horizon)
    labels = _labels(whole, names, space, states, actions)
    return _log(table, labels, space, context, reward_range)


def _labels(
    frame: pandas.DataFrame,
    names: Mapping[str, str],
    space: Space | None,
    states: Sequence[Any] | None,
    actions: Sequence[Any] | None,
) -> dict[str, list[Any] | None]:
    """Return the labels of states and actions; None if they are numbers of a space."""
    found: dict[str, list[Any] | None] = {}
    for name, given, columns in (("states", states, ("state", "next_state")), ("actions", actions, ("action",))):
        if given is not None:
            labels = [plain(label) for label in listed(name, given)]
            distinct = all(isinstance(label, Hashable) for label in labels) and len(set(labels)) == len(labels)
            if not distinct or (space is not None and len(labels) != getattr(space, name)):
                rule = f"be distinct labels, as many as the space has {name}"
                raise ValueError(f"`{name}` must {rule}, got {given!r:.80}")
        elif space is not None:
            found[name] = None
            continue
        elif not (labels := labels_of(frame, [names[column] for column in columns if column in names])):
            raise ValueError(f"column {names[columns[0]]!r} must hold {name}, got none in any row")
        found[name] = labels
    return found


def _log(
    table: StepTable,
    labels: Mapping[str, list[Any] | None],
    space: Space | None,
    context: ContextColumns | None,
    reward_range: tuple[float, float] | None,
) -> Log:
    # A last row without an action says where the one before it led.
    only_seen = table.absent("action") & table.ends & (table.places > 0)
    counts = {name: getattr(space, name) if each is None else len(each) for name, each in labels.items()}
    states = table.codes("state", counts["states"], labels["states"])
    table.refuse("reward", only_seen & ~table.absent("reward"), "be empty where no action was taken")
    led = np.append(np.where(only_seen[1:], states[1:], -1), -1)[~only_seen]
    table.keep(~only_seen)
    states, horizon = states[~only_seen], table.horizon
    actions = table.codes("action", counts["actions"], labels["actions"])
    rewards = table.numbers("reward", missing=True)
    over = table.terminated()
    low, high = _range(rewards, over) if reward_range is None else interval("reward_range", reward_range)
    table.refuse("reward", (rewards < low) | (rewards > high), f"lie in [{low:g}, {high:g}]")
    follows = np.where(table.ends, led, np.append(states[1:], -1))
    if "next_state" in table.names:
        said = table.codes("next_state", counts["states"], labels["states"], missing=True)
        broken = (said >= 0) & (follows >= 0) & (said != follows) & table.sound
        table.refuse("next_state", broken, "be the state of the next step")
        follows = np.where(said >= 0, said, follows)
    chances = table.optional("propensity")
    table.refuse("propensity", np.isnan(chances) != np.isnan(chances[table.first]), "be known in all of an episode")
    table.refuse("propensity", (chances <= 0.0) | (chances > 1.0), "lie in (0, 1]")
    costs = np.array([table.optional(name) for name in COSTS if name in table.names])
    contexts = table.contexts(_usual(table.frame) if context is None else context)
    starts = table.first == np.arange(len(states))
    if space is None:
        ended = bool(over.any())
        first = np.bincount(states[starts], minlength=counts["states"] + ended) / starts.sum()
        space = Space(states=len(first), actions=counts["actions"], horizon=horizon, start=first)
        labels = {**labels, "states": [*(labels["states"] or []), *[ENDED] * ended]}
    table.refuse("action", ~space.admissible[states, actions], "be admissible in its state")
    elsewhere = starts & ~(space.start[states] > 0.0) & table.sound
    table.refuse("state", elsewhere, "begin where the space starts (give it a `start`, from which agents plan)")
    if not low <= 0.0 <= high and (over & (table.sizes < horizon)).any():
        table.problems.append(f"`reward_range` must hold 0, what ended episodes earn, got {(low, high)}")
    table.raise_problems()
    log = Log(space, reward_range=(low, high), state_names=labels["states"], action_names=labels["actions"])
    if horizon == 1:  # nothing is planned after the only step: agents without a model learn from it, too
        follows = np.where(follows < 0, states, follows)
    for label, first, end in zip(contexts, *table.spans(), strict=True):
        seen, last = slice(first, end), None if over[end - 1] else int(follows[end - 1])
        steps, known = (states[seen], actions[seen], rewards[seen]), None if np.isnan(chances[first]) else chances[seen]
        paid = None if not len(costs) or np.isnan(costs[:, seen]).any() else costs[:, seen]
        log.add(Episode.of_steps(space, label, steps, known, last=last, costs=paid))
    return log


def _range(rewards: FloatArray, over: BoolArray) -> tuple[float, float]:
    """Return (0, 1) if it holds all rewards, or else the least and the most; and 0, if an episode terminates."""
    known = np.append(rewards[~np.isnan(rewards)], np.zeros(int(over.any())))
    least, most = float(known.min(initial=np.inf)), float(known.max(initial=-np.inf))
    if least >= 0.0 and most <= 1.0:
        return 0.0, 1.0
    return (least, most) if least < most else (min(least, 0.0), max(most, 1.0))


def _read_file(path: str | os.PathLike[str]) -> pandas.DataFrame:
    """Return the table of a file; of a CSV, the index is the line."""
    import pandas

    source = file_path(path, "frame")
    if source.suffix not in FILES:
        raise ValueError(f"`frame` must be a DataFrame or end in {', '.join(FILES)}, got {os.fspath(path)!r}")
    if source.suffix == ".parquet":
        try:
            return pandas.read_parquet(source)
        except (*UNEXPECTED, ValueError) as error:
            raise ValueError(f"`frame` must be as pandas writes it, got {os.fspath(path)!r}: {error!r:.80}") from error
    frame = pandas.read_csv(source)
    frame.index = pandas.RangeIndex(2, len(frame) + 2, name="line")
    return frame


def _usual(frame: pandas.DataFrame) -> ContextColumns:
    fields = [name for name in map(str, frame) if name.startswith(RECORD)]
    if fields:
        return {name.removeprefix(RECORD): name for name in fields}
    numbered = sum(re.fullmatch(r"context_\d+", str(name)) is not None for name in frame)
    if not numbered:
        return "context"
    if "context" in frame:
        raise ValueError("`frame` has both `context` and `context_0`; say which by `context=`")
    return [f"context_{place}" for place in range(numbered)]
