"""A decision of the default rule beside one of a fixed γ and one of greedy, with counts, by size of the model.

Agents decide in turns, each in a run of its own, and learn in between. Processor time: the machine may be shared.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from omg_cmdp import OMG, ContextualMDP, TabularMDP
from omg_cmdp.agents import Agent, Greedy
from omg_cmdp.contexts import Context
from omg_cmdp.oracles import CountDynamics, CountRewards

from .report import Report, Row
from .timing import random_mdp

SIZES = ((5, 3, 5), (10, 4, 10), (30, 4, 10), (50, 5, 20), (100, 4, 17))
"""(S, A, H)."""
LEARNED, ENOUGH = 20, 1.0
"""Episodes before the clock runs, and seconds of decisions of each agent."""


class _World(ContextualMDP):
    """One MDP for every context."""

    def __init__(self, mdp: TabularMDP) -> None:
        self.space, self._mdp = mdp.space, mdp

    def mdp(self, context: Context) -> TabularMDP:
        return self._mdp


def decisions(*, quick: bool) -> Report:
    """Return medians, and their ratios."""
    rows, details = [], {}
    for states, actions, horizon in SIZES:
        times = _times(random_mdp(horizon, states, actions, seed=0), ENOUGH / 5.0 if quick else ENOUGH)
        found = {name: statistics.median(each) for name, each in times.items()}
        size = f"S = {states}, A = {actions}, H = {horizon}"
        rows += [Row(f"{name}, {size}", 1e6 * found[name], "µs") for name in found]
        rows.append(Row(f"default / fixed, {size}", found["default"] / found["fixed"], at_most=2.5))
        details[size] = times
    return Report(title="Decisions with counts: the default rule, γ = 1000, greedy", rows=rows, details=details)


def _times(mdp: TabularMDP, enough: float) -> dict[str, list[float]]:
    world, space = _World(mdp), mdp.space
    sizes: dict[str, Any] = {"states": space.states, "actions": space.actions, "horizon": space.horizon}

    def oracles() -> tuple[CountRewards, CountDynamics]:
        return CountRewards(**sizes), CountDynamics(**sizes)

    agents: dict[str, Agent] = {
        "default": OMG(space, *oracles()),
        "fixed": OMG(space, *oracles(), gamma=1000.0),
        "greedy": Greedy(space, *oracles()),
    }
    times: dict[str, list[float]] = {name: [] for name in agents}
    generator, played = np.random.default_rng(0), 0
    while played <= LEARNED or sum(times["fixed"]) < enough:
        for name, agent in agents.items():
            began = time.process_time()
            policy = agent.policy("any")
            if played >= LEARNED:
                times[name].append(time.process_time() - began)
            agent.update(world.sample("any", policy, generator))
        played += 1
    return times
