"""How often the intervals of `omg.logs.improvement` are right.

    python -m lab.benchmarks.coverage [REPETITIONS [estimated|learned]]

Two tables in Markdown, for docs/tutorials/logged-tables.md. Every log has 400 episodes; the truth is exact.

    estimated   vectors as contexts, people who decide by a softmax of context and state, propensities estimated; three
                worlds: one step with four features, the treatment trial, random chains
    learned     two labels as contexts; OMG and ε-greedy learned while they logged, propensities known; three worlds:
                arms, a chain, a tree

Three policies are valued: the uniform one, one near the best, and one that mostly takes the first action.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import omg_cmdp as omg
import omg_lab
from omg_cmdp.validation import FloatArray

EPISODES = 400
POPULATION = 4000
"""The number of contexts over which the truth is averaged."""


class Case(NamedTuple):
    """A log, who played it, and how much more each target is worth."""

    played_by: str
    name: str
    world: omg.ContextualMDP
    log: omg.Log
    truths: dict[str, float]


class Linear(omg.ContextualMDP):
    """Rewards and transitions that depend on a vector through a logistic function; different for every pair."""

    def __init__(self, states: int, actions: int, horizon: int, seed: int, contexts: tuple[str, ...] = ()) -> None:
        rng = np.random.default_rng(seed)
        self.space = omg.Space(states=states, actions=actions, horizon=horizon)
        self.labels = {label: rng.normal(size=4) for label in contexts}
        self._rewards = rng.normal(size=(states, actions, 5))
        self._moves = rng.normal(size=(states, actions, states, 5))
        self.behaviour = rng.normal(size=(states, actions, 5)) * 0.6
        self._seen: dict[Any, omg.TabularMDP] = {}

    def vector(self, context: Any) -> FloatArray:
        """Return the features of a context, and a constant."""
        return np.append(self.labels[context] if isinstance(context, str) else context, 1.0)

    def mdp(self, context: Any) -> omg.TabularMDP:
        """Return the tables of a context; those of a label are made once."""
        if isinstance(context, str) and context in self._seen:
            return self._seen[context]
        x = self.vector(context)
        moves = np.exp(self._moves @ x * 0.7)
        tables = {"transitions": moves / moves.sum(-1, keepdims=True), "rewards": 1 / (1 + np.exp(-self._rewards @ x))}
        made = self.space.mdp(**tables)
        if isinstance(context, str):
            self._seen[context] = made
        return made


def by_people(world: omg.ContextualMDP, context: FloatArray, behaviour: FloatArray) -> FloatArray:
    """Return a softmax policy of context and state, (H, S, A)."""
    scores = np.exp(behaviour @ np.append(context, 1.0))
    scores = np.where(world.space.admissible, scores, 0.0)
    return np.tile(scores / scores.sum(-1, keepdims=True), (world.space.horizon, 1, 1))


def targets(world: omg.ContextualMDP) -> dict[str, Callable[[Any], FloatArray]]:
    """Return the policies that are valued."""
    allowed, horizon = world.space.admissible.astype(float), world.space.horizon
    uniform = np.tile(allowed / allowed.sum(-1, keepdims=True), (horizon, 1, 1))
    first = np.tile(np.eye(world.space.actions)[world.space.admissible.argmax(axis=1)], (horizon, 1, 1))
    return {
        "uniform": lambda context: uniform,
        "near the best": lambda context: 0.8 * omg.optimal_policy(world.mdp(context))[0] + 0.2 * uniform,
        "mostly the first": lambda context: 0.8 * first + 0.2 * uniform,
    }


def estimated_logs(repetitions: int) -> Iterator[Case]:
    """Yield logs of people, with estimated propensities, and what each target is worth more than they are."""
    trial = omg_lab.worlds.TreatmentTrial(horizon=3)
    worlds = {"one step": Linear(1, 3, 1, 1), "treatment trial": trial, "chain": Linear(3, 2, 4, 2)}
    for name, world in worlds.items():
        rng = np.random.default_rng(2026)
        shape = (world.space.states, world.space.actions, 5)
        rules = world.behaviour if isinstance(world, Linear) else rng.normal(size=shape) * 0.8
        population = rng.uniform(-1.0, 1.0, size=(POPULATION, 4))
        own = np.mean([omg.policy_value(world.mdp(c), by_people(world, c, rules)) for c in population])
        truths = {
            kind: float(np.mean([omg.policy_value(world.mdp(c), target(c)) for c in population]) - own)
            for kind, target in targets(world).items()
        }
        for _ in range(repetitions):
            log = omg.Log(world.space)
            for context in rng.uniform(-1.0, 1.0, size=(EPISODES, 4)):
                log.add(world.sample(context, by_people(world, context, rules), rng))
            yield Case("people, estimated", name, world, omg.logs.estimate_propensities(log), truths)


def learned_logs(repetitions: int) -> Iterator[Case]:
    """Yield logs of agents that learned while they logged, and what each target is worth more than they were."""
    sizes = {"arms": (1, 3, 1), "chain": (3, 2, 4), "tree": (4, 3, 3)}
    for name, (states, actions, horizon) in sizes.items():
        world = Linear(states, actions, horizon, 5, ("a", "b"))
        worths = {
            kind: float(np.mean([omg.policy_value(world.mdp(c), target(c)) for c in "ab"]))
            for kind, target in targets(world).items()
        }
        for kind in ("OMG, γ = 40", "ε-greedy, ε = 0.1"):
            for repetition in range(repetitions):
                rng = np.random.default_rng([2026, repetition, states])
                tables: dict[str, Any] = {"states": states, "actions": actions, "horizon": horizon}
                tables["contexts"] = ["a", "b"]
                oracles = omg.oracles.CountRewards(**tables), omg.oracles.CountDynamics(**tables)
                agent = (
                    omg.OMG(world.space, *oracles, gamma=40.0)
                    if kind.startswith("OMG")
                    else omg.agents.EpsilonGreedy(world.space, *oracles, epsilon=0.1)
                )
                log, own = omg.Log(world.space), 0.0
                for _ in range(EPISODES):
                    context = "ab"[rng.integers(2)]
                    policy = agent.policy(context)
                    own += omg.policy_value(world.mdp(context), policy) / EPISODES
                    log.add(world.sample(context, policy, rng))
                    agent.update(log.episodes[-1])
                yield Case(kind, name, world, log, {target: worth - own for target, worth in worths.items()})


def main() -> None:
    """Print both tables."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    kinds = {"estimated": estimated_logs, "learned": learned_logs}
    for logs in [kinds[name] for name in sys.argv[2:] or kinds]:
        cells: dict[tuple[str, str, str], list[tuple[float, float, float]]] = {}
        for case in logs(repetitions):
            for kind, target in targets(case.world).items():
                row = (np.nan, np.nan, np.nan)
                with contextlib.suppress(ValueError):  # refused
                    made, truth = omg.logs.improvement(case.log, target), case.truths[kind]
                    low, high = made.interval(0.95)
                    row = made.value - truth, float(low <= truth <= high), (high - low) / 2
                cells.setdefault((case.played_by, case.name, kind), []).append(row)
        print("| played by | world | policy | bias | deviation | covered | half width | refused |")
        print("|---|---|---|---|---|---|---|---|")
        for key, rows in cells.items():
            table = np.array(rows)
            kept = table[~np.isnan(table[:, 0])]
            bias, covered, half = kept.mean(axis=0) if len(kept) else (np.nan,) * 3
            spread = kept[:, 0].std() if len(kept) else np.nan
            numbers = f"{bias:+.3f} | {spread:.3f} | {covered:.2f} | {half:.2f} | {1 - len(kept) / len(table):.0%}"
            print(f"| {' | '.join(key)} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
