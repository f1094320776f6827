"""`python -m lab.benchmarks.misfit [SEEDS]`: how often `agent.misfit()` speaks, rightly and wrongly.

Each agent is asked every 100 of 1 000 episodes. Thresholds were chosen with the seeds 0 to 12; these begin at 100.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import omg_cmdp as omg
from omg_lab.worlds import LinearWorld, RiverSwim, SoftmaxWorld, TreatmentTrial
from omg_lab.worlds.base import World

EPISODES, EVERY = 1000, 100
FIRST_SEED, SEEDS = 100, 20

Pair = tuple[omg.RewardOracle, omg.DynamicsOracle]


class Case(NamedTuple):
    """A world and oracles whose classes hold its truth, or do not."""

    name: str
    fits: bool
    world: Callable[[int], World]
    oracles: Callable[[Any], Pair]


def _sizes(world: World) -> dict[str, Any]:
    space = world.space
    return {"states": space.states, "actions": space.actions, "horizon": space.horizon}


def _finite(world: World) -> Pair:
    horizon = world.space.horizon
    rewards = omg.oracles.FiniteRewards(world.reward_functions, horizon=horizon)
    return rewards, omg.oracles.FiniteDynamics(world.transition_functions, horizon=horizon)


def _counts(world: World) -> Pair:
    sizes = {**_sizes(world), "contexts": world.contexts}
    return omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)


def _pooled(world: World) -> Pair:
    return omg.oracles.CountRewards(**_sizes(world)), omg.oracles.CountDynamics(**_sizes(world))


def _mixed(world: World) -> Pair:
    """Rewards are logistic there, so that counts fit and linear ones do not."""
    softmax = omg.oracles.SoftmaxDynamics(**_sizes(world), dimension=4)
    return omg.oracles.CountRewards(**_sizes(world), contexts=world.contexts), softmax


def _basis(world: World) -> Pair:
    rewards = omg.oracles.LinearRewards(**_sizes(world), dimension=3)
    return rewards, omg.oracles.BasisDynamics(**_sizes(world), bases=3)


def _raw(world: World) -> Pair:
    return _linear(world, intercept=False)


def _linear(world: World, *, intercept: bool = True) -> Pair:
    sizes = {**_sizes(world), "dimension": 4, "feature_norm": 2.0, "intercept": intercept}
    return omg.oracles.LinearRewards(**sizes), omg.oracles.SoftmaxDynamics(**sizes)


CASES = (
    Case("treatment trial, its finite class", True, lambda seed: TreatmentTrial(seed=seed), _finite),
    Case("treatment trial, counts for each patient", True, lambda seed: TreatmentTrial(seed=seed), _counts),
    Case("softmax world, counts and softmax", True, lambda seed: SoftmaxWorld(seed=seed), _mixed),
    Case("linear world, linear and basis", True, lambda seed: LinearWorld(seed=seed, context_count=500), _basis),
    Case("river swim, counts for each context", True, lambda seed: RiverSwim(seed=seed), _counts),
    Case("treatment trial, features without a constant", False, lambda seed: TreatmentTrial(seed=seed), _raw),
    Case(
        "treatment trial, drugs interact, no crosses",
        False,
        lambda seed: TreatmentTrial(seed=seed, misspecification=0.5),
        _linear,
    ),
    Case(
        "treatment trial, its finite class, drugs interact",
        False,
        lambda seed: TreatmentTrial(seed=seed, misspecification=0.5),
        _finite,
    ),
    Case("treatment trial, counts for all patients", False, lambda seed: TreatmentTrial(seed=seed), _pooled),
    Case(
        "softmax world, waves in its finite class",
        False,
        lambda seed: SoftmaxWorld(seed=seed, misspecification=0.5),
        _finite,
    ),
    Case(
        "linear world, waves, linear and basis",
        False,
        lambda seed: LinearWorld(seed=seed, misspecification=0.5),
        _basis,
    ),
    Case("river swim, counts for all contexts", False, lambda seed: RiverSwim(seed=seed), _pooled),
)


def first_word(case: Case, seed: int) -> tuple[int | None, str]:
    """Return after how many episodes the agent speaks, and its sentence; None if it does not."""
    world = case.world(seed)
    agent = omg.OMG(world.space, *case.oracles(world), seed=seed)
    run = omg.Run(world, omg.adversaries.IID(world.contexts), agent, seed=seed)
    for episodes in range(EVERY, EPISODES + 1, EVERY):
        run.advance(EVERY)
        if (found := agent.misfit()).findings:
            return episodes, str(found)
    return None, ""


def main() -> None:
    """Print a row for each case."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    print("| world and oracles | class holds the truth | spoke | median of episodes until then |\n|---|---|---|---|")
    for case in CASES:
        words = [first_word(case, seed) for seed in range(FIRST_SEED, FIRST_SEED + seeds)]
        spoke = [episodes for episodes, _ in words if episodes is not None]
        until = f"{np.median(spoke):.0f}" if spoke else ""
        print(f"| {case.name} | {'yes' if case.fits else 'no'} | {len(spoke)} of {seeds} | {until} |", flush=True)
        print(max((text for _, text in words), key=len), file=sys.stderr)


if __name__ == "__main__":
    main()
