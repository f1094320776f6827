"""Results for other programs: the log of all finished runs as one CSV, lists as JSON.

As Parquet, it is the folder `log` of the study. With `propensities = true` in the study it has states, actions, rewards
and propensities. A propensity is the probability that the policy played gave to the action; agents that first draw a
whole policy (posterior sampling and its like, PC-IGW) play a deterministic one, and have 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from omg_cmdp.logs.exports import csv_cell
from omg_cmdp.persistence import whole_file
from omg_lab.studies.journal import LISTS, TEXTS
from omg_lab.studies.results import Results

if TYPE_CHECKING:
    import pyarrow


def export(results: Results, target: Path) -> Path:
    """Write the finished runs into the folder `target`, and return the file."""
    if results.runs.empty:
        raise ValueError("`results` must hold a finished run, got none; `omg-lab run` plays them")
    target.mkdir(parents=True, exist_ok=True)
    with whole_file(target / "log.csv") as file:
        _write_csv(results.tables(*sorted(results.runs["run"])), file)
    return target / "log.csv"


def _write_csv(tables: Iterator[pyarrow.Table], path: Path) -> None:
    for number, part in enumerate(tables):
        table = part.to_pandas()
        lists = {name: [json.dumps(entry.tolist()) for entry in table[name]] for name in LISTS if name in table}
        texts = {name: table[name].map(csv_cell) for name in TEXTS}
        table.assign(**lists, **texts).to_csv(path, mode="a" if number else "w", header=number == 0, index=False)
