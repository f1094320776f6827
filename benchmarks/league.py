"""`python -m benchmarks.league`: every agent on every world and adversary, each with its constant tuned on other seeds.

Every run is kept in benchmarks/results/arena.jsonl and not run again. `--summary` only prints the tables from it.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from benchmarks.arena import ADVERSARIES, WORLDS, Cell, asked, finished, study
from benchmarks.rivals import RIVALS

TUNING_SEEDS, TUNING_EPISODES = range(100, 102), 1000
NEARLY_NOTHING = 1.0
"""Added to both sides of a ratio of regrets: below it, differences are luck."""


def cells(agent: str, name: str, seeds: range, episodes: int) -> list[Cell]:
    """Return the runs of an agent under the `name` with its constant: all worlds that it plays, and all adversaries."""
    grid = itertools.product(_worlds(agent), ADVERSARIES, seeds)
    return [Cell(world, adversary, name, seed, episodes) for world, adversary, seed in grid]


def tuning() -> dict[tuple[str, str], list[Cell]]:
    """Return, by agent and name, the runs that choose the constants, on seeds of their own."""
    names = [(agent, f"{agent} {constant:g}") for agent, rival in RIVALS.items() for constant in rival.grid]
    return {(agent, name): cells(agent, name, TUNING_SEEDS, TUNING_EPISODES) for agent, name in names}


def chosen() -> dict[str, str]:
    """Return each agent's name with the constant of the smallest geometric mean over the tuning runs."""
    results = finished()
    scores = {
        names: float(np.mean(np.log([results[cell]["regret"] + NEARLY_NOTHING for cell in runs])))
        for names, runs in tuning().items()
    }
    best = {agent: agent for agent in RIVALS}
    for agent, name in sorted(scores, key=scores.__getitem__, reverse=True):
        best[agent] = name
    return best


def table(seeds: range, episodes: int) -> pd.DataFrame:
    """Return the runs of the league, a row for each, with the agent's name and its constant."""
    results = finished()
    rows = []
    for agent, name in chosen().items():
        constant = name.removeprefix(agent).strip()
        for cell in cells(agent, name, seeds, episodes):
            usual, early, late = results[cell]["microseconds"]
            costs = {"µs": usual, "µs early": early, "µs late": late}
            rows.append({**results[cell], **costs, "agent": agent, "constant": constant})
    return pd.DataFrame(rows)


def summary(runs: pd.DataFrame) -> str:
    """Return the league table, and the mean regret by cell."""
    place = ["world", "adversary"]
    regret = runs.pivot_table(index=place, columns="agent", values="regret", sort=False)
    ratio = (regret + NEARLY_NOTHING).div(regret.min(axis=1) + NEARLY_NOTHING, axis=0)
    league = pd.DataFrame(
        {
            "constant": runs.groupby("agent")["constant"].first(),
            "ratio, geometric mean": np.exp(np.log(ratio).mean()).round(2),
            "worst ratio": ratio.max().round(1),
            "mean rank": regret.rank(axis=1).mean().round(1),
            "mean regret": regret.mean().round(1),
            **{name: runs.groupby("agent")[name].mean().round() for name in ("µs", "µs early", "µs late")},
            "cells": regret.count(),
        }
    ).sort_values("ratio, geometric mean")
    return _markdown(league.reset_index()) + "\n\n" + _markdown(regret[league.index].round(1).reset_index())


def _markdown(frame: pd.DataFrame) -> str:
    rows = [list(frame.columns), ["---"] * len(frame.columns), *frame.astype(object).fillna("").to_numpy().tolist()]
    return "\n".join("| " + " | ".join(str(value) for value in row) + " |" for row in rows)


def _runs(seeds: range, episodes: int) -> list[Cell]:
    """Return the runs of the league, seed by seed, once the constants are chosen."""
    runs = [cell for agent, name in chosen().items() for cell in cells(agent, name, seeds, episodes)]
    return sorted(runs, key=lambda cell: cell.seed)


def _worlds(agent: str) -> list[str]:
    return [name for name, world in WORLDS.items() if RIVALS[agent].plays(world())]


def main() -> None:
    """Tune, run and summarise."""
    arguments = asked("league", __doc__)
    seeds = arguments.seeds
    if not arguments.summary:
        study(itertools.chain.from_iterable(tuning().values()), arguments.workers)
        study(_runs(seeds, arguments.episodes), arguments.workers)
    results = finished()
    everything = [*itertools.chain.from_iterable(tuning().values()), *_runs(seeds, arguments.episodes)]
    minutes = sum(results[cell]["seconds"] for cell in everything) / 60.0
    print(f"{len(seeds)} seeds, T = {arguments.episodes}; {len(everything)} runs, {minutes:.0f} minutes of one core\n")
    print(summary(table(seeds, arguments.episodes)))


if __name__ == "__main__":
    main()
