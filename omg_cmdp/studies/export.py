"""Results for other programs: one table, or the logged decisions of every run with their propensities.

    csv, parquet    the log of all finished runs in one file; lists are JSON in the CSV
    obp             a .npz for each run, for Open Bandit Pipeline: see `logs.writers`
    vw              a .vw for each run, for Vowpal Wabbit: see `logs.writers`

The last two need a study with `propensities = true`, and hold the episodes of the log. A propensity is
the probability that the policy played gave to the action; agents that first draw a whole policy (posterior
sampling and its like, PC-IGW) play a deterministic one, and have 1.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import context_from_json
from omg_cmdp.environments.world import World
from omg_cmdp.logs.writers import Decisions, write_obp, write_vw
from omg_cmdp.studies.plan import Task
from omg_cmdp.studies.results import Results
from omg_cmdp.studies.store import Store

FORMATS = ("csv", "parquet", "obp", "vw")
LISTS = ("states", "actions", "rewards", "propensities")


def export(results: Results, form: str, target: Path) -> list[Path]:
    """Write the finished runs into the folder `target`, and return the files."""
    if form not in FORMATS:
        raise ValueError(f"`form` must be one of {', '.join(FORMATS)}, got {form!r}")
    if form in ("obp", "vw") and not results.configuration["propensities"]:
        raise ValueError("`results` must hold propensities; run the study with propensities = true")
    target.mkdir(parents=True, exist_ok=True)
    if form == "csv":
        return [_csv(results, target / "log.csv")]
    if form == "parquet":
        return [_parquet(results, target / "log.parquet")]
    return [_decisions(results, task, form, target) for task in results.tasks()]


def _parts(results: Results) -> list[Path]:
    store = Store(results.directory)
    return [path for run in sorted(results.runs["run"]) for path in store.parts(run)]


def _csv(results: Results, path: Path) -> Path:
    import pandas

    for number, part in enumerate(_parts(results)):
        table = pandas.read_parquet(part)
        lists = {name: [json.dumps(entry.tolist()) for entry in table[name]] for name in LISTS if name in table}
        first = number == 0
        table.assign(**lists).to_csv(path, mode="w" if first else "a", header=first, index=False)
    return path


def _parquet(results: Results, path: Path) -> Path:
    from pyarrow import parquet

    tables = (parquet.read_table(part, partitioning=None) for part in _parts(results))
    first = next(tables)
    with parquet.ParquetWriter(path, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)
    return path


def _decisions(results: Results, task: Task, form: str, target: Path) -> Path:
    world = task.setting().world
    log = results.log_of(task.name, columns=["context", *LISTS])
    states, actions, rewards, propensities = (np.stack(log[name].to_list()) for name in LISTS)
    episodes, horizon = actions.shape
    decisions = Decisions(
        contexts=world.contexts,
        places=np.repeat(_places(log["context"].to_list(), world), horizon),
        steps=np.tile(np.arange(horizon), episodes),
        states=states[:, :-1].reshape(-1),
        actions=actions.reshape(-1),
        rewards=rewards.reshape(-1),
        propensities=propensities.reshape(-1),
    )
    if form == "vw":
        return write_vw(target / f"{task.name}.vw", decisions)
    return write_obp(target / f"{task.name}.npz", decisions, world.space)


def _places(texts: list[str], world: World) -> NDArray[np.int64]:
    """Return the place of every context in the world's list."""
    known = {str(np.asarray(context).tolist()): place for place, context in enumerate(world.contexts)}
    found = {text: known[str(np.asarray(context_from_json(text)).tolist())] for text in set(texts)}
    return np.array([found[text] for text in texts], dtype=np.int64)
