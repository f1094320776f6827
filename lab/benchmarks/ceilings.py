"""`python -m lab.benchmarks.ceilings PART [SEEDS] [EPISODES]`: how far is what was lost at most from what was lost?

runs      How often does regret exceed its ceiling? Every world with finite classes and at most twelve states, five
          agents, three adversaries: a run for each seed, with two ceilings, at δ = .05 and at δ = .5. A run fails if
          its regret exceeds its ceiling after any episode.
learned   From which episode on is the ceiling below what uniform play would have lost? Tables and regressions.
refuted   How soon are classes refuted that do not hold the truth, and was the ceiling too low before?
cost      CPU time of an episode in the finite league: the gain-weighted rule alone, the default, which keeps an
          account, and the default with a ceiling, in turns in one process.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import omg_cmdp as omg
from omg_cmdp.agents.building import class_oracles
from omg_cmdp.mdp.occupancy import uniform_policy
from omg_lab import worlds
from omg_lab.studies.catalogue import build_world
from omg_lab.studies.oracles import oracle_pair

from .cells import CELLS, example

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


LEARNED: dict[str, tuple[str, dict[str, Any], Any]] = {
    "river swim, counts": ("river_swim", {}, "counts"),
    "river swim, known rewards": ("river_swim", {}, {"rewards": "known", "dynamics": "counts"}),
    "arms, counts": ("arms", {}, {"rewards": "counts", "dynamics": "known"}),
    "treatment, counts": ("treatment", {}, "counts"),
    "digits, linear": ("classification", {"dataset": "digits"}, {"rewards": "linear", "dynamics": "known"}),
}


def learned(seeds: range, episodes: int) -> Iterator[str]:
    """Yield, for each world and seed, what was lost, what uniform play would have lost, and the ceiling."""
    for (name, (kind, options, oracles)), seed in itertools.product(LEARNED.items(), seeds):
        world = build_world(kind, {"kind": kind, **options}, seed=seed, episodes=episodes)
        agent = omg.OMG(world.space, *oracle_pair(world, oracles), seed=seed)
        ceiling, policy = omg.RegretCeiling(agent), uniform_policy(world.space)
        uniform: list[float] = []

        def observe(this: Any, ceiling: Any = ceiling, policy: Any = policy, uniform: list[float] = uniform) -> None:
            ceiling(this)
            uniform.append(this.truth.regret(policy))

        adversary = omg.adversaries.IID(world.contexts)
        lost = omg.simulate(world, adversary, agent, episodes, seed=seed, observe=observe, progress=False).regret
        most, usual = np.cumsum(ceiling.episodes), np.cumsum(uniform)
        above, late = np.flatnonzero(most >= usual), episodes // 10
        first = 1 + (above[-1] + 1 if len(above) else 0)
        since = f"below from {first} on" if first <= episodes else "not below yet"
        yield (
            f"{name}, seed {seed}, T = {episodes}: regret {lost.sum():.0f}, ceiling {most[-1]:.0f}, uniform "
            f"{usual[-1]:.0f}; {since}; in the last {late} episodes {ceiling.episodes[-late:].mean():.3f} an episode, "
            f"uniform {np.mean(uniform[-late:]):.3f}; regret above its ceiling: {bool((np.cumsum(lost) > most).any())}"
        )


WRONG = ("ContextualBandit", "LinearWorld", "SoftmaxWorld", "TreatmentTrial", "RiverSwim")
DIALS = (0.1, 0.3, 0.6)


def refuted(seeds: range, episodes: int) -> Iterator[str]:
    """Yield, for each wrong class, when it was refuted, and in how many runs regret was above its ceiling before."""
    for name, dial in itertools.product((*WRONG, "Arms"), DIALS):
        times, above = [], 0
        for seed in seeds:
            world = getattr(worlds, name)(seed=seed, misspecification=0.0 if name == "Arms" else dial)
            oracles = class_oracles(world)
            if name == "Arms":  # one table for contexts that differ
                sizes = {each: getattr(world.space, each) for each in ("states", "actions", "horizon")}
                oracles["reward_oracle"] = omg.oracles.CountRewards(**sizes)
            agent = omg.OMG(world.space, oracles["reward_oracle"], oracles["dynamics_oracle"], seed=seed)
            run = omg.Run(world, omg.adversaries.IID(world.contexts), agent, seed=seed, ceiling=True)
            assert run.ceiling is not None
            while len(run.ledger) < episodes and not run.ceiling.reason:
                run.advance(1)
            known = run.ledger.column("ceiling")
            above += bool((np.cumsum(run.ledger.regret) > np.cumsum(known) + 1e-9).any())
            times.append(len(run.ledger) if run.ceiling.reason else np.inf)
        label = "one table for all contexts" if name == "Arms" else f"dial {dial}"
        found = ", ".join("never" if time == np.inf else f"{time:.0f}" for time in sorted(times))
        yield f"{name}, {label}: refuted after {found} (T = {episodes}); regret above its ceiling before in {above}"
        if name == "Arms":
            return


BLOCK = 25


def cost(seeds: range, episodes: int) -> Iterator[str]:
    """Yield the CPU time of an episode in each cell, and the mean of the ratios."""
    rules: dict[str, dict[str, Any]] = {
        "alone": {"gamma": omg.agents.GainWeighted()},
        "default": {},
        "ceiling": {},
    }
    ratios = []
    for cell, seed in itertools.product(CELLS["finite"], seeds):
        world = example("finite", cell)
        runs = {
            name: omg.Run(
                world,
                omg.adversaries.IID(world.contexts),
                omg.OMG.for_world(world, seed=seed, **options),
                seed=seed,
                ceiling=name == "ceiling",
            )
            for name, options in rules.items()
        }
        spent = dict.fromkeys(runs, 0.0)
        for part in range(1 + episodes // BLOCK):
            for name, run in runs.items():
                began = time.process_time()
                run.advance(BLOCK)
                spent[name] += (time.process_time() - began) * (part > 0)  # the first loads compiled code
        ratios.append([spent["default"] / spent["alone"], spent["ceiling"] / spent["default"]])
        each = ", ".join(f"{name} {1e3 * value / episodes:.2f} ms" for name, value in spent.items())
        yield f"{cell}: {each}; default/alone {ratios[-1][0]:.2f}, with a ceiling {ratios[-1][1]:.2f}"
    yield "mean of the ratios: default/alone {:.2f}, with a ceiling {:.2f}".format(*np.mean(ratios, axis=0))


def runs(seeds: range, episodes: int) -> Iterator[str]:
    """Yield the summary of the runs, in all and by world."""
    found = list(outcomes(seeds, episodes))
    yield summary(found)
    for name in WORLDS:
        yield f"\n{name}\n{summary([each for each in found if each.world == name])}"


PARTS: dict[str, tuple[Callable[[range, int], Iterator[str]], int, int]] = {
    "runs": (runs, 9, 200),
    "learned": (learned, 3, 10_000),
    "refuted": (refuted, 5, 2000),
    "cost": (cost, 1, 200),
}


def main() -> None:
    """Play, and print line by line."""
    if len(sys.argv) < 2 or sys.argv[1] not in PARTS:
        sys.exit(f"usage: python -m lab.benchmarks.ceilings {'|'.join(PARTS)} [SEEDS] [EPISODES]")
    part, *usual = PARTS[sys.argv[1]]
    seeds, episodes = (int(sys.argv[k]) if len(sys.argv) > k else usual[k - 2] for k in (2, 3))
    for line in part(range(1000, 1000 + seeds), episodes):
        print(line, flush=True)


if __name__ == "__main__":
    main()
