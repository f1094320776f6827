"""CartPole with the pole's length as context and MountainCar with its motor's strength, in cells, for 200 steps.

`python -m lab.benchmarks control`: does the report on encoders choose a good number of cells
without having seen a return;
and OMG against posterior sampling. Returns are means of the last 200 of 1000 episodes, and over seeds. Each seed has
its own 4000 random steps, to which the encoders are fitted and from which the agents learn before the first episode,
and its own contexts. Cells lead to few others, so that next cells have one pseudo-count in all. Numbers of cells are
compared by posterior sampling, which is the faster of the two by far.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp import OMG, play
from omg_cmdp.agents import PosteriorSampling
from omg_cmdp.environments import Clusters, Discretised, Encoder, Steps, encoding_report, from_gymnasium, random_steps
from omg_cmdp.oracles import CountDynamics, CountRewards
from omg_cmdp.validation import FloatArray
from omg_lab.worlds import cart_pole, mountain_car

from .report import Report, Row

HORIZON, EPISODES, LAST = 200, 1000, 200
CELLS, OURS = (10, 20, 50, 100), 36
SEEDS = range(3)
AGENTS: dict[str, Callable[..., Any]] = {"OMG": OMG, "posterior sampling": PosteriorSampling}


class Problem(NamedTuple):
    """A control problem."""

    make: Callable[[], Any]
    contexts: Sequence[float]
    reward_range: tuple[float, float]
    hold: float
    """For how many steps random actions are held."""


POLE = Problem(cart_pole, (0.5, 1.0, 2.0), (0.0, 1.0), 1.0)
CAR = Problem(mountain_car, (1.0, 1.5, 2.0), (-1.0, 0.0), 20.0)


def control(*, quick: bool) -> Report:
    """Compare numbers of cells on CartPole, and agents on both problems."""
    seeds, episodes = (SEEDS[:1], 20) if quick else (SEEDS, EPISODES)
    first: dict[str, list[float]] = {}
    last: dict[str, list[float]] = {}
    chosen = []
    for seed in seeds:
        chosen.append(choice(POLE, seed).cells)
        for cells in CELLS:
            returns = learned(POLE, Clusters(cells, seed=seed), "posterior sampling", episodes, seed)
            for name in (f"{cells} cells", *(["the report's choice"] if cells == chosen[-1] else [])):
                last.setdefault(name, []).append(float(returns[-LAST:].mean()))
                first.setdefault(name, []).append(float(returns[:LAST].mean()))
        for name, problem in (("pole", POLE), ("car", CAR)):
            for agent in AGENTS:
                returns = learned(problem, Clusters(OURS, seed=seed), agent, episodes, seed)
                last.setdefault(f"{name}, {agent}", []).append(float(returns[-LAST:].mean()))
    means = {name: float(np.mean(values)) for name, values in last.items()}
    share, level = (None, None) if quick else (0.95, 1.0)  # targets, for which quick runs are too short
    rows = [
        *(Row(name, mean) for name, mean in means.items()),
        Row("the report's choice / best of 10, 20, 50, 100", of_the_best(last), at_least=share),
        Row(f"the same, in the first {LAST} episodes", of_the_best(first)),
        Row("pole: OMG / posterior sampling", means["pole, OMG"] / means["pole, posterior sampling"], at_least=level),
    ]
    title = f"Control in cells, {HORIZON} steps, {len(seeds)} seeds: returns of the last {LAST} episodes"
    return Report(title=title, rows=rows, details={"first": first, "last": last, "chosen": chosen})


def of_the_best(returns: dict[str, list[float]]) -> float:
    """Return what the report's choice earns, as a share of the best number of cells, over all seeds."""
    best = max(float(np.mean(returns[f"{cells} cells"])) for cells in CELLS)
    return float(np.mean(returns["the report's choice"])) / best


def choice(problem: Problem, seed: int) -> Encoder:
    """Return the encoder that the report chooses."""
    candidates = [Clusters(cells, seed=seed) for cells in CELLS]
    return encoding_report(candidates, steps(problem, seed), seed=seed).choice


@functools.cache
def steps(problem: Problem, seed: int) -> Steps:
    """Return what the encoders are fitted to."""
    return random_steps(problem.make(), 4000, contexts=problem.contexts, hold=problem.hold, seed=seed)


def learned(problem: Problem, encoder: Encoder, agent: str, episodes: int, seed: int) -> FloatArray:
    """Return the returns of an agent in the cells of the encoder, in so many episodes."""
    encoder.fit(steps(problem, seed))
    world = from_gymnasium(
        lambda: Discretised(problem.make(), encoder),
        problem.contexts,
        horizon=HORIZON,
        reward_range=problem.reward_range,
    )
    sizes: dict[str, Any] = {"states": world.space.states, "actions": world.space.actions, "horizon": HORIZON}
    rewards = CountRewards(**sizes, contexts=problem.contexts)
    dynamics = CountDynamics(**sizes, contexts=problem.contexts)
    player = AGENTS[agent](world.space, rewards, dynamics, reward_range=problem.reward_range, seed=seed)
    for episode in encoder.episodes(steps(problem, seed), world.space, problem.contexts):
        player.update(episode)
    order = np.random.default_rng(seed).choice(problem.contexts, size=episodes).tolist()
    return play(world, player, order, seed=seed).returns
