"""OMG learns Gymnasium's FrozenLake with its success rate as context; the oracles know neither kernels nor rewards.

`python -m lab.benchmarks lake`: what share of the optimum it reaches in 3000 episodes, and earns on the way.

The lake has its usual 100 steps and pays only at its goal, so that an episode earns at most 1. The oracles know that
rewards and transitions are linear in the success rate, with unknown coefficients, and that a move leads at most one
cell on, or ends the episode. They are not told where the holes and the goal are, which action is which direction, nor
how the ice slips.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omg_cmdp import OMG, play
from omg_cmdp.environments import TableWorld, from_gymnasium
from omg_cmdp.oracles import BasisDynamics, LinearRewards
from omg_cmdp.validation import FloatArray

from .report import Report, Row

RATES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
EPISODES, SIDE = 3000, 4
SEEDS = range(3)
AGENTS: dict[str, dict[str, Any]] = {"OMG": {"return_range": (0.0, 1.0)}}
"""Options of OMG, by name."""


class Learned(NamedTuple):
    """What came of it."""

    shares: FloatArray
    """The exact V^π/V* for each success rate, of the policies after all episodes."""
    earned: float
    """All that was earned on the way, over what the optimum would earn in the same contexts."""


def lake(*, quick: bool) -> Report:
    """Learn with each agent and seed; report shares of the optimum: mean and worst context, and on the way."""
    rows, details = [], {}
    for name, options in AGENTS.items():
        seeds, episodes = (SEEDS[:1], 100) if quick else (SEEDS, EPISODES)
        runs = [learned(episodes, seed=seed, **options) for seed in seeds]
        rows += [
            Row(f"{name}: share of the optimum, mean of contexts", _mean([run.shares.mean() for run in runs])),
            Row(f"{name}: in the worst context", _mean([run.shares.min() for run in runs])),
            Row(f"{name}: in the worst context and seed", min(float(run.shares.min()) for run in runs)),
            Row(f"{name}: earned on the way", _mean([run.earned for run in runs])),
        ]
        details[name] = [{"shares": run.shares.tolist(), "earned": run.earned} for run in runs]
    return Report(
        title=f"FrozenLake, 100 steps, success rate as context, {len(seeds)} seeds", rows=rows, details=details
    )


def learned(episodes: int = EPISODES, *, seed: int = 0, **options: Any) -> Learned:
    """Let OMG with these options learn for these episodes, in Gymnasium itself; the tables only evaluate."""
    world = from_gymnasium("FrozenLake-v1", RATES, arguments="success_rate")
    assert isinstance(world, TableWorld)
    sizes: dict[str, Any] = {"states": world.space.states, "actions": world.space.actions, "features": mixture}
    sizes["horizon"] = world.space.horizon
    rewards = LinearRewards(dimension=2, **sizes)
    dynamics = BasisDynamics(bases=2, support=within_one_cell(), **sizes)
    agent = OMG(world.space, rewards, dynamics, episodes=episodes, **options)
    contexts = np.random.default_rng(seed).choice(RATES, size=episodes).tolist()
    log = play(world, agent, contexts, seed=seed)
    shares = np.array([world.truth(c).value(agent.policy(c)) / world.optimal_value(c) for c in RATES])
    return Learned(shares, float(log.returns.sum()) / sum(world.optimal_value(c) for c in contexts))


def _mean(values: list[Any]) -> float:
    return float(np.mean(values))


def mixture(rate: float) -> list[float]:
    """Return the shares of two unknown kernels."""
    return [rate, 1.0 - rate]


def within_one_cell() -> NDArray[np.bool_]:
    """Return which transitions can happen, (S, A, S): to a cell at most one away, or to the end."""
    places = np.array([divmod(cell, SIDE) for cell in range(SIDE**2)])
    near = np.abs(places[:, None] - places).sum(axis=-1) <= 1
    reachable = np.zeros((SIDE**2 + 1, SIDE**2 + 1), dtype=np.bool_)
    reachable[:-1, :-1], reachable[:, -1] = near, True
    return np.repeat(reachable[:, None], 4, axis=1)
