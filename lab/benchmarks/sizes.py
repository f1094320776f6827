"""`python -m lab.benchmarks.sizes [S A d ...]`: the memory and the time of an episode, for each oracle and size.

Every pair leads to five states, and "support" says which. Memory is what the oracle holds; the time is that of the
processor for one `predict`, 32 `draws` and one `update`, as the default rule asks for them in an episode of ten steps,
and for the agents one `policy` and one `update`: medians, after a first episode that does not count. What an oracle
refuses is shown as its own number of gigabytes.
"""

from __future__ import annotations

import functools
import re
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import omg_cmdp as omg
from omg_cmdp.oracles import BasisDynamics, CountDynamics, CountRewards, LinearRewards, SoftmaxDynamics

SIZES = ((10, 4, 10), (50, 5, 20), (100, 10, 20), (200, 10, 50), (700, 10, 50))
HORIZON, EPISODES, DRAWS, REACHED, BASES = 10, 5, 32, 5, 3
LONG = 5.0
"""Seconds after which no further episode is measured."""


class Setting:
    """Sizes, a support of five next states for each pair, and episodes within it."""

    def __init__(self, states: int, actions: int, dimension: int) -> None:
        self.rng = np.random.default_rng(0)
        self.sizes: dict[str, Any] = {"states": states, "actions": actions, "horizon": HORIZON}
        self.features = self.sizes | {"dimension": dimension}
        self.support = np.zeros((states, actions, states), dtype=np.bool_)
        for row in self.support.reshape(-1, states):
            row[self.rng.choice(states, REACHED, replace=False)] = True

    def oracles(self) -> dict[str, Callable[[], Any]]:
        """Return how each oracle is made."""
        basis = self.sizes | {"bases": BASES, "features": lambda z: np.full(BASES, 1.0 / BASES)}
        return {
            "CountRewards": lambda: CountRewards(**self.sizes),
            "LinearRewards": lambda: LinearRewards(**self.features),
            "CountDynamics": lambda: CountDynamics(**self.sizes),
            "CountDynamics, support": lambda: CountDynamics(**self.sizes, support=self.support),
            "BasisDynamics": lambda: BasisDynamics(**basis),
            "BasisDynamics, support": lambda: BasisDynamics(**basis, support=self.support),
            "SoftmaxDynamics": lambda: SoftmaxDynamics(**self.features),
            "SoftmaxDynamics, support": lambda: SoftmaxDynamics(**self.features, support=self.support),
        }

    def agent(self, rewards: str, dynamics: str) -> omg.OMG:
        """Return an agent of the default rule with two of the oracles."""
        return omg.OMG(omg.Space(**self.sizes), self.oracles()[rewards](), self.oracles()[dynamics]())

    def episode(self) -> omg.Trajectory:
        """Return an episode of a new context, a unit vector."""
        context = self.rng.standard_normal(self.features["dimension"])
        states, actions = [0], self.rng.integers(self.sizes["actions"], size=HORIZON)
        for action in actions:
            states.append(int(self.rng.choice(np.flatnonzero(self.support[states[-1], action]))))
        rewards = self.rng.random(HORIZON)
        return omg.Trajectory(
            context=context / np.linalg.norm(context), states=states, actions=actions, rewards=rewards
        )

    def ask(self, oracle: Any, seen: omg.Trajectory) -> None:
        """Let an oracle, or an agent, have one episode."""
        if isinstance(oracle, omg.OMG):
            oracle.policy(seen.context)
            oracle.update(seen)
            return
        oracle.predict(seen.context)
        oracle.draws(seen.context, DRAWS, self.rng)
        outcomes = seen.rewards if isinstance(oracle, omg.RewardOracle) else seen.states[1:]
        oracle.update(seen.context, seen.states[:-1], seen.actions, outcomes)

    def measure(self, make: Callable[[], Any]) -> str:
        """Return memory and time of what `make` makes, or what it would need."""
        tracemalloc.start()
        try:
            made = make()
        except ValueError as error:
            return f"{re.findall(r'[0-9.]+ GB', str(error))[0]}: refused"
        finally:
            held = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
        times: list[float] = []
        while len(times) < 2 or (len(times) <= EPISODES and sum(times) < LONG):
            seen, begun = self.episode(), time.process_time()
            self.ask(made, seen)
            times.append(time.process_time() - begun)
        return f"{held / 1e6:.3g} MB, {1e3 * statistics.median(times[1:]):.3g} ms"


def main(sizes: list[tuple[int, ...]]) -> None:
    """Print the table of the guide."""
    settings = [Setting(*size) for size in sizes]
    print("| |", *(f"({s},{a}), d = {d} |" for s, a, d in sizes))
    print("|---|" + "---|" * len(sizes))
    agents = (("Count", "Count"), ("Linear", "Basis"), ("Linear", "Softmax"))
    pairs = [(f"{rewards}Rewards", f"{dynamics}Dynamics, support") for rewards, dynamics in agents]
    for names in (*((name,) for name in settings[0].oracles()), *pairs):
        print("|", "OMG of" * (len(names) - 1), " and ".join(names), end=" |", flush=True)
        for each in settings:
            make = functools.partial(each.agent, *names) if len(names) == 2 else each.oracles()[names[0]]
            print(f" {each.measure(make)} |", end="", flush=True)
        print()


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:]]
    omg.warm_up()
    main([tuple(numbers[i : i + 3]) for i in range(0, len(numbers), 3)] or list(SIZES))
