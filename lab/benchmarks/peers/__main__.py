"""`python -m lab.benchmarks.peers [PEER ...] [--quick]`: worlds of other people, their agents' numbers beside ours.

Results are kept in lab/benchmarks/results/peers.json and not measured again; `--summary` only prints the tables.
`--only OMG` plays these agents; what is kept of the others is printed too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from ..grid import markdown
from ..peers import bakeoff, bsuite, colosseum, scool
from ..peers.kept import Kept
from ..peers.world import OURS, Line
from ..report import RESULTS

PEERS: dict[str, tuple[str, Callable[..., list[Line]]]] = {
    "scool": ("regret of 500 episodes, 10 seeds", scool.measure),
    "bsuite": ("the episode at which a size is solved", bsuite.measure),
    "sweep": ("the same for more sizes of bsuite's sweep, one seed", bsuite.sweep),
    "colosseum": ("regret of 10 000 steps, 3 seeds", colosseum.measure),
    "bakeoff": ("progressive validation loss, 5 orders", bakeoff.measure),
}
"""What is measured, and how."""
AGENTS = {*OURS, *scool.GUESTS, *bsuite.GUESTS, *colosseum.GUESTS, *bakeoff.OURS, *bakeoff.GUESTS, bakeoff.SUPERVISED}
"""Who plays anywhere, by the names in the tables."""


def table(lines: list[Line]) -> str:
    """Return worlds as columns, agents as rows, for the guide."""
    cells = pd.DataFrame([line.cells for line in lines], columns=["world", "agent", "value"])
    wide = cells.pivot_table(index="agent", columns="world", values="value", aggfunc="first", sort=False)
    return markdown(wide.reset_index())


def main(arguments: list[str] | None = None, *, folder: Path = RESULTS) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks.peers", description=__doc__)
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"any of {', '.join(PEERS)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="a few episodes and one seed: whether everything runs")
    parser.add_argument("--summary", action="store_true", help="only print what is there")
    parser.add_argument(
        "--only", nargs="+", default=(), metavar="AGENT", help="these agents, with names as in the tables"
    )
    asked = parser.parse_args(arguments)
    if unknown := set(asked.peers) - set(PEERS):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    if unknown := set(asked.only) - set(AGENTS):
        parser.error(f"--only must name agents of the tables, got {', '.join(sorted(unknown))}")
    kept = Kept(folder / f"peers{'-quick' if asked.quick else ''}.json", run=not asked.summary, only=asked.only)
    for name in asked.peers or PEERS:
        title, measure = PEERS[name]
        print(f"\n{name}: {title}\n\n{table([line for line in measure(kept, quick=asked.quick) if line.values])}")


if __name__ == "__main__":
    main()
