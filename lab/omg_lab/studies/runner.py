"""One run of a study: started, or continued from its last checkpoint; the result is the same bit for bit."""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import math
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.delays import Fixed
from omg_cmdp.documents import FileError
from omg_cmdp.persistence import check_settings, joint_state, part_of
from omg_cmdp.provenance import provenance
from omg_cmdp.runs.advice import advise
from omg_cmdp.runs.sampled import SampledRun
from omg_cmdp.runs.simulate import Run
from omg_cmdp.theory.constants import most_tuples
from omg_lab.shown import Names, names_of, shown_cells, shown_contexts
from omg_lab.studies.journal import SUMMED, TEXTS, Journal
from omg_lab.studies.plan import StudyPlan, Task, world_digest
from omg_lab.studies.store import StudyStore, UnwritableError

SECONDS_BETWEEN_REPORTS = 0.2
BOUNDS = ("reward_regret_bound", "dynamics_regret_bound")
"""The fields of a result with the oracles' own bounds on their regrets over all episodes of the run."""
FURTHER = ("largest_difference", "earnable", "regret_last_half")
"""Other numbers of a result, which may not be known."""

_NUMBER = (int, float, type(None))
_ENDED = {
    **dict.fromkeys(("run", "world", "adversary", "agent", "status", "settings", "ended"), str),
    **dict.fromkeys(("seed", "episodes"), int),
    "made_with": [{"version": str, "commit": str, "versions": {str: str}}],
}
FAILED_FORM = {**_ENDED, "error": str}
FINISHED_FORM = {
    **_ENDED,
    **dict.fromkeys(("states", "actions", "horizon", "tuples"), int),
    **dict.fromkeys((*SUMMED, *BOUNDS, *FURTHER, "seconds"), _NUMBER),
    "world_digest": str,
    "parts": [str],
    "policies": [dict],
    "names": {kind: [str] for kind in Names._fields},
}
"""The fields of a result as JSON has them; those of a run that failed are fewer."""


class Progress(NamedTuple):
    """A run has come this far."""

    run: str
    episode: int
    regret: float
    """The exact total so far."""


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


class Waiting(NamedTuple):
    """Another process is playing this run; its result will be this one's."""

    run: str


Event = Progress | Finished | Failed | Lost | Waiting
Report = Callable[[Event], None]


def play(task: Task, store: StudyStore, report: Report) -> None:
    """Play a run to its end, and store its result. Errors of the run are stored, not raised.

    If another process plays it, wait for that one.
    """
    with store.owned(task.name, lambda: report(Waiting(task.name))):
        done = store.result(task.name)
        if done is not None and done["status"] == "finished":
            report(Finished(task.name, done))
            return
        try:
            result = _play(task, store, report)
            store.write_result(task.name, result)
        except UnwritableError:
            raise
        except FileError as error:
            record_failure(task, store, str(error))
            report(Failed(task.name, str(error)))
        except Exception as error:  # of any kind: it is stored, and the other runs go on
            record_failure(task, store, "".join(traceback.format_exception(error)))
            report(Failed(task.name, f"{type(error).__name__}: {error}"))
        else:
            report(Finished(task.name, result))


