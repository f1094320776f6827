"""Tables with a row for every episode, as the log of a study is, and as `omg-lab export --to csv` writes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from omg_cmdp.contexts import context_from_json
from omg_cmdp.logs.log import Log
from omg_cmdp.logs.readers import require_columns
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import instance_of

if TYPE_CHECKING:
    import pandas

LISTS = ("states", "actions", "rewards", "propensities")
"""The columns that hold lists; the last may be absent."""


def read_export(frame: pandas.DataFrame, space: Space) -> Log:
    """Return the log of an exported table with a row for every episode, as `omg-lab export --to csv` writes it.

    Agents that draw a whole policy first have propensities of 1, which say nothing about what they might have done:
    leave them out to value a policy.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table with the columns context, states, actions, rewards, and perhaps propensities, whose rows hold lists, or
        lists as JSON. The rows must come from one world; agents and seeds may be several.
    space : Space
        The states, actions and horizon.

    Examples
    --------
    >>> import pandas
    >>> row = {"context": '"a"', "states": [[0, 1]], "actions": [[1]], "rewards": [[1.0]], "propensities": [[0.5]]}
    >>> read_export(pandas.DataFrame(row), Space(states=2, actions=2, horizon=1)).returns
    array([1.])
    """
    instance_of("space", space, Space)
    require_columns(frame, ("context", *LISTS[:-1]))
    if "world" in frame and frame["world"].nunique() > 1:
        raise ValueError(f"column 'world' must hold one world, got {frame['world'].unique().tolist()}: choose one")
    given = [name for name in LISTS if name in frame]
    log = Log(space)
    for row, context, *lists in zip(frame.index, frame["context"], *(frame[name] for name in given), strict=True):
        try:
            arrays = (json.loads(each) if isinstance(each, str) else each for each in lists)
            log.add(Episode(context=context_from_json(context), **dict(zip(given, arrays, strict=True))))
        except (TypeError, ValueError) as error:
            raise ValueError(f"row {row} must hold an episode of the space: {error}") from error
    return log
