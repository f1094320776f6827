"""Studies made in code: the worlds and adversaries of a preset, other agents, results in benchmarks/results."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd
from rich.console import Console

from benchmarks.report import RESULTS
from omg_cmdp.reports.terminal import Live
from omg_cmdp.studies.config import presets, unchecked_plan
from omg_cmdp.studies.directory import open_study
from omg_cmdp.studies.engines import Local, Serial
from omg_cmdp.studies.plan import Plan, Task
from omg_cmdp.studies.results import Results, load

Agents = Mapping[str, Mapping[str, Any]]
"""As in a study file: the kind and options of every agent, by name."""


def arguments(name: str, description: str | None) -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 10), metavar=("FIRST", "END"))
    parser.add_argument("--episodes", type=int, default=3000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--summary", action="store_true", help="only print the tables, from finished runs")
    found = parser.parse_args()
    found.seeds = range(*found.seeds)
    return found


def grid(preset: str, agents: Agents, *, seeds: Iterable[int], episodes: int) -> Plan:
    """Return the plan of a preset with other agents, seeds and episodes; not all of its runs need be possible."""
    content = tomllib.loads(presets()[preset])
    return unchecked_plan(
        {**content, "name": preset, "agents": dict(agents), "seeds": list(seeds), "episodes": episodes}
    )


def finished(
    plan: Plan, folder: str, *, workers: int, plays: Callable[[Task], bool] = lambda task: True, run: bool = True
) -> Results:
    """Return the results of `plan`; with `run`, the missing runs for which `plays` holds are played first."""
    store = open_study(plan, RESULTS / f"{folder}-{plan.episodes}")
    tasks = [task for task in plan.tasks() if run and plays(task) and not store.is_finished(task.name)]
    engine = Serial() if workers == 1 else Local(workers)
    if tasks:
        with Live(Console(), tasks) as display:
            engine.run(tasks, store, display)
    results = load(store.directory)
    if len(results.failed):
        raise SystemExit(results.failed["error"].iloc[0])
    return results


def markdown(frame: pd.DataFrame) -> str:
    """Return a table for the guide."""
    rows = [list(frame.columns), ["---"] * len(frame.columns), *frame.astype(object).fillna("").to_numpy().tolist()]
    return "\n".join("| " + " | ".join(str(value) for value in row) + " |" for row in rows)
