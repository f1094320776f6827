"""Results for other programs: one table, or the logged decisions of every run with their propensities.

    csv    the log of all finished runs in one file, lists as JSON; as Parquet, it is the folder `log` of the study
    obp    a .npz for each run, for Open Bandit Pipeline: see `logs.writers`
    vw     a .vw for each run, for Vowpal Wabbit: see `logs.writers`

The last two need a study with `propensities = true`, and hold the decisions of the log: steps after the end of an
episode, in states where one action is left and nothing changes any more, are none. A propensity is the probability that
the policy played gave to the action; agents that first draw a whole policy (posterior sampling and its like, PC-IGW)
play a deterministic one, and have 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from omg_cmdp.contexts import context_to_json
from omg_cmdp.documents import FileError
from omg_cmdp.environments import SampledWorld
from omg_cmdp.logs.writers import Decisions, csv_cell, write_obp, write_vw
from omg_cmdp.persistence import whole_file
from omg_cmdp.validation import BoolArray
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
    lists = {name: log[name].to_list() for name in LISTS}
    lengths = [len(actions) for actions in lists["actions"]]  # an episode may have been cut off
    # As the log has them, in which 1, "1" and 1.0 are three contexts.
    known = {context_to_json(context): place for place, context in enumerate(world.contexts)}
    if foreign := set(log["context"]) - known.keys():
        raise FileError(f"{task.name}: its log has a context that is not of the world, {foreign.pop():.60}")
    states = np.concatenate([each[:-1] for each in lists["states"]])
    decided = ~_ended(world)[states]
    columns = {
        "places": np.repeat([known[text] for text in log["context"]], lengths),
        "steps": np.concatenate([np.arange(length) for length in lengths]),
        "states": states,
        **{name: np.concatenate(lists[name]) for name in LISTS[1:]},
    }
    decisions = Decisions(contexts=world.contexts, **{name: column[decided] for name, column in columns.items()})
    path = target / f"{task.name}.{'vw' if form == 'vw' else 'npz'}"
    with whole_file(path) as file:
        if form == "vw":
            write_vw(file, decisions, best_reward=world.paid_range[1])
        else:
            write_obp(file, decisions, world.space)
    return path


def _ended(world: Any) -> BoolArray:
    """Return in which states (S,) an episode has ended: one action is left there, and nothing changes any more."""
    space = world.space
    if isinstance(world, SampledWorld):
        return np.asarray(np.arange(space.states) == space.states - 1)
    ended = space.admissible.sum(axis=1) == 1
    for context in world.contexts:
        stays = np.einsum("...sas->...sa", world.mdp(context).transitions).max(axis=-1)
        ended &= (stays.reshape(-1, space.states) == 1.0).all(axis=0)
    return np.asarray(ended)
