"""`python -m benchmarks.exploration`: how to choose γ, on every world and adversary, against the best fixed γ there.

Every run appends its result to benchmarks/results/exploration.jsonl; what is there is not run again. `--summary` only
prints the tables from it.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from omg_cmdp import OMG, environments, oracles, simulate
from omg_cmdp.adversaries import IID, Sorted, WorstRegret
from omg_cmdp.adversaries.base import Adversary
from omg_cmdp.agents import Adaptive, Agent, Greedy, PosteriorSampling
from omg_cmdp.environments import World
from omg_cmdp.experiments import Ledger, Round

RESULTS = Path(__file__).parent / "results" / "exploration.jsonl"
FIXED = tuple(10.0**k for k in range(9))
WORLDS = {
    "linear": environments.LinearWorld,
    "softmax": environments.SoftmaxWorld,
    "treatment": environments.TreatmentTrial,
    "lock": environments.CombinationLock,
    "decoy": environments.Decoy,
    "lower bound": environments.LowerBound,
    "bandit": environments.ContextualBandit,
}
ADVERSARIES = ("iid", "sorted", "adaptive")
AGENTS = ("adaptive", "greedy", "posterior sampling", *(f"{gamma:.0e}" for gamma in FIXED))
LOOK = 3
"""How many contexts, drawn anew, the adaptive adversary compares before each episode."""


class Cell(NamedTuple):
    """One run."""

    world: str
    adversary: str
    agent: str
    seed: int
    episodes: int


def play(cell: Cell, observe: Callable[[Round], None] | None = None) -> Ledger:
    """Play one run; the seed is the world's structure and the run's noise."""
    # The lower-bound instance is built for the number of episodes.
    options: dict[str, Any] = {"episodes": cell.episodes} if cell.world == "lower bound" else {}
    world: World = WORLDS[cell.world](seed=cell.seed, **options)
    players = world, _adversary(cell, world), _agent(cell, world)
    with threadpool_limits(1):
        return simulate(*players, cell.episodes, seed=cell.seed, observe=observe)


def run(cell: Cell) -> dict[str, Any]:
    """Return the regret of one run."""
    regret = play(cell).regret
    return {**cell._asdict(), "regret": regret.sum(), "last_half": regret[len(regret) // 2 :].sum()}


def _adversary(cell: Cell, world: World) -> Adversary:
    if cell.adversary == "sorted":
        return Sorted(world.contexts, cell.episodes)
    return IID(world.contexts) if cell.adversary == "iid" else WorstRegret(world.contexts, look=LOOK)


def _agent(cell: Cell, world: World) -> Agent:
    space, rewards = world.space, _reward_oracle(world)
    dynamics = oracles.FiniteDynamics(world.transition_functions, horizon=space.horizon)
    if cell.agent == "greedy":
        return Greedy(space, rewards, dynamics)
    if cell.agent == "posterior sampling":
        return PosteriorSampling(space, rewards, dynamics, seed=cell.seed)
    if cell.agent.startswith("adaptive"):
        kappa = {"kappa": float(cell.agent.split()[1])} if " " in cell.agent else {}
        return OMG(space, rewards, dynamics, gamma=Adaptive(**kappa), episodes=cell.episodes)
    gamma = cell.agent if cell.agent in ("theory", "anytime") else float(cell.agent)
    return OMG(space, rewards, dynamics, gamma=gamma, episodes=cell.episodes)


def _reward_oracle(world: World) -> oracles.RewardOracle:
    horizon = world.space.horizon
    if not world.product_class:
        return oracles.FiniteRewards(world.reward_functions, horizon=horizon)
    functions = len(world.reward_functions(world.contexts[0]))
    return oracles.ProductRewards(
        world.reward_functions,
        contexts=world.contexts,
        states=world.space.states,
        functions=functions,
        horizon=horizon,
    )


def finished() -> dict[Cell, dict[str, Any]]:
    """Return the results so far."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    rows = [json.loads(line) for line in lines]
    return {Cell(**{name: row[name] for name in Cell._fields}): row for row in rows}


def study(cells: list[Cell], workers: int) -> None:
    """Run what is missing."""
    missing = [cell for cell in cells if cell not in finished()]
    RESULTS.parent.mkdir(exist_ok=True)
    with concurrent.futures.ProcessPoolExecutor(workers) as pool, RESULTS.open("a") as file:
        for number, row in enumerate(pool.map(run, missing, chunksize=1), 1):
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(f"\r{number} of {len(missing)} runs", end="", flush=True)
    print()


def summary(seeds: range, episodes: int, agents: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of the tables: mean regret by cell, and the ratios that count."""
    results = finished()

    def mean(world: str, adversary: str, agent: str, what: str = "regret") -> float:
        return float(np.mean([results[Cell(world, adversary, agent, seed, episodes)][what] for seed in seeds]))

    cells = list(itertools.product(WORLDS, ADVERSARIES))
    fixed = [agent for agent in agents if agent[0].isdigit()]
    others = [agent for agent in agents if agent not in fixed]
    table = {cell: {agent: mean(*cell, agent) for agent in agents} for cell in cells}
    best = {cell: min(row[agent] for agent in fixed) for cell, row in table.items()}
    yield f"Mean regret of {len(seeds)} seeds, T = {episodes}"
    yield "| world | adversary | " + " | ".join(others) + " | best fixed γ | last half of adaptive |"
    yield "|---" * (len(others) + 4) + "|"
    for cell, row in table.items():
        named = min(fixed, key=row.__getitem__)
        share = mean(*cell, others[0], "last_half") / max(row[others[0]], 1e-12)
        numbers = " | ".join(f"{row[agent]:.1f}" for agent in others)
        yield f"| {cell[0]} | {cell[1]} | {numbers} | {best[cell]:.1f} (γ = {named}) | {share:.0%} |"
    yield ""
    yield "| agent | over best fixed γ: geometric mean | worst | over posterior sampling: geometric mean | worst |"
    yield "|---|---|---|---|---|"
    for agent in (*others, *fixed):
        ratios = [table[cell][agent] / best[cell] for cell in cells]
        rivals = [table[cell][agent] / table[cell]["posterior sampling"] for cell in cells]
        means = [float(np.exp(np.mean(np.log(r)))) for r in (ratios, rivals)]
        yield f"| {agent} | {means[0]:.2f} | {max(ratios):.2f} | {means[1]:.2f} | {max(rivals):.2f} |"


def main() -> None:
    """Run and summarise."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exploration", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 10), metavar=("FIRST", "END"))
    parser.add_argument("--episodes", type=int, default=3000)
    parser.add_argument("--agents", nargs="*", default=list(AGENTS), metavar="AGENT")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args()
    seeds, agents = range(*arguments.seeds), tuple(arguments.agents)
    if not arguments.summary:
        grid = itertools.product(seeds, WORLDS, ADVERSARIES, agents)
        cells = [Cell(world, adversary, agent, seed, arguments.episodes) for seed, world, adversary, agent in grid]
        study(cells, arguments.workers)
    print("\n".join(summary(seeds, arguments.episodes, agents)))


if __name__ == "__main__":
    main()
