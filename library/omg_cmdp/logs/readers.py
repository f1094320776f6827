"""Files that `Log.write` and `play` wrote, read back equal in every bit."""

from __future__ import annotations

import os

from omg_cmdp.logs.lines import lines_path, read_lines
from omg_cmdp.logs.log import Log
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import instance_of, interval


def read_log(path: str | os.PathLike[str], space: Space, *, reward_range: tuple[float, float] = (0.0, 1.0)) -> Log:
    """Return the log that `Log.write` or `play` wrote to a file, equal in every bit.

    Parameters
    ----------
    path : path-like
        A file whose name ends in .jsonl. Of one that a crash cut off, all whole lines are read.
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
    ...     read_log(log.write(f"{folder}/log.jsonl"), log.space).contexts
    ['NA']
    """
    source = lines_path("path", path)
    instance_of("space", space, Space)
    interval("reward_range", reward_range)
    source.open("rb").close()  # what the system refuses is no fault of the content
    try:
        return Log(space, read_lines(source), reward_range=reward_range)
    except Exception as error:  # whatever foreign bytes raise
        rule = "be a log of this space and range, as `Log.write` writes it"
        raise ValueError(f"`path` must {rule}, got {os.fspath(path)!r}: {error}") from error
