"""Episodes as plain data, and as lines of JSON: exact to the bit, and a file grows by one line with each of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from omg_cmdp.contexts import context_from_json, context_to_json
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.validation import UNEXPECTED, file_path

LISTS = ("states", "actions", "rewards", "propensities")


def episode_record(episode: Episode) -> dict[str, Any]:
    """Return all of an episode as numbers, texts and lists; None for what is not known.

    >>> record = episode_record(Episode(context="c", states=[0, 1], actions=[2], rewards=[None]))
    >>> record["context"], record["rewards"], episode_of_record(record).states
    ('"c"', [None], array([0, 1]))
    """
    lists: dict[str, Any] = {
        name: None if (each := getattr(episode, name)) is None else each.tolist() for name in LISTS
    }
    lists["states"] += [None] * (not episode.end_known)
    lists["rewards"] = [None if reward != reward else reward for reward in lists["rewards"]]
    costs = {} if episode.costs is None else {"costs": episode.costs.tolist()}
    return {"context": context_to_json(episode.context), **lists, "length": episode.length, **costs}


def episode_of_record(record: Mapping[str, Any]) -> Episode:
    """Undo `episode_record`."""
    known = {name: each for name, each in record.items() if each is not None}  # older files have more names
    return Episode(**{**known, "context": context_from_json(record["context"])})


def episode_line(episode: Episode) -> str:
    """Return an episode as a line of JSON."""
    return json.dumps(episode_record(episode)) + "\n"


def lines_path(name: str, path: str | os.PathLike[str]) -> Path:
    """Return the path of a file of lines; raise unless its name ends in .jsonl."""
    found = file_path(path, name)
    if found.suffix != ".jsonl":
        raise ValueError(f"`{name}` must end in .jsonl, got {os.fspath(path)!r}")
    return found


def read_lines(path: Path) -> Iterator[Episode]:
    """Yield the episodes of a file of lines; one that a crash has cut off in its last line is left out."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            try:
                yield episode_of_record(json.loads(line))
            except (*UNEXPECTED, ValueError) as error:
                if line.endswith("\n"):
                    raise ValueError(f"line {number} must hold an episode: {error}") from error
