"""`python -m benchmarks [PART ...] [--quick]`: measure, show a table, write JSON and a figure to benchmarks/results.

A missed target is reported, not raised: time is measured here, never asserted.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks.agents import whole_episodes
from benchmarks.control import control
from benchmarks.digits import digits
from benchmarks.icu import icu_sepsis
from benchmarks.iteration import iteration_cost
from benchmarks.lake import lake
from benchmarks.oracles import oracles
from benchmarks.planner import against_peer
from benchmarks.report import Report, show, write
from benchmarks.runs import runs
from benchmarks.scaling import scaling
from benchmarks.sepsis import contextual_sepsis
from benchmarks.timing import GAMMA, random_mdp
from benchmarks.variants import root_regulariser, warm_start
from omg_cmdp import plan

PARTS: dict[str, Callable[..., Report]] = {
    "planner": against_peer,
    "iteration": iteration_cost,
    "icu": icu_sepsis,
    "sepsis": contextual_sepsis,
    "root": root_regulariser,
    "warm": warm_start,
    "scaling": scaling,
    "agents": whole_episodes,
    "oracles": oracles,
    "digits": digits,
    "runs": runs,
    "lake": lake,
    "control": control,
}


def main() -> None:
    """Run the chosen parts, showing each as soon as it is measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, and no figure")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")

    plan(random_mdp(2, 2, 2, seed=0), GAMMA)  # loads the compiled code, or compiles it, before any clock runs
    reports = {}
    for name in arguments.parts or PARTS:
        reports[name] = PARTS[name](quick=arguments.quick)
        show(reports[name])
    missed = [row for report in reports.values() for row in report.rows if row.verdict == "MISSED"]
    targets = sum(bool(row.target) for report in reports.values() for row in report.rows)
    path = write(reports, quick=arguments.quick)
    print(f"\n{targets - len(missed)} of {targets} targets met; all numbers are in {path}")
    for row in missed:
        print(f"  MISSED: {row.name}: {row.value:.4g} {row.unit}".rstrip() + f", target {row.target}")


if __name__ == "__main__":
    main()
