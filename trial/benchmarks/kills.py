"""`python -m trial.benchmarks.kills --kills 1000 --file kills.json`: kill -9 of services that live past snapshots.

Every fifty kills have a database of their own, whose log is verified and replayed to the bit; then the counts are
written to the file. Interrupt it when you like: the same command goes on from there. With `--postgresql` each database
is a PostgreSQL server of its own, which is stopped at once and started again in every third life of a service.
"""

from __future__ import annotations

import argparse
import collections
import json
import time
from pathlib import Path
from typing import Any

TOGETHER = 50


def main() -> None:
    """Kill services until there were enough, and count."""
    from tests.attack.service import attack

    command = argparse.ArgumentParser(prog="python -m trial.benchmarks.kills", description=__doc__)
    command.add_argument("--kills", type=int, default=1000)
    command.add_argument("--file", type=Path, default=Path("kills.json"))
    command.add_argument("--postgresql", action="store_true")
    asked = command.parse_args()
    done: dict[str, Any] = {"kills": 0, "counts": {}, "broken": []}
    if asked.file.exists():
        done = json.loads(asked.file.read_text())
    while done["kills"] < asked.kills:
        began = time.perf_counter()
        outcome = attack(TOGETHER / 100, seed=1000 + done["kills"], postgresql=asked.postgresql)
        counts = outcome.counts + collections.Counter(done["counts"])
        counts["seconds"] += round(time.perf_counter() - began)
        kills, broken = done["kills"] + outcome.tried, done["broken"] + outcome.broken
        done = {"kills": kills, "counts": dict(counts), "broken": broken}
        asked.file.write_text(json.dumps(done, indent=1))
        print(f"{kills} kills: {dict(counts)}, {len(broken)} broken", flush=True)


if __name__ == "__main__":
    main()
