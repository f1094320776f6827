"""Results for other programs: one table, or the logged decisions of every run with their propensities.

    csv    the log of all finished runs in one file, lists as JSON; as Parquet, it is the folder `log` of the study
    obp    a .npz for each run, for Open Bandit Pipeline: see `logs.writers`
    vw     a .vw for each run, for Vowpal Wabbit: see `logs.writers`

The last two need a study with `propensities = true`, and hold the episodes of the log. A propensity is
the probability that the policy played gave to the action; agents that first draw a whole policy (posterior
sampling and its like, PC-IGW) play a deterministic one, and have 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import context_from_json
from omg_cmdp.logs.writers import Decisions, csv_cell, write_obp, write_vw
from omg_cmdp.persistence import whole_file
from omg_lab.studies.journal import LISTS, TEXTS
from omg_lab.studies.plan import StudyPlan, Task
from omg_lab.studies.results import Results

if TYPE_CHECKING:
    import pyarrow

FORMATS = ("csv", "obp", "vw")


def export(results: Results, form: str, target: Path, study: StudyPlan | None = None) -> list[Path]:
    """Write the finished runs into the folder `target`, and return the files; `study` is as in `Results.tasks`."""
    if form not in FORMATS:
        raise ValueError(f"`form` must be one of {', '.join(FORMATS)}, got {form!r}")
    if form != "csv" and not results.configuration["propensities"]:
        raise ValueError("`results` must hold propensities; run the study with propensities = true")
    if results.runs.empty:
        raise ValueError("`results` must hold a finished run, got none; `omg-lab run` plays them")
    target.mkdir(parents=True, exist_ok=True)
    if form == "csv":
        with whole_file(target / "log.csv") as file:
            _write_csv(results.tables(*sorted(results.runs["run"])), file)
        return [target / "log.csv"]
    return [_decisions(results, task, form, target) for task in results.tasks(study)]


def _write_csv(tables: Iterator[pyarrow.Table], path: Path) -> None:
    for number, part in enumerate(tables):
        table = part.to_pandas()
        lists = {name: [json.dumps(entry.tolist()) for entry in table[name]] for name in LISTS if name in table}
        texts = {name: table[name].map(csv_cell) for name in TEXTS}
        first = number == 0
        table.assign(**lists, **texts).to_csv(path, mode="w" if first else "a", header=first, index=False)


def _decisions(results: Results, task: Task, form: str, target: Path) -> Path:
    world = task.setting().world
    log = results.log_of(task.name, columns=["context", *LISTS])
    states = [each[:-1] for each in log["states"]]
    lengths = [len(each) for each in states]  # an episode may have been cut off
    decisions = Decisions(
        contexts=world.contexts,
        places=np.repeat(_places(log["context"].to_list(), world), lengths),
        steps=np.concatenate([np.arange(length) for length in lengths]),
        states=np.concatenate(states),
        **{name: np.concatenate(log[name].to_list()) for name in LISTS[1:]},
    )
    path = target / f"{task.name}.{'vw' if form == 'vw' else 'npz'}"
    with whole_file(path) as file:
        write_vw(file, decisions) if form == "vw" else write_obp(file, decisions, world.space)
    return path


def _places(texts: list[str], world: Any) -> NDArray[np.int64]:
    """Return the place of every context in the world's list."""
    known = {str(np.asarray(context).tolist()): place for place, context in enumerate(world.contexts)}
    found = {text: known[str(np.asarray(context_from_json(text)).tolist())] for text in set(texts)}
    return np.array([found[text] for text in texts], dtype=np.int64)
