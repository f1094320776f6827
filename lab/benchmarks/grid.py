"""Studies made in code: worlds, adversaries and agents as in a study file, results in lab/benchmarks/results."""

from __future__ import annotations

import argparse
import dataclasses
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd
from rich.console import Console

from omg_lab.reports.terminal import RunDisplay
from omg_lab.studies.config import presets, unchecked_plan
from omg_lab.studies.directory import open_study
from omg_lab.studies.engines import Local, Serial
from omg_lab.studies.plan import StudyPlan, Task
from omg_lab.studies.results import Results, load

from .report import RESULTS

Parts = Mapping[str, Mapping[str, Any]]
"""As in a study file: the kind and options of every world, adversary or agent, by name."""


def parser(name: str, description: str | None, *, episodes: int | None = 3000) -> argparse.ArgumentParser:
    """Return a parser of what all these commands take."""
    made = argparse.ArgumentParser(prog=f"python -m lab.benchmarks.{name}", description=description)
    made.add_argument("--seeds", type=int, nargs="+", default=[10], metavar="N", help="N seeds, or FIRST END")
    made.add_argument("--episodes", type=int, default=episodes, help="of the longest runs; others in proportion")
    made.add_argument("--workers", type=int, default=2)
    made.add_argument("--summary", action="store_true", help="only print the tables, from finished runs")
    return made


def seeds(numbers: list[int]) -> range:
    """Return the seeds of the command line: their number, or the first and the end."""
    if not 1 <= len(numbers) <= 2:
        raise SystemExit(f"--seeds takes one number or two, got {numbers}")
    return range(*numbers)


def preset(name: str) -> dict[str, Any]:
    """Return the content of a preset."""
    return tomllib.loads(presets()[name])


def grid(content: Mapping[str, Any], agents: Parts, *, seeds: Iterable[int], episodes: int) -> StudyPlan:
    """Return a study with other agents, seeds and episodes; not all of its runs need be possible."""
    return unchecked_plan({**content, "agents": dict(agents), "seeds": list(seeds), "episodes": episodes})


def finished(
    plan: StudyPlan, folder: str, *, workers: int, plays: Callable[[Task], bool] = lambda task: True, run: bool = True
) -> Results:
    """Return the results of the runs of `plan` for which `plays` holds; with `run`, missing ones are played first."""
    store = open_study(plan, RESULTS / f"{folder}-{plan.episodes}")
    wanted = [task for task in plan.tasks() if plays(task)]
    tasks = [task for task in wanted if run and not store.is_finished(task.name)]
    engine = Serial() if workers == 1 else Local(workers)
    if tasks:
        with RunDisplay(Console(), tasks) as display:
            engine.run(tasks, store, display)
    results, names = load(store.directory), {task.name for task in wanted}
    failed = results.failed[results.failed["run"].isin(names)]
    if len(failed):
        raise SystemExit(f"{failed['run'].iloc[0]}: {failed['error'].iloc[0]}")
    return dataclasses.replace(results, runs=results.runs[results.runs["run"].isin(names)])


def markdown(frame: pd.DataFrame) -> str:
    """Return a table for the guide."""
    rows = [list(frame.columns), ["---"] * len(frame.columns), *frame.astype(object).fillna("").to_numpy().tolist()]
    return "\n".join("| " + " | ".join(str(value) for value in row) + " |" for row in rows)
