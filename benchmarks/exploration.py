"""`python -m benchmarks.exploration`: how to choose γ, on every world and adversary, against the best fixed γ there.

Every run is kept in benchmarks/results/arena.jsonl and not run again. `--summary` only prints the tables from it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from benchmarks.arena import ADVERSARIES, WORLDS, Cell, asked, finished, study

FIXED = tuple(f"fixed {10.0**k:.0e}" for k in range(9))
AGENTS = ("OMG", "greedy", "posterior sampling", *FIXED)


def summary(seeds: range, episodes: int) -> Iterator[str]:
    """Yield the lines of the tables: mean regret by cell, and the ratios that count."""
    results = finished()

    def mean(world: str, adversary: str, agent: str, what: str = "regret") -> float:
        return float(np.mean([results[Cell(world, adversary, agent, seed, episodes)][what] for seed in seeds]))

    cells = list(itertools.product(WORLDS, ADVERSARIES))
    others = AGENTS[:3]
    table = {cell: {agent: mean(*cell, agent) for agent in AGENTS} for cell in cells}
    best = {cell: min(row[agent] for agent in FIXED) for cell, row in table.items()}
    yield f"Mean regret of {len(seeds)} seeds, T = {episodes}"
    yield "| world | adversary | " + " | ".join(others) + " | best fixed γ | last half of OMG |"
    yield "|---" * (len(others) + 4) + "|"
    for cell, row in table.items():
        named = min(FIXED, key=row.__getitem__).removeprefix("fixed ")
        share = mean(*cell, "OMG", "last_half") / max(row["OMG"], 1e-12)
        numbers = " | ".join(f"{row[agent]:.1f}" for agent in others)
        yield f"| {cell[0]} | {cell[1]} | {numbers} | {best[cell]:.1f} (γ = {named}) | {share:.0%} |"
    yield ""
    yield "| agent | over best fixed γ: geometric mean | worst | over posterior sampling: geometric mean | worst |"
    yield "|---|---|---|---|---|"
    for agent in AGENTS:
        ratios = [table[cell][agent] / best[cell] for cell in cells]
        rivals = [table[cell][agent] / table[cell]["posterior sampling"] for cell in cells]
        means = [float(np.exp(np.mean(np.log(r)))) for r in (ratios, rivals)]
        yield f"| {agent} | {means[0]:.2f} | {max(ratios):.2f} | {means[1]:.2f} | {max(rivals):.2f} |"


def main() -> None:
    """Run and summarise."""
    arguments = asked("exploration", __doc__)
    seeds = arguments.seeds
    if not arguments.summary:
        grid = itertools.product(seeds, WORLDS, ADVERSARIES, AGENTS)
        cells = (Cell(world, adversary, agent, seed, arguments.episodes) for seed, world, adversary, agent in grid)
        study(cells, arguments.workers)
    print("\n".join(summary(seeds, arguments.episodes)))


if __name__ == "__main__":
    main()
