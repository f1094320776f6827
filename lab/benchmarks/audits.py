"""`python -m lab.benchmarks.audits`: every lemma on 105 runs, all worlds × adversaries × rules for γ."""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import random

from omg_lab.audit.audit import Audit, AuditRow, combine
from omg_lab.studies.engines import one_thread
from omg_lab.studies.plan import Task

from .grid import Parts, grid, preset

GAMMAS = ("adaptive", "theory", "anytime", 1e2, 1e5)
AGENTS: Parts = {str(gamma): {"kind": "omg", "gamma": gamma} for gamma in GAMMAS}
EPISODES = 200
DELTA = 0.05


def audited(task: Task) -> list[AuditRow]:
    """Return the audit of one run."""
    audit = Audit()
    with one_thread():
        task.start(observe=audit).advance(task.episodes)
    return audit.rows(delta=DELTA)


def main() -> None:
    """Audit all runs, or some of them, and print a table."""
    command = argparse.ArgumentParser(prog="python -m lab.benchmarks.audits", description=__doc__)
    command.add_argument("--runs", type=int, help="only so many, chosen at random")
    asked = command.parse_args()
    grid_of_one = grid(preset("exploration"), AGENTS, seeds=[0], episodes=EPISODES)
    tasks = [dataclasses.replace(task, seed=seed) for seed, task in enumerate(grid_of_one.tasks())]  # no two alike
    if asked.runs:
        tasks = random.Random(0).sample(tasks, min(asked.runs, len(tasks)))
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        runs = list(pool.map(audited, tasks))
    print(f"{len(runs)} runs of {EPISODES} episodes, delta = {DELTA}\n")
    heads = (
        "kind",
        "statement",
        "runs",
        "checks",
        "violated",
        "not proven",
        "vacuous",
        "allowed rate",
        "smallest slack",
    )
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for summary in combine(runs, DELTA):
        checks = sum(row.checks for run in runs for row in run if row.name == summary.name)
        counts = (summary.runs, checks, summary.violated, summary.unproven, summary.vacuous)
        numbers = (f"{summary.allowed:g}", f"{summary.smallest_slack:.2g}")
        print("|", " | ".join([summary.kind, summary.name, *map(str, counts), *numbers]), "|")


if __name__ == "__main__":
    main()
