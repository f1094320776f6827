"""What the store, the log and the engine of a study cost, and what a second core brings."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from omg_cmdp.documents import Override
from omg_lab.studies.config import read_plan
from omg_lab.studies.directory import open_study
from omg_lab.studies.engines import Engine, Local, Serial, one_thread
from omg_lab.studies.plan import StudyPlan

from .report import Report, Row

STUDY = """
description = "four agents on the treatment trial"
episodes = 3000
seeds = 28
[worlds.treatment]
[agents.omg]
[agents.greedy]
[agents.posterior_sampling]
[agents.epsilon_greedy]
"""


def runs(*, quick: bool) -> Report:
    """Measure the same runs by `Run.advance` in a loop, by the engine on one core, and on two.

    Starting two processes takes some seconds; there are enough runs for that not to matter.
    """
    rounds, episodes = (1, "600") if quick else (2, "3000")
    plan = read_plan(STUDY, [Override("episodes", episodes, "the benchmark")])
    ways = {"a loop": _loop, "one core": _engine(Serial()), "two cores": _engine(Local(2))}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):  # in turns, so that a slow minute of the machine hits all alike
        for name, way in ways.items():
            times[name].append(way(plan))
    overhead = [one / loop for one, loop in zip(times["one core"], times["a loop"], strict=True)]
    speedup = [one / two for one, two in zip(times["one core"], times["two cores"], strict=True)]
    rows = [
        *(Row(f"{len(plan.tasks())} runs, {name}", statistics.median(values), "s") for name, values in times.items()),
        Row("engine, log and store on one core / simulate in a loop", statistics.median(overhead), at_most=1.15),
        Row("one core / two cores", statistics.median(speedup), at_least=1.8),
    ]
    return Report(title="Runs of a study", rows=rows, details=times)


def _loop(plan: StudyPlan) -> float:
    """Return the seconds of all runs without a store: only the ledger."""
    began = time.perf_counter()
    with one_thread():
        for task in plan.tasks():
            task.start().advance(task.episodes)
    return time.perf_counter() - began


def _engine(engine: Engine) -> Callable[[StudyPlan], float]:
    def seconds(plan: StudyPlan) -> float:
        with tempfile.TemporaryDirectory() as folder:
            store = open_study(plan, Path(folder))
            began = time.perf_counter()
            engine.run(plan.tasks(), store, lambda event: None)
            return time.perf_counter() - began

    return seconds
