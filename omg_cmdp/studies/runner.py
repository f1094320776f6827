"""One run of an experiment: started, or continued from its last checkpoint, and equal to the bit either way."""

from __future__ import annotations

import datetime
import itertools
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.persistence import joint_state, part_of
from omg_cmdp.runs.simulate import Run
from omg_cmdp.studies.journal import SUMMED, TEXTS, Journal
from omg_cmdp.studies.plan import Plan, Task
from omg_cmdp.studies.store import Store

SECONDS_BETWEEN_REPORTS = 0.2


class Progress(NamedTuple):
    """How far a run is."""

    run: str
    episode: int
    regret: float
    """So far, exact."""


class Finished(NamedTuple):
    """A run came to its end, or had come to it before."""

    run: str
    result: Mapping[str, Any]


class Failed(NamedTuple):
    """A run ended with an error."""

    run: str
    error: str


class Lost(NamedTuple):
    """The process that played a run died; the run goes on from its last checkpoint."""

    run: str
    attempt: int


Event = Progress | Finished | Failed | Lost
Report = Callable[[Event], None]


def play(task: Task, store: Store, report: Report) -> None:
    """Play a run to its end, and record how it ended. Errors of the run are recorded, not raised."""
    with store.owned(task.name):
        done = store.result(task.name)
        if done is not None and done["status"] == "finished":
            report(Finished(task.name, done))
            return
        try:
            result = _play(task, store, report)
        except Exception as error:  # whatever it is, it belongs into the record, and the other runs go on
            record_failure(task, store, "".join(traceback.format_exception(error)))
            report(Failed(task.name, f"{type(error).__name__}: {error}"))
            return
        store.write_result(task.name, result)
        report(Finished(task.name, result))


def _play(task: Task, store: Store, report: Report) -> dict[str, Any]:
    journal = Journal(labels(task), episodes=task.episodes, trajectories=task.propensities)
    run = task.start(observe=journal.observe if task.propensities else None)
    part = _resume(task, store, run, journal)
    report(Progress(task.name, run.ledger.episodes, journal.total("regret")))
    pace = 1
    while (played := run.ledger.episodes) < task.episodes:
        until = min(task.episodes, (played // task.checkpoint + 1) * task.checkpoint)
        began, steps = time.perf_counter(), min(pace, until - played)
        run.advance(steps)
        journal.enter(run.ledger.drain())
        if run.ledger.episodes == until:
            part += _save(task, store, run, journal, part)
        pace = _next_pace(steps, time.perf_counter() - began)
        report(Progress(task.name, run.ledger.episodes, journal.total("regret")))
    return summary(task, journal)


def _next_pace(played: int, seconds: float) -> int:
    """Return how many episodes to play until the next report, if so many took so long."""
    return max(1, min(2 * played, int(played * SECONDS_BETWEEN_REPORTS / max(seconds, 1e-9))))


def _resume(task: Task, store: Store, run: Run, journal: Journal) -> int:
    """Continue from the checkpoint, if there is one; return the number of parts of the log."""
    saved = store.checkpoint(task.name)
    parts = 0 if saved is None else int(saved["parts"])
    if saved is not None:
        run.load_state(part_of(saved, "run"))
        journal.load_state(part_of(saved, "journal"))
    store.forget_after(task.name, parts)
    return parts


def _save(task: Task, store: Store, run: Run, journal: Journal, part: int) -> int:
    """Write a part of the log, then the checkpoint that counts it; return how many parts were written."""
    from pyarrow import parquet

    table = journal.table()
    if table is not None:
        form = {"compression": "zstd", "use_dictionary": list(TEXTS)}
        store.write_part(task.name, part, lambda name: parquet.write_table(table, name, **form))
    written = int(table is not None)
    arrays = {**joint_state({"run": run, "journal": journal}), "parts": np.array(part + written)}
    store.write_checkpoint(task.name, arrays)
    journal.turn_page()
    return written


def labels(task: Task) -> dict[str, str | int]:
    """Return the columns that tell runs apart."""
    return {"world": task.world.name, "adversary": task.adversary.name, "agent": task.agent.name, "seed": task.seed}


def summary(task: Task, journal: Journal) -> dict[str, Any]:
    """Return the result of a run that is finished."""
    totals = {name: journal.total(name) for name in SUMMED}
    seconds = [total for name, total in totals.items() if name.startswith("seconds_")]
    return {
        "run": task.name,
        **labels(task),
        "status": "finished",
        "episodes": task.episodes,
        "regret_last_half": totals["regret"] - journal.half,
        **totals,
        "seconds": sum(seconds),
        "error": None,
        "ended": now(),
    }


def record_failure(task: Task, store: Store, error: str) -> None:
    """Write the error of a run; the next start of the experiment tries it again."""
    result = {"run": task.name, **labels(task), "status": "failed", "episodes": task.episodes, "error": error}
    store.write_result(task.name, {**result, "ended": now()})


def now() -> str:
    """Return the present date and time."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def estimate(plan: Plan, *, budget: float = 10.0) -> float:
    """Return the seconds of work that a plan is, from the first episodes of every kind of run."""
    tasks = {task.name.rpartition("--")[0]: task for task in reversed(plan.tasks())}
    each = budget / len(tasks)
    return sum(_seconds_per_episode(task, each) * task.episodes for task in tasks.values()) * len(plan.seeds)


def _seconds_per_episode(task: Task, budget: float) -> float:
    run = task.start()
    run.advance(1)  # loads what is compiled
    began = time.perf_counter()
    for played in itertools.count(1):
        run.advance(1)
        taken = time.perf_counter() - began
        if taken > min(budget, 0.2) or played == task.episodes:
            return taken / played
    raise AssertionError("unreachable")
