"""Where agents meet: worlds × adversaries × seeds, and a file of results that a study can be resumed from."""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.rivals import make
from omg_cmdp import environments, simulate
from omg_cmdp.adversaries import IID, Sorted, WorstRegret
from omg_cmdp.adversaries.base import Adversary
from omg_cmdp.environments import World
from omg_cmdp.runs import Ledger
from omg_cmdp.theory import Round

WORLDS: dict[str, Callable[..., World]] = {
    "linear": environments.LinearWorld,
    "softmax": environments.SoftmaxWorld,
    "treatment": environments.TreatmentTrial,
    "lock": environments.CombinationLock,
    "decoy": environments.Decoy,
    "lower bound": environments.LowerBound,
    "bandit": environments.ContextualBandit,
}
ADVERSARIES = ("iid", "sorted", "adaptive")
RESULTS = Path(__file__).parent / "results" / "arena.jsonl"
LOOK = 3
"""How many contexts, drawn anew, the adaptive adversary compares before each episode."""


class Cell(NamedTuple):
    """One run. The seed is the world's structure, the run's noise and the agent's draws."""

    world: str
    adversary: str
    agent: str
    seed: int
    episodes: int


def play(cell: Cell, observe: Callable[[Round], None] | None = None) -> Ledger:
    """Play one run."""
    # The lower-bound instance is built for the number of episodes.
    options: dict[str, Any] = {"episodes": cell.episodes} if cell.world == "lower bound" else {}
    world = WORLDS[cell.world](seed=cell.seed, **options)
    agent = make(cell.agent, world, seed=cell.seed, episodes=cell.episodes)
    with threadpool_limits(1):
        return simulate(world, _adversary(cell, world), agent, cell.episodes, seed=cell.seed, observe=observe)


def _adversary(cell: Cell, world: World) -> Adversary:
    if cell.adversary == "sorted":
        return Sorted(world.contexts, cell.episodes)
    return IID(world.contexts) if cell.adversary == "iid" else WorstRegret(world.contexts, look=LOOK)


def run(cell: Cell) -> dict[str, Any]:
    """Return what is kept of one run: regret, that of the last half, its seconds, the agent's own microseconds."""
    began = time.process_time()  # of this process alone: other work on the machine does not count
    ledger = play(cell)
    taken = time.process_time() - began
    regret, half = ledger.regret, len(ledger) // 2
    own = ledger.column("seconds_deciding") + ledger.column("seconds_learning")
    first, last = np.array_split(own, 10)[1], np.array_split(own, 10)[-1]
    return {
        **cell._asdict(),
        "regret": regret.sum(),
        "last_half": regret[half:].sum(),
        "seconds": taken,
        "microseconds": [1e6 * float(np.median(part)) for part in (own, first, last)],
    }


def asked(name: str, description: str | None) -> argparse.Namespace:
    """Return what the command line of a study asks for."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 10), metavar=("FIRST", "END"))
    parser.add_argument("--episodes", type=int, default=3000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args()
    arguments.seeds = range(*arguments.seeds)
    return arguments


def finished() -> dict[Cell, dict[str, Any]]:
    """Return the results so far."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    rows = [json.loads(line) for line in lines]
    return {Cell(**{name: row[name] for name in Cell._fields}): row for row in rows}


def study(cells: Iterable[Cell], workers: int) -> None:
    """Run what is missing, and append each result to the file as soon as it is there."""
    done = finished()
    missing = [cell for cell in dict.fromkeys(cells) if cell not in done]
    RESULTS.parent.mkdir(exist_ok=True)
    with concurrent.futures.ProcessPoolExecutor(workers) as pool, RESULTS.open("a") as file:
        running = [pool.submit(run, cell) for cell in missing]
        for number, future in enumerate(concurrent.futures.as_completed(running), 1):
            file.write(json.dumps(future.result()) + "\n")
            file.flush()
            print(f"\r{number} of {len(missing)} runs", end="", flush=True)
    if missing:
        print()
