"""`python -m benchmarks.audits`: every lemma on 105 runs, all worlds × adversaries × rules for γ."""

from __future__ import annotations

import concurrent.futures
import dataclasses

from benchmarks.grid import Parts, grid, preset
from omg_cmdp.studies.engines import one_thread
from omg_cmdp.studies.plan import Task
from omg_cmdp.theory.audit import Audit, Row, combine

GAMMAS = ("adaptive", "theory", "anytime", 1e2, 1e5)
AGENTS: Parts = {str(gamma): {"kind": "omg", "gamma": gamma} for gamma in GAMMAS}
EPISODES = 200
DELTA = 0.05


def audited(task: Task) -> list[Row]:
    """Return the audit of one run."""
    audit = Audit()
    with one_thread():
        task.start(observe=audit).advance(task.episodes)
    return audit.rows(delta=DELTA)


def main() -> None:
    """Audit all runs, and print a table."""
    grid_of_one = grid(preset("exploration"), AGENTS, seeds=[0], episodes=EPISODES)
    tasks = [dataclasses.replace(task, seed=seed) for seed, task in enumerate(grid_of_one.tasks())]  # no two alike
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        runs = list(pool.map(audited, tasks))
    print(f"{len(runs)} runs of {EPISODES} episodes, delta = {DELTA}\n")
    print("| statement | runs | checks | violated runs | allowed rate | smallest slack |\n|---|---|---|---|---|---|")
    for summary in combine(runs, DELTA):
        checks = sum(row.checks for run in runs for row in run if row.name == summary.name)
        numbers = f"{summary.runs} | {checks} | {summary.violated} | {summary.allowed:g} | {summary.smallest_slack:.2g}"
        print(f"| {summary.name} | {numbers} |")


if __name__ == "__main__":
    main()
