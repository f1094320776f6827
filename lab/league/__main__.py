"""`python -m lab.league [tune|play|tables|page|check|memory] [--quick]`: the league, as docs/league-protocol.md says.

*tune* chooses the constants on the development families; *play* plays the test families with them; both go on where
they were stopped. *tables* prints what is concluded from the runs so far; without a word all three follow each other.
*page* writes docs/league.csv, what follows from it in docs/league.md, and the figure. Runs are kept in `--results`.
*check* plays `--count` rows of docs/league.csv again, drawn from `--seed`, and says which of them come out otherwise.
*memory* plays one run of each agent with the constants of docs/league.csv, and writes docs/league-memory.csv.
`--quick` plays a twentieth of the episodes with one seed and constants that were not tuned, to see that all runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd

from .entries import ENTRIES
from .families import DEVELOPMENT, TEST
from .page import MEMORY, PAGE, TABLE, measured, replayed, store, text, write
from .play import Game, finished, plays
from .statistics import log_regrets

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
TUNING_SEEDS, SEEDS, FEWER_SEEDS, QUICK_SEEDS = range(2), range(1000, 1004), range(1000, 1002), range(1)
SEASONS = (("i.i.d.", 0), ("i.i.d.", 50), ("sorted", 0), ("adaptive", 0))
"""Orders of contexts, with how many episodes later feedback comes; agents are ranked by the first."""
MOST_WIDENED = 4
"""Values by which a grid is widened at most, at each end; an end that is still the best is said."""
QUICK, LEAP = 0.05, 4
"""Of a quick league: the share of the episodes, and one family in so many where it is not the first season."""


def tune(file: Path, workers: int) -> dict[str, tuple[float, bool]]:
    """Return each agent's constant, with the least mean of L over the development families; and if it is at an end."""
    widened = {name: (0, 0) for name, entry in ENTRIES.items() if entry.first is not None}
    while True:
        grids = {name: ENTRIES[name].grid(more) for name, more in widened.items()}
        games = [
            Game(family, name, constant, seed)
            for name, grid in grids.items()
            for family in DEVELOPMENT
            if plays(family, name)
            for constant in grid
            for seed in TUNING_SEEDS
        ]
        runs = finished(games, file, workers=workers)
        best = {name: _best(runs[runs["agent"] == name]) for name in widened}
        wider = {name: _wider(grids[name], more, best[name]) for name, more in widened.items()}
        if wider == widened:
            return {name: (best[name], best[name] in (grids[name][0], grids[name][-1])) for name in widened}
        widened = wider


def _best(runs: pd.DataFrame) -> float:
    return float(log_regrets(runs.assign(agent=runs["constant"])).mean().idxmin())


def _wider(grid: list[float], widened: tuple[int, int], best: float) -> tuple[int, int]:
    """Return how far a grid is widened: by one value more if the best is at an end."""
    below, above = (count + (best == end) for count, end in zip(widened, (grid[0], grid[-1]), strict=True))
    return min(below, MOST_WIDENED), min(above, MOST_WIDENED)


def season(constants: dict[str, float], *, quick: bool) -> list[Game]:
    """Return all games on the test families; those by which agents are ranked come first."""
    games = []
    for order, delay in SEASONS:
        first = (order, delay) == SEASONS[0]
        for seed in QUICK_SEEDS if quick else SEEDS if first else FEWER_SEEDS:
            for family in list(TEST)[:: LEAP if quick and not first else 1]:
                for name, entry in ENTRIES.items():
                    if plays(family, name) and (first or not entry.first_season_only):
                        played = [constants.get(name)] + [entry.published] * (first and entry.published is not None)
                        share = QUICK if quick else 1.0
                        games += [Game(family, name, constant, seed, order, delay, share) for constant in played]
    return games


def main() -> None:
    """Tune, play and conclude."""
    command = argparse.ArgumentParser(prog="python -m lab.league", description=__doc__)
    command.add_argument("step", nargs="?", choices=("tune", "play", "tables", "page", "check", "memory"))
    command.add_argument("--quick", action="store_true")
    command.add_argument("--workers", type=int, default=2)
    command.add_argument("--results", type=Path, default=RESULTS)
    command.add_argument("--count", type=int, default=100)
    command.add_argument("--seed", type=int, default=0)
    asked = command.parse_args()
    if asked.step == "check":
        wrong = replayed(pd.read_csv(TABLE), count=asked.count, seed=asked.seed)
        print(*wrong, f"{asked.count - len(wrong)} of {asked.count} runs come out as the table says", sep="\n")
        sys.exit(1 if wrong else 0)
    if asked.step == "memory":
        measured(pd.read_csv(TABLE)).to_csv(MEMORY, index=False)
        return
    folder, kind = asked.results, "-quick" if asked.quick else ""
    file, kept = folder / f"league{kind}.jsonl", folder / f"league-constants{kind}.json"
    if asked.step in (None, "tune") or (asked.quick and not kept.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        untuned = {name: (entry.first, True) for name, entry in ENTRIES.items() if entry.first is not None}
        constants = untuned if asked.quick else tune(file, asked.workers)
        kept.write_text(json.dumps({"constants": constants}, indent=1))
    if asked.step == "tune":
        return
    chosen, concludes = json.loads(kept.read_text()), asked.step in ("tables", "page")
    if "frozen" not in chosen and not concludes:
        head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        chosen["frozen"] = head
        kept.write_text(json.dumps(chosen, indent=1))
    games = season({name: constant for name, (constant, _) in chosen["constants"].items()}, quick=asked.quick)
    runs = finished(games, file, workers=0 if concludes else asked.workers)
    if asked.step == "play":
        return
    table = store(runs, chosen["constants"])
    if asked.step == "page":
        table.to_csv(TABLE, index=False)
        write(PAGE, table, commit=chosen["frozen"], missing=len(games) - len(runs))
        subprocess.run([sys.executable, "-m", "docs.figures", "league"], check=True, cwd=PAGE.parents[1])
    print(text(table))


if __name__ == "__main__":
    main()
