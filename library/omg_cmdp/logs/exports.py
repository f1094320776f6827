"""Tables with a row for every episode, as the log of a study is, and as `omg-lab export --to csv` writes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from omg_cmdp.contexts import Context, context_from_json
from omg_cmdp.logs.lines import LISTS
from omg_cmdp.logs.log import Log
from omg_cmdp.logs.step_table import require_columns
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.space import Space
from omg_cmdp.records import plain
from omg_cmdp.validation import UNEXPECTED, instance_of

if TYPE_CHECKING:
    import pandas


def read_export(frame: pandas.DataFrame, space: Space, *, reward_range: tuple[float, float] = (0.0, 1.0)) -> Log:
    """Return the log of an exported table with a row for every episode, as `omg-lab export --to csv` writes it.

    Agents that draw a whole policy first have propensities of 1, which say nothing about what they might have done:
    leave them out to value a policy.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table with the columns context, states, actions, rewards, and perhaps propensities, whose rows hold lists, or
        lists as JSON: of a CSV, `pandas.read_csv(path, dtype={"context": str})`. The rows must come from one world;
        agents and seeds may be several.
    space : Space
        The states, actions and horizon.
    reward_range : pair of float, default (0, 1)
        An interval that holds all rewards; worlds without tables pay in their own units.

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
    log = Log(space, reward_range=reward_range)
    for row, context, *lists in zip(frame.index, frame["context"], *(frame[name] for name in given), strict=True):
        try:
            arrays = (json.loads(each) if isinstance(each, str) else each for each in lists)
            log.add(Episode(context=_context(context), **dict(zip(given, arrays, strict=True))))
        except (*UNEXPECTED, ValueError) as error:
            raise ValueError(f"row {row} must hold an episode of the space: {error}") from error
    return log


def csv_cell(text: str) -> str:
    """Return a text for a cell of a CSV file, which no spreadsheet takes for a formula.

    >>> csv_cell("=1+1"), csv_cell("a=1")
    ("'=1+1", 'a=1')
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _context(cell: Any) -> Context:
    """Return the context of a cell: JSON, unless whatever read the file has taken it for a number already."""
    # The quote of `csv_cell`: no JSON begins with one.
    return context_from_json(cell.removeprefix("'")) if isinstance(cell, str) else plain(cell)
