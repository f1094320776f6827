"""`python -m lab.league [tune|play|tables] [--quick]`: the league, as docs/league-protocol.md says.

*tune* chooses the constants on the development families; *play* plays the test families with them; *tables* prints what
is concluded. Without a word all three follow each other. Runs are kept in lab/benchmarks/results/league.jsonl and not
played again. `--quick` plays a twentieth of the episodes with one seed and constants that were not tuned, to see that
everything runs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

from .entries import ENTRIES, OURS
from .families import DEVELOPMENT, TEST
from .play import Game, finished, plays
from .statistics import comparisons, disasters, log_regrets, sensitivity

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
TUNING_SEEDS, SEEDS, FEWER_SEEDS = range(2), range(1000, 1010), range(1000, 1004)
ORDERS, DELAYS = ("i.i.d.", "sorted", "adaptive"), (0, 50)
MOST_WIDENED = 4
"""Values by which a grid is widened at most, at each end; an end that is still the best is said."""
QUICK = 0.05


def tune(file: Path, workers: int) -> dict[str, float]:
    """Return the constant of each agent that has one: least mean of L over the development families."""
    widened = {name: (0, 0) for name, entry in ENTRIES.items() if entry.first is not None}
    while True:
        games = [
            Game(family, name, constant, seed)
            for name in widened
            for family in DEVELOPMENT
            if plays(family, name)
            for constant in ENTRIES[name].grid(widened[name])
            for seed in TUNING_SEEDS
        ]
        runs = finished(games, file, workers=workers)
        constants = {name: _best(runs[runs["agent"] == name]) for name in widened}
        wider = {name: _wider(ENTRIES[name].grid(widened[name]), widened[name], constants[name]) for name in widened}
        if wider == widened:
            return constants
        widened = wider


def _best(runs: pd.DataFrame) -> float:
    return float(log_regrets(runs.assign(agent=runs["constant"])).mean().idxmin())


def _wider(grid: list[float], widened: tuple[int, int], best: float) -> tuple[int, int]:
    """Return how far a grid is widened: by one value more if the best is at an end."""
    below, above = (count + (best == end) for count, end in zip(widened, (grid[0], grid[-1]), strict=True))
    return min(below, MOST_WIDENED), min(above, MOST_WIDENED)


def season(constants: dict[str, float], file: Path, workers: int, *, quick: bool) -> pd.DataFrame:
    """Return all runs on the test families."""
    chosen = {name: entry.first if quick else constants.get(name) for name, entry in ENTRIES.items()}
    share, games = (QUICK if quick else 1.0), []
    for family in TEST:
        for name in ENTRIES:
            if plays(family, name):
                for order in ORDERS:
                    for delay in DELAYS if order == ORDERS[0] else DELAYS[:1]:
                        first = order == ORDERS[0] and not delay
                        seeds = SEEDS[:1] if quick else SEEDS if first else FEWER_SEEDS
                        games += [Game(family, name, chosen[name], seed, order, delay, share) for seed in seeds]
    return finished(games, file, workers=workers)


def tables(runs: pd.DataFrame) -> str:
    """Return what is concluded, as text: OMG beside every rival for each order and delay, then the sensitivity."""
    parts = []
    for (order, delay), part in runs.groupby(["order", "delay"], sort=False):
        logs, cost = log_regrets(part).mean(), part.groupby("agent")["seconds"].sum()
        found = (
            comparisons(part, OURS)
            .join(disasters(part))
            .assign(
                **{"mean of L": logs, "first 100": part.groupby("agent")["early"].mean(), "cost": cost / cost["greedy"]}
            )
        )
        parts += [
            f"{order}, delay {delay}. {OURS}: {logs[OURS]:.3f}",
            found.sort_values("mean of L").round(3).to_string(),
        ]
    first = runs[(runs["order"] == ORDERS[0]) & (runs["delay"] == 0)]
    rivals = sorted(set(first["agent"]) - {OURS, "uniform"})
    return "\n\n".join([*parts, "Other choices", sensitivity(first, OURS, rivals).round(2).to_string()])


def main() -> None:
    """Tune, play and conclude."""
    command = argparse.ArgumentParser(prog="python -m lab.league", description=__doc__)
    command.add_argument("step", nargs="?", choices=("tune", "play", "tables"))
    command.add_argument("--quick", action="store_true")
    command.add_argument("--workers", type=int, default=2)
    asked = command.parse_args()
    file, kept = RESULTS / ("league-quick.jsonl" if asked.quick else "league.jsonl"), RESULTS / "league-constants.json"
    if not asked.quick and asked.step in (None, "tune"):
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(tune(file, asked.workers), indent=1))
    if asked.step == "tune":
        return
    runs = season({} if asked.quick else json.loads(kept.read_text()), file, asked.workers, quick=asked.quick)
    print(tables(runs))


if __name__ == "__main__":
    main()
