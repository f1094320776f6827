"""Files that `Log.write` and `play` wrote, read back equal in every bit."""

from __future__ import annotations

import os
from pathlib import Path

from omg_cmdp.logs.lines import read_lines
from omg_cmdp.logs.log import Log
from omg_cmdp.logs.tables import COLUMNS, COSTS, read_table
from omg_cmdp.logs.writers import EXACT, FORMS
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import file_path, instance_of, interval


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
    >>> from omg_cmdp import Episode
    >>> episode = Episode(context="NA", states=[0, 0], actions=[1], rewards=[1.0])
    >>> log = Log(Space(states=1, actions=2, horizon=1), [episode])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read_log(log.write(f"{folder}/log.csv"), log.space).contexts
    ['NA']
    """
    source = file_path(path)
    instance_of("space", space, Space)
    if source.suffix not in FORMS:
        raise ValueError(f"`path` must end in {', '.join(FORMS)}, got {os.fspath(path)!r}")
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
        floats = dict.fromkeys(("reward", "propensity", "total", *COSTS), lambda text: float(text or "nan"))
        frame = pandas.read_csv(source, converters=floats, usecols=lambda name: name in (*COLUMNS, EXACT))
    else:
        frame = pandas.read_parquet(source)
    if not len(frame):
        return Log(space, reward_range=reward_range)
    return read_table(frame, space=space, reward_range=reward_range)
