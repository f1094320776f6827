"""Gymnasium environments as worlds of a study: by id, or by a class that the file names.

    [worlds.lake]
    kind = "gymnasium"
    id = "FrozenLake-v1"
    contexts = "people.csv"                      or a list of numbers, texts, vectors or tables
    arguments = { success_rate = "grip" }        which column goes to which keyword; or one name for the whole context
    keywords = { map_name = "4x4" }              those that are the same for all contexts

Where the environment has tables, regret is exact; elsewhere what was earned is all that is known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.environments import SampledWorld, TableWorld, from_gymnasium
from omg_cmdp.validation import frozen


def gymnasium_world(
    id: Any,  # as in Gymnasium
    *,
    contexts: Sequence[Context],
    arguments: str | Mapping[str, str] | None = None,
    keywords: Mapping[str, Any] | None = None,
    horizon: int | None = None,
    reward_range: Sequence[float] | None = None,
    return_range: Sequence[float] | None = None,
    start: Any = None,
    tables: bool = True,
) -> TableWorld | SampledWorld:
    """Any Gymnasium environment with discrete observations and actions, by its id."""
    import gymnasium

    if not isinstance(id, str) and not callable(id):
        raise ValueError(f"`id` must be the id of an environment, got {id!r:.60}")
    if isinstance(id, str) and ":" in id:
        raise ValueError(f'`id` must have no module; for a class of yours, kind = "module:Class", got {id!r:.60}')
    if not isinstance(contexts, list):
        raise ValueError(f"`contexts` must be a list, or the name of a CSV file, got {contexts!r:.60}")
    for name, value in (("keywords", keywords), ("arguments", None if isinstance(arguments, str) else arguments)):
        if value is not None and not isinstance(value, Mapping):
            raise ValueError(f"`{name}` must be a table, got {value!r:.60}")
    opened = functools.partial(gymnasium.make, id) if isinstance(id, str) else id
    make = functools.partial(opened, **keywords) if keywords else id
    return from_gymnasium(
        make,
        [frozen(np.array(each)) if isinstance(each, list) else each for each in contexts],
        arguments=_arguments(arguments) if isinstance(arguments, Mapping) else arguments,
        horizon=horizon,
        reward_range=_pair(reward_range),
        return_range=_pair(return_range),
        start=start,
        tables=tables,
    )


def _arguments(columns: Mapping[str, str]) -> Callable[[Context], dict[str, Any]]:
    """Return the function from a record to the keywords of a constructor."""

    def arguments(context: Context) -> dict[str, Any]:
        missing = [column for column in columns.values() if not isinstance(context, Mapping) or column not in context]
        if missing:
            raise ValueError(f"`arguments` must name columns of the contexts, got {missing[0]!r} and {context!r:.60}")
        return {keyword: context[column] for keyword, column in columns.items()}

    return arguments


def _pair(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
