"""`python -m benchmarks.audits`: every lemma on 105 runs, all worlds × adversaries × rules for γ."""

from __future__ import annotations

import concurrent.futures
import itertools

from benchmarks.arena import ADVERSARIES, WORLDS, Cell, play
from omg_cmdp.theory.audit import Audit, Row, combine

RULES = ("OMG", "theory", "anytime", "fixed 1e+02", "fixed 1e+05")
EPISODES = 200
DELTA = 0.05


def audited(cell: Cell) -> list[Row]:
    """Return the audit of one run."""
    audit = Audit()
    play(cell, observe=audit)
    return audit.rows(delta=DELTA)


def main() -> None:
    """Audit all runs, and print a table."""
    grid = itertools.product(WORLDS, ADVERSARIES, RULES)
    cells = [Cell(*cell, seed, EPISODES) for seed, cell in enumerate(grid)]
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        runs = list(pool.map(audited, cells))
    print(f"{len(runs)} runs of {EPISODES} episodes, delta = {DELTA}\n")
    print("| statement | runs | checks | violated runs | allowed rate | smallest slack |\n|---|---|---|---|---|---|")
    for summary in combine(runs, DELTA):
        checks = sum(row.checks for run in runs for row in run if row.name == summary.name)
        numbers = f"{summary.runs} | {checks} | {summary.violated} | {summary.allowed:g} | {summary.smallest_slack:.2g}"
        print(f"| {summary.name} | {numbers} |")


if __name__ == "__main__":
    main()