def _play(task: Task, store: StudyStore, report: Report) -> dict[str, Any]:
    journal = Journal(task.labels, episodes=task.episodes, trajectories=task.plan.propensities)
    run = task.start(observe=journal.observe if task.plan.propensities else None)
    kept = _resume(task, store, run, journal)
    report(Progress(task.name, run.ledger.episodes, journal.total("regret")))
    pace = 1
    while (played := run.ledger.episodes) < task.episodes:
        until = min(task.episodes, (played // task.plan.checkpoint + 1) * task.plan.checkpoint)
        began, steps = time.perf_counter(), min(pace, until - played)
        run.advance(steps)
        journal.add(run.ledger.drain())
        if run.ledger.episodes == until:
            _save(task, store, run, journal, kept)
        pace = _next_pace(steps, time.perf_counter() - began)
        report(Progress(task.name, run.ledger.episodes, journal.total("regret")))
    return {**_result(task, run, journal), **kept._asdict()}


class _Kept(NamedTuple):
    """The notes that a checkpoint keeps beside the state."""

    settings: str
    """The digest of the run's settings."""
    world_digest: str
    """The digest of the world in which it is played."""
    parts: list[str]
    """A digest of each part of the log."""
    made_with: list[dict[str, Any]]
    """The versions that have played it, one after another."""


def _next_pace(played: int, seconds: float) -> int:
    """Return how many episodes to play before the next report, after `played` episodes took `seconds`."""
    return max(1, min(2 * played, int(played * SECONDS_BETWEEN_REPORTS / max(seconds, 1e-9))))


def _resume(task: Task, store: StudyStore, run: Run, journal: Journal) -> _Kept:
    """Continue from the checkpoint, if there is one."""
    kept = _Kept(task.settings, world_digest(run.environment), [], [])
    with store.checkpoint(task.name) as saved:
        if saved is not None:
            check_settings(saved, task.settings)
            if str(saved["world_digest"]) != kept.world_digest:
                raise ValueError("its world is not the one that is built now, by the same options and sources")
            kept.parts.extend(saved["parts"].tolist())
            kept.made_with.extend(json.loads(str(saved["made_with"])))
            run.load_state(part_of(saved, "run"))
            journal.load_state(part_of(saved, "journal"))
    for number, digest in enumerate(kept.parts):
        store.read_part(task.name, number, digest)
    store.forget_after(task.name, len(kept.parts))
    if provenance() not in kept.made_with[-1:]:
        kept.made_with.append(provenance())
    return kept


def _save(task: Task, store: StudyStore, run: Run, journal: Journal, kept: _Kept) -> None:
    """Write a part of the log, unless there are no rows, then the checkpoint that counts it.

    An agent of the user's own that cannot be saved has none: if its run is stopped, it begins again.
    """
    from pyarrow import parquet

    table = journal.table()
    if table is not None:
        file = io.BytesIO()
        parquet.write_table(table, file, compression="zstd", use_dictionary=list(TEXTS))
        kept.parts.append(store.write_part(task.name, len(kept.parts), file.getvalue()))
    notes = {
        "settings": np.array(kept.settings),
        "world_digest": np.array(kept.world_digest),
        "parts": np.array(kept.parts, dtype=np.str_),
        "made_with": np.array(json.dumps(kept.made_with)),
    }
    with contextlib.suppress(NotImplementedError):
        store.write_checkpoint(task.name, {**joint_state({"run": run, "journal": journal}), **notes})
    journal.clear()


def _result(task: Task, run: Run, journal: Journal) -> dict[str, Any]:
    """Return the result of a finished run, with all that a report needs to know of its world and agent."""
    totals = {name: journal.total(name) for name in SUMMED}
    seconds = [total for name, total in totals.items() if name.startswith("seconds_")]
    space = run.environment.space
    return {
        **task.labels,
        "status": "finished",
        "episodes": task.episodes,
        "states": space.states,
        "actions": space.actions,
        "horizon": space.horizon,
        "tuples": most_tuples(space),
        **_regret_bounds(run, task.episodes),
        "largest_difference": task.episodes * _widest(run.environment),
        "earnable": totals["optimal_value"] if run.environment.reward_range[0] == 0.0 else None,
        "regret_last_half": totals["regret"] - journal.half,
        **totals,
        "seconds": sum(seconds),
        **_policies(run),
        "error": None,
        "ended": now(),
    }


def _widest(world: Any) -> float:
    """Return the most by which what two episodes earn can differ; one may end before its last step."""
    low, high = world.paid_range
    low, high = world.paid_returns or (world.space.horizon * min(low, 0.0), world.space.horizon * max(high, 0.0))
    return float(high - low)


def _policies(run: Run) -> dict[str, Any]:
    """Return what the agent would do at the end for some contexts, and what states, actions and features are called."""
    world: Any = run.environment
    contexts = shown_contexts(world.contexts)
    truths = [] if isinstance(run, SampledRun) else [world.truth(context) for context in contexts]
    steps, states = shown_cells(world.space, truths)
    told = [advise(run.agent, each, steps=steps, states=states) for each in contexts if len(states)]
    return {"policies": [advice.record() for advice in told], "names": names_of(world)._asdict()}


def _regret_bounds(run: Run, episodes: int) -> dict[str, float]:
    """Return what the oracles promise for this many episodes; infinity without oracles, or at random delays."""
    delay = run.pending.delay
    if not isinstance(run.agent, ModelAgent) or not isinstance(delay, Fixed):
        return dict.fromkeys(BOUNDS, math.inf)
    oracles, sizes = (run.agent.reward_oracle, run.agent.dynamics_oracle), (episodes, run.environment.space.horizon)
    proven = (oracle.delayed_regret_bound(*sizes, delay.episodes, constant=True) for oracle in oracles)
    return dict(zip(BOUNDS, proven, strict=True))


def give_up(task: Task, store: StudyStore, error: str) -> None:
    """Store why a run has lost its workers, unless another process has finished it, or is playing it."""

    def busy() -> None:
        raise BlockingIOError

    with contextlib.suppress(BlockingIOError), store.owned(task.name, busy):
        if not store.is_finished(task.name):
            record_failure(task, store, error)


def record_failure(task: Task, store: StudyStore, error: str) -> None:
    """Store the error of a run; the next start of the study tries it again."""
    result = {**task.labels, "status": "failed", "episodes": task.episodes, "error": error, "settings": task.settings}
    store.write_result(task.name, {**result, "made_with": [provenance()], "ended": now()})


def now() -> str:
    """Return the present date and time, as text."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def estimate(plan: StudyPlan, *, budget: float = 10.0) -> float:
    """Return how many seconds a plan takes on one core, judged by the first episodes of a run of every sort."""
    tasks = {task.name.rpartition("--")[0]: task for task in reversed(plan.tasks())}
    each = budget / len(tasks)
    return sum(_seconds_per_episode(task, each) * task.episodes for task in tasks.values()) * len(plan.seeds)


def peak_memory() -> int:
    """Return the most bytes that this process has had in memory: after `estimate`, about what a worker needs."""
    import resource  # not on Windows, where no study runs

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _seconds_per_episode(task: Task, budget: float) -> float:
    run = task.start()
    run.advance(1)  # loads compiled code
    began, played, taken = time.perf_counter(), 0, 0.0
    while taken <= min(budget, 0.2) and played < task.episodes:
        run.advance(1)
        played, taken = played + 1, time.perf_counter() - began
    return taken / played
