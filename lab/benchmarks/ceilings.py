"""`python -m lab.benchmarks.ceilings [SEEDS] [EPISODES]`: how often does regret exceed its ceiling?

Every world with finite classes and at most twelve states, five agents, three adversaries: one run for each seed, with
two ceilings, at δ = .05 and at δ = .5. A run fails if its regret exceeds its ceiling after any episode. What is
printed: the share of runs that fail, with an exact 95 % interval, and how tight the ceilings are.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import omg_cmdp as omg
from omg_cmdp.agents.building import class_oracles
from omg_lab import worlds

DELTAS = (0.05, 0.5)
WORLDS = (
    *("Arms", "Classification", "ContextualBandit", "CombinationLock", "Corridor", "Decoy", "DeepSea", "LinearWorld"),
    *("LongDecoy", "LowerBound", "NoisyRoom", "RiverSwim", "SoftmaxWorld", "TreatmentTrial", "ACTG175"),
)
AGENTS: dict[str, type[Any]] = {
    "OMG": omg.OMG,
    "greedy": omg.agents.Greedy,
    "posterior sampling": omg.agents.PosteriorSampling,
    "ε-greedy": omg.agents.EpsilonGreedy,
    "uniform": omg.agents.Uniform,
}
ADVERSARIES: dict[str, Callable[[Any, int], Any]] = {
    "iid": lambda contexts, episodes: omg.adversaries.IID(contexts),
    "sorted": lambda contexts, episodes: omg.adversaries.Sorted(contexts[:episodes], episodes),
    "worst regret": lambda contexts, episodes: omg.adversaries.WorstRegret(contexts, look=2),
}


class Outcome(NamedTuple):
    """One run."""

    world: str
    agent: str
    adversary: str
    regret: float
    most: float
    """T·H."""
    failed: tuple[bool, ...]
    """Whether regret exceeded its ceiling at some time, for each δ."""
    totals: tuple[float, ...]
    """The ceilings at the end."""


def outcomes(seeds: range, episodes: int, names: tuple[str, ...] = WORLDS) -> Iterator[Outcome]:
    """Yield the outcome of each run."""
    for name, agent, adversary, seed in itertools.product(names, AGENTS, ADVERSARIES, seeds):
        world = getattr(worlds, name)(seed=seed)
        made = AGENTS[agent].for_world(world, seed=seed)
        ceilings = [omg.RegretCeiling(made, delta=delta, **class_oracles(world)) for delta in DELTAS]
        chosen = ADVERSARIES[adversary](world.contexts, episodes)

        def observe(this: Any, ceilings: list[omg.RegretCeiling] = ceilings) -> None:
            for each in ceilings:
                each(this)

        lost = omg.simulate(world, chosen, made, episodes, seed=seed, observe=observe, progress=False).regret
        above = [np.cumsum(lost) > np.cumsum(each.episodes) + 1e-9 for each in ceilings]
        yield Outcome(
            name,
            agent,
            adversary,
            float(lost.sum()),
            float(episodes * world.space.horizon),
            tuple(bool(each.any()) for each in above),
            tuple(each.total for each in ceilings),
        )


def interval(failures: int, runs: int) -> tuple[float, float]:
    """Return the exact 95 % interval of Clopper and Pearson."""
    from scipy.stats import binomtest

    found = binomtest(failures, runs).proportion_ci()
    return float(found.low), float(found.high)


def summary(found: list[Outcome]) -> str:
    """Return what the runs show, in a few lines."""
    lines = []
    for place, delta in enumerate(DELTAS):
        failures = sum(each.failed[place] for each in found)
        low, high = interval(failures, len(found))
        shares = np.array([each.totals[place] / each.most for each in found])
        ratios = np.array([each.totals[place] / each.regret for each in found if each.regret > 1.0])
        told = f"ceiling/regret median {np.median(ratios):.2f}, 9 of 10 below {np.quantile(ratios, 0.9):.1f}"
        lines.append(
            f"δ = {delta}: {failures} of {len(found)} runs failed, {low:.4f} to {high:.4f}; {told}; "
            f"ceiling/(T·H) median {np.median(shares):.3f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Play, and print the summary, in all and by world."""
    seeds, episodes = (int(sys.argv[k]) if len(sys.argv) > k else default for k, default in ((1, 9), (2, 80)))
    found = list(outcomes(range(1000, 1000 + seeds), episodes))
    print(summary(found))
    for name in WORLDS:
        print(f"\n{name}\n{summary([each for each in found if each.world == name])}")


if __name__ == "__main__":
    main()
