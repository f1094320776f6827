"""Logs as files, which `read_log` reads back equal:

jsonl          a line for each episode
csv, parquet   the table, a row for each step, with `context_json` beside the columns for people and their programs
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from omg_cmdp.contexts import context_to_json
from omg_cmdp.logs.lines import episode_line
from omg_cmdp.persistence import whole_file
from omg_cmdp.records import missing
from omg_cmdp.validation import file_path

if TYPE_CHECKING:
    import pandas

    from omg_cmdp.logs.log import Log

FORMS = (".csv", ".parquet", ".jsonl")
"""The endings of files that a log can be written to."""

EXACT = "context_json"
"""The column of contexts as JSON, in brackets, so that no reader of tables takes "1" for a number or "NA" for a gap."""


def write(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write `log` in the format that the ending of `path` says; see `Log.write`."""
    target = file_path(path)
    if target.suffix not in FORMS:
        raise ValueError(f"`path` must end in {', '.join(FORMS)}, got {os.fspath(path)!r}")
    # pandas writes in pieces; a reader must never see half a log.
    with whole_file(target) as file:
        if target.suffix == ".jsonl":
            file.write_text("".join(map(episode_line, log.episodes)), encoding="utf-8")
        elif target.suffix == ".csv":
            # All texts in quotes: without them a carriage return would end the row.
            whole_table(log, csv_cell).to_csv(file, index=False, quoting=csv.QUOTE_NONNUMERIC)
        else:
            whole_table(log, str).to_parquet(file, index=False)
    return target


def whole_table(log: Log, cell: Callable[[str], str]) -> pandas.DataFrame:
    """Return `log.table()` with what it leaves out; whatever is neither number nor text there becomes a text."""
    table, episodes = log.table(), log.episodes
    for name in table.select_dtypes(exclude=["number", "bool"]):
        table[name] = [None if missing(entry) else cell(str(entry)) for entry in table[name]]
    more = {
        EXACT: [f"[{context_to_json(episode.context)}]" for episode in episodes],
        "length": [episode.length for episode in episodes],
        "total": [np.nan if episode.total is None else episode.total for episode in episodes],
    }
    return table.assign(**{name: np.repeat(np.array(values), log.steps) for name, values in more.items()})


def csv_cell(text: str) -> str:
    """Return a text for a cell of a CSV file, which no spreadsheet takes for a formula.

    >>> csv_cell("=1+1"), csv_cell("a=1")
    ("'=1+1", 'a=1')
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
