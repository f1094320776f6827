"""`python -m lab.benchmarks.pac`: how many episodes until a policy is within ε, beside regret, on three worlds.

*lock* and *river swim* have 16 and 4 contexts as labels, *smooth* is the linear world, 16 points of a simplex, with
classes of 8 reward functions and 8 kernels. OLIVE, witness rank, OMG and posterior sampling are told the finite
classes; Cover-Rmax, KWIK-Rmax and UCBVI learn tables or regressions of their own. Contexts are i.i.d. OMG and posterior
sampling have nothing to tune. The defaults of the PAC agents were set after trials on these worlds, seeds 0 and 1;
UCBVI's bonus is a hundredth of the theory's; one row has a φ of OLIVE that was chosen by looking. Medians over seeds;
"-" where the run ended before.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from omg_cmdp import OMG, oracles, simulate
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import PosteriorSampling
from omg_cmdp.agents.base import Agent
from omg_lab import sample_complexity
from omg_lab.rivals import OLIVE, UCBVI, CoverRmax, KWIKRmax, PerBall, PerContext, WitnessRank
from omg_lab.worlds import CombinationLock, LinearWorld, RiverSwim, World

from .grid import markdown

WORLDS: dict[str, Callable[[int], World]] = {
    "lock": lambda seed: CombinationLock(seed=seed),
    "river swim": lambda seed: RiverSwim(seed=seed),
    "smooth": lambda seed: LinearWorld(reward_class_size=8, transition_class_size=8, seed=seed),
}


def _told(world: World) -> tuple[Any, Any, Any]:
    """Return what an agent of the finite classes is made of."""
    horizon = world.space.horizon
    rewards = oracles.FiniteRewards(world.reward_functions, horizon=horizon)
    return world.space, rewards, oracles.FiniteDynamics(world.transition_functions, horizon=horizon)


def _rmax(world: World) -> Agent:
    smooth = isinstance(world.contexts[0], np.ndarray)
    return CoverRmax(world.space, PerBall(0.4) if smooth else PerContext())


def _kwik(world: World) -> Agent:
    return KWIKRmax(world.space, dimension=len(world.features(world.contexts[0])), features=world.features)


def agents(world: World, epsilon: float, seed: int) -> dict[str, Callable[[], Agent]]:
    """Return how each agent is made."""
    return {
        "Cover-Rmax": lambda: _rmax(world),
        "KWIK-Rmax": lambda: _kwik(world),
        "OLIVE": lambda: OLIVE(*_told(world), epsilon=epsilon),
        "OLIVE, φ = 0.1": lambda: OLIVE(*_told(world), epsilon=epsilon, rollouts=2000, threshold=0.1),
        "witness rank": lambda: WitnessRank(*_told(world), epsilon=epsilon),
        "OMG": lambda: OMG(*_told(world), seed=seed),
        "posterior sampling": lambda: PosteriorSampling(*_told(world), seed=seed),
        "UCBVI per context": lambda: UCBVI(world.space, PerContext(), scale=0.01),
    }


def measured(world_name: str, epsilon: float, episodes: int, seeds: range) -> pd.DataFrame:
    """Return the medians over seeds, a row for each agent."""
    found: dict[str, list[list[float]]] = {}
    for seed in seeds:
        world = WORLDS[world_name](seed)
        for name, make in agents(world, epsilon, seed).items():
            ledger = simulate(world, IID(world.contexts), make(), episodes, seed=seed)
            found.setdefault(name, []).append([*sample_complexity(ledger, epsilon), ledger.regret.sum()])
    rows = [[world_name, name, *map(_shown, np.median(runs, axis=0))] for name, runs in found.items()]
    return pd.DataFrame(rows, columns=["world", "agent", "mistakes", "played", "output", "regret"])


def _shown(number: float) -> str:
    return f"{abs(number):.0f}" if math.isfinite(number) else "-"


def main() -> None:
    """Play and print."""
    command = argparse.ArgumentParser(prog="python -m lab.benchmarks.pac", description=__doc__)
    command.add_argument("worlds", nargs="*", metavar="WORLD", help=", ".join(WORLDS))
    command.add_argument("--epsilon", type=float, default=0.2)
    command.add_argument("--episodes", type=int, default=10000)
    command.add_argument("--seeds", type=int, default=3)
    asked = command.parse_args()
    if unknown := set(asked.worlds) - set(WORLDS):
        command.error(f"WORLD must be one of {', '.join(WORLDS)}, got {', '.join(sorted(unknown))}")
    tables = [
        measured(name, asked.epsilon, asked.episodes, range(asked.seeds)) for name in asked.worlds or list(WORLDS)
    ]
    print(f"ε = {asked.epsilon:g}, {asked.episodes} episodes, {asked.seeds} seeds\n")
    print(markdown(pd.concat(tables)))


if __name__ == "__main__":
    main()
