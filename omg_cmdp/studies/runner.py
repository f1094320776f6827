"""One run of a study: started, or continued from its last checkpoint; the result is the same bit for bit."""

from __future__ import annotations

import datetime
import itertools
import math
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.persistence import joint_state, part_of
from omg_cmdp.runs.simulate import Run
from omg_cmdp.studies.journal import SUMMED, TEXTS, Journal
from omg_cmdp.studies.plan import Plan, Task
from omg_cmdp.studies.store import Store
from omg_cmdp.theory.constants import most_tuples

SECONDS_BETWEEN_REPORTS = 0.2
BOUNDS = ("reward_regret_bound", "dynamics_regret_bound")
"""In the result of a run: the oracles' own bounds on their regrets over all its episodes."""


class Progress(NamedTuple):
    """A run has come this far."""

    run: str
    episode: int
    regret: float
    """The total so far, exact."""


class Finished(NamedTuple):
    """A run is finished."""

    run: str
    result: Mapping[str, Any]


class Failed(NamedTuple):
    """A run ended with an error."""

    run: str
    error: str


class Lost(NamedTuple):
    """The worker that played a run died; another continues from the last checkpoint."""

    run: str
    attempt: int


Event = Progress | Finished | Failed | Lost
Report = Callable[[Event], None]


def play(task: Task, store: Store, report: Report) -> None:
    """Play a run to its end, and store its result. Errors of the run are stored, not raised."""
    with store.owned(task.name):
        done = store.result(task.name)
        if done is not None and done["status"] == "finished":
            report(Finished(task.name, done))
            return
        try:
            result = _play(task, store, report)
        except Exception as error:  # of any kind: it is stored, and the other runs go on
            record_failure(task, store, "".join(traceback.format_exception(error)))
            report(Failed(task.name, f"{type(error).__name__}: {error}"))
            return
        store.write_result(task.name, result)
        report(Finished(task.name, result))


def _play(task: Task, store: Store, report: Report) -> dict[str, Any]:
    journal = Journal(task.labels, episodes=task.episodes, trajectories=task.propensities)
    run = task.start(observe=journal.observe if task.propensities else None)
    part = _resume(task, store, run, journal)
    report(Progress(task.name, run.ledger.episodes, journal.total("regret")))
    pace = 1
    while (played := run.ledger.episodes) < task.episodes:
        until = min(task.episodes, (played // task.checkpoint + 1) * task.checkpoint)
        began, steps = time.perf_counter(), min(pace, until - played)
        run.advance(steps)
        journal.add(run.ledger.drain())
        if run.ledger.episodes == until:
            part += _save(task, store, run, journal, part)
        pace = _next_pace(steps, time.perf_counter() - began)
        report(Progress(task.name, run.ledger.episodes, journal.total("regret")))
    return _result(task, run, journal)


def _next_pace(played: int, seconds: float) -> int:
    """Return how many episodes to play before the next report, after `played` episodes took `seconds`."""
    return max(1, min(2 * played, int(played * SECONDS_BETWEEN_REPORTS / max(seconds, 1e-9))))


def _resume(task: Task, store: Store, run: Run, journal: Journal) -> int:
    """Continue from the checkpoint, if there is one; return the number of log parts it counts."""
    saved = store.checkpoint(task.name)
    parts = 0 if saved is None else int(saved["parts"])
    if saved is not None:
        run.load_state(part_of(saved, "run"))
        journal.load_state(part_of(saved, "journal"))
    store.forget_after(task.name, parts)
    return parts


def _save(task: Task, store: Store, run: Run, journal: Journal, part: int) -> int:
    """Write a part of the log, then the checkpoint that counts it; return 1, or 0 if there were no rows."""
    from pyarrow import parquet

    table = journal.table()
    if table is not None:
        form = {"compression": "zstd", "use_dictionary": list(TEXTS)}
        store.write_part(task.name, part, lambda name: parquet.write_table(table, name, **form))
    written = int(table is not None)
    arrays = {**joint_state({"run": run, "journal": journal}), "parts": np.array(part + written)}
    store.write_checkpoint(task.name, arrays)
    journal.clear()
    return written


def _result(task: Task, run: Run, journal: Journal) -> dict[str, Any]:
    """Return the result of a finished run, with all that a report needs to know of its world and agent."""
    totals = {name: journal.total(name) for name in SUMMED}
    seconds = [total for name, total in totals.items() if name.startswith("seconds_")]
    space = run.environment.space
    return {
        "run": task.name,
        **task.labels,
        "status": "finished",
        "episodes": task.episodes,
        "states": space.states,
        "actions": space.actions,
        "horizon": space.horizon,
        "tuples": most_tuples(space),
        **_regret_bounds(run, task.episodes),
        "regret_last_half": totals["regret"] - journal.half,
        **totals,
        "seconds": sum(seconds),
        "error": None,
        "ended": now(),
    }


def _regret_bounds(run: Run, episodes: int) -> dict[str, float]:
    """Return what the agent's oracles promise for this many episodes; infinity without oracles."""
    if not isinstance(run.agent, ModelAgent):
        return dict.fromkeys(BOUNDS, math.inf)
    oracles = (run.agent.reward_oracle, run.agent.dynamics_oracle)
    horizon = run.environment.space.horizon
    return dict(zip(BOUNDS, (oracle.regret_bound(episodes, horizon) for oracle in oracles), strict=True))


def record_failure(task: Task, store: Store, error: str) -> None:
    """Store the error of a run; the next start of the study tries it again."""
    result = {"run": task.name, **task.labels, "status": "failed", "episodes": task.episodes, "error": error}
    store.write_result(task.name, {**result, "ended": now()})


def now() -> str:
    """Return the present date and time, as text."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def estimate(plan: Plan, *, budget: float = 10.0) -> float:
    """Return how many seconds a plan takes on one core, judged by the first episodes of a run of every sort."""
    tasks = {task.name.rpartition("--")[0]: task for task in reversed(plan.tasks())}
    each = budget / len(tasks)
    return sum(_seconds_per_episode(task, each) * task.episodes for task in tasks.values()) * len(plan.seeds)


def _seconds_per_episode(task: Task, budget: float) -> float:
    run = task.start()
    run.advance(1)  # loads compiled code
    began = time.perf_counter()
    for played in itertools.count(1):
        run.advance(1)
        taken = time.perf_counter() - began
        if taken > min(budget, 0.2) or played == task.episodes:
            return taken / played
    raise AssertionError("unreachable")
