"""`python -m lab.benchmarks [PART ...] [--quick]`: measure speed beside other libraries.

All numbers go to lab/benchmarks/results/bench.json.
A missed target is reported, not raised: time is measured here, never asserted.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from omg_cmdp import plan

from .anchors import anchors
from .decisions import decisions
from .oracles import oracles
from .planner import against_peer, within_budgets
from .report import Report, show, write
from .timing import GAMMA, random_mdp

PARTS: dict[str, Callable[..., Report]] = {
    "planner": against_peer,
    "within": within_budgets,
    "anchors": anchors,
    "oracles": oracles,
    "decisions": decisions,
}


def main() -> None:
    """Run the chosen parts, showing each as soon as it is measured."""
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
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
