"""Files and tables of logged episodes, read into a `Log`; an error names the column, the rule and the row.

`read_frame` takes a row for every step, in any order:

    episode      a label; the log has the episodes in the order in which the table first names them
    step         0, 1, ..., at most H-1, each once in every episode
    context      the columns named by `context`, equal in all rows of an episode
    state, action, reward, next_state   the next state is the state of the following step
    propensity   the probability with which the action was taken, in (0, 1]; missing in a whole episode if unknown
    terminated   whether the episode ended with this step, of its own accord
    length       the number of steps before the episode ended, if its rows go on after the end
    total        the sum of the rewards, where only that is known

The last four columns may be absent. `length` and `total` are those of `Log.write`, or named by `columns`: a column that
happens to be called so in a table of yours is left alone.

A reward may be missing: it is not known yet. An episode with fewer than H steps was *truncated*: what would have
followed is not known. If its last step says *terminated*, it is continued in the last state of the space, where ended
episodes stay and earn nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from omg_cmdp.logs.lines import read_lines
from omg_cmdp.logs.log import RECORD, Log
from omg_cmdp.logs.step_table import COLUMNS, ContextColumns, StepTable
from omg_cmdp.logs.writers import EXACT
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import file_path, instance_of, interval

if TYPE_CHECKING:
    import pandas

READABLE = (".jsonl", ".csv", ".parquet")


def read_log(path: str | os.PathLike[str], space: Space, *, reward_range: tuple[float, float] = (0.0, 1.0)) -> Log:
    """Return the log that `Log.write` or `play` wrote to a file, equal in every bit.

    Parameters
    ----------
    path : path-like
        A file whose name ends in .jsonl, .csv or .parquet. Of a .jsonl that a crash cut off, all whole lines are read.
    space : Space
        The states, actions and horizon.
    reward_range : pair of float, default (0, 1)
        An interval that holds all rewards.

    Examples
    --------
    >>> import tempfile
    >>> episode = Episode(context="NA", states=[0, 0], actions=[1], rewards=[1.0])
    >>> log = Log(Space(states=1, actions=2, horizon=1), [episode])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read_log(log.write(f"{folder}/log.csv"), log.space).contexts
    ['NA']
    """
    source = file_path(path)
    instance_of("space", space, Space)
    if source.suffix not in READABLE:
        raise ValueError(f"`path` must end in {', '.join(READABLE)}, got {os.fspath(path)!r}")
    interval("reward_range", reward_range)
    source.open("rb").close()  # what the system refuses is no fault of the content
    try:
        return _read(source, space, reward_range)
    except Exception as error:  # whatever a reader of foreign bytes raises
        rule = "be a log of this space and range, as `Log.write` writes it"
        raise ValueError(f"`path` must {rule}, got {os.fspath(path)!r}: {error}") from error


def _read(source: Path, space: Space, reward_range: tuple[float, float]) -> Log:
    if source.suffix == ".jsonl":
        return Log(space, read_lines(source), reward_range=reward_range)
    import pandas

    if source.suffix == ".csv":
        # Python's floats are exact, those of pandas only in some versions. Columns for people are not read: what stands
        # in them may look like anything.
        floats = dict.fromkeys(("reward", "propensity", "total"), lambda text: float(text or "nan"))
        frame = pandas.read_csv(source, converters=floats, usecols=lambda name: name in (*COLUMNS, EXACT))
    else:
        frame = pandas.read_parquet(source)
    return read_frame(frame, space, reward_range=reward_range) if len(frame) else Log(space, reward_range=reward_range)


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
        A table with the columns episode, step, state, action, reward, next_state, and perhaps propensity, terminated,
        length and total; the module says what they hold.
    space : Space
        The states, actions and horizon.
    context : str, sequence of str, or mapping, optional
        The name of one column of labels; a list of columns of numbers, which make a vector; or the fields of a record
        and their columns, {"age": "age", "ward": "unit"}, whatever they hold. By default the columns of `Log.table`.
    columns : mapping, optional
        The names of columns that are called otherwise: {"state": "s_t"}.
    reward_range : pair of float, default (0, 1)
        An interval that holds all rewards, and 0 if an episode terminates before its last step.

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
    table = StepTable(frame, {} if columns is None else columns, space.horizon)
    states, actions = table.whole("state", space.states), table.whole("action", space.actions)
    next_states, rewards = table.whole("next_state", space.states), table.numbers("reward", missing=True)
    low, high = interval("reward_range", reward_range)
    table.refuse("reward", (rewards < low) | (rewards > high), f"lie in [{low:g}, {high:g}]")
    table.refuse("action", ~space.admissible[states, actions], "be admissible in its state")
    elsewhere = (table.first == np.arange(len(states))) & ~(space.start[states] > 0.0)
    table.refuse("state", elsewhere, "begin where the space starts (give it a `start`, from which agents plan)")
    broken = np.append(next_states[:-1] != states[1:], False) & ~table.ends
    table.refuse("next_state", broken, "be the state of the next step")
    chances = table.optional("propensity")
    table.refuse("propensity", np.isnan(chances) != np.isnan(chances[table.first]), "be known in all of an episode")
    table.refuse("propensity", (chances <= 0.0) | (chances > 1.0), "lie in (0, 1]")
    lengths, totals, over = table.per_episode("length"), table.per_episode("total"), table.terminated()
    fraction = (lengths != lengths.round()) & ~np.isnan(lengths)
    table.refuse("length", fraction | (lengths < 1) | (lengths > table.sizes), "be a number of rows of its episode")
    table.refuse("total", ~np.isnan(totals) & ~np.isnan(rewards), "stand where no reward is known")
    if not low <= 0.0 <= high and (over & (table.sizes < space.horizon)).any():
        raise ValueError(f"`reward_range` must hold 0, what ended episodes earn, got {(low, high)}")
    contexts = table.contexts(_usual(frame) if context is None else context)
    log = Log(space, reward_range=reward_range)
    for label, first, end in zip(contexts, *table.spans(), strict=True):
        seen, last = slice(first, end), None if over[end - 1] else int(next_states[end - 1])
        steps = states[seen], actions[seen], rewards[seen], None if np.isnan(chances[first]) else chances[seen]
        made = Episode.of_steps(space, label, *steps, last=last)
        length = made.length if np.isnan(lengths[first]) else int(lengths[first])
        total = None if np.isnan(totals[first]) else float(totals[first])
        log.add(Episode.of_arrays(label, *made.raw, made.propensities, length, total))
    return log


def _usual(frame: pandas.DataFrame) -> ContextColumns:
    if EXACT in frame:
        return EXACT
    fields = [name for name in map(str, frame) if name.startswith(RECORD)]
    if fields:
        return {name.removeprefix(RECORD): name for name in fields}
    numbered = sum(re.fullmatch(r"context_\d+", str(name)) is not None for name in frame)
    if not numbered:
        return "context"
    wanted = [f"context_{place}" for place in range(numbered)]
    missing = [name for name in wanted if name not in frame]
    if missing:
        raise ValueError(f"`frame` has no column {missing[0]!r}, though it has later entries of the contexts")
    if "context" in frame:
        raise ValueError("`frame` has both `context` and `context_0`; say which by `context=`")
    return wanted
