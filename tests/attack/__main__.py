"""`python -m tests.attack [NAME...] [--effort E] [--seed K]`: run the attacks, ten minutes for all of them at effort 1.

`python -m tests.attack readers --minutes M` goes on for M minutes of a processor.

An attack is a module of this folder with a function `attack(effort, seed) -> Outcome`. Effort 1 is what `make attack`
spends; the tests run a small share of it.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from tests.attack.outcome import Outcome

ATTACKS = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if not path.stem.startswith(("__", "test_")) and path.stem != "outcome"
)


def run(name: str, effort: float, seed: int, **more: float) -> Outcome:
    """Run one attack."""
    outcome: Outcome = importlib.import_module(f"tests.attack.{name}").attack(effort, seed, **more)
    return outcome


def main() -> int:
    """Run the attacks asked for, and return 1 if anything broke."""
    command = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    command.add_argument("names", nargs="*", choices=[*ATTACKS, []], metavar="NAME", help=", ".join(ATTACKS))
    command.add_argument("--effort", type=float, default=1.0)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--minutes", type=float, help="processor time of `readers`, in the place of its effort")
    asked = command.parse_args()
    more = {"readers": {"minutes": asked.minutes}} if asked.minutes else {}
    broken = 0
    for name in asked.names or ATTACKS:
        began, used = time.monotonic(), time.process_time()
        outcome = run(name, asked.effort, asked.seed, **more.get(name, {}))
        broken += len(outcome.broken)
        counts = "".join(f", {count} {what}" for what, count in outcome.counts.items())
        seconds, used = time.monotonic() - began, time.process_time() - used
        times = f"{seconds:.0f} s, {used:.0f} s of a processor"
        print(f"{name}: {outcome.tried} tried, {len(outcome.broken)} broken{counts}, {times}")
        for line in outcome.broken[:20]:
            print(f"  {line}")
    return broken > 0


if __name__ == "__main__":
    sys.exit(main())
