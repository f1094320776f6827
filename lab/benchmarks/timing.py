"""How time is measured here: interleaved, repeated, and summarised by medians, because the machine may be shared."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable

import numpy as np

from omg_cmdp import TabularMDP

GAMMA = 1e3
EPISODES = 1e6
TOLERANCE = 1 / (16 * EPISODES)
LONG_ENOUGH = 0.02
"""Seconds. A shorter call is measured as the mean over a loop of about this length."""

Measurement = Callable[[], dict[str, float]]
"""Measures once and returns one time or more, by name, in seconds."""


def clock(name: str, call: Callable[[], object]) -> Measurement:
    """Return the measurement of one call, after running it twice to warm up and to learn how long it takes."""
    single = min(_elapsed(call, 1) for _ in range(2))
    loops = max(1, math.ceil(LONG_ENOUGH / single))
    return lambda: {name: _elapsed(call, loops) / loops}


def interleave(rounds: int, *measurements: Measurement) -> dict[str, list[float]]:
    """Measure in turns, so that a slow minute of the machine hits every side alike; return the times by name."""
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for measurement in measurements:
            for name, value in measurement().items():
                times.setdefault(name, []).append(value)
    return times


def medians(times: dict[str, list[float]]) -> dict[str, float]:
    """Return the median of each list."""
    return {name: statistics.median(values) for name, values in times.items()}


def random_mdp(horizon: int, states: int, actions: int, seed: int) -> TabularMDP:
    """Return an MDP with Dirichlet(1) transitions and uniform rewards, starting in state 0."""
    generator = np.random.default_rng([horizon, states, actions, seed])
    return TabularMDP(
        transitions=generator.dirichlet(np.ones(states), (states, actions)),
        rewards=generator.random((states, actions)),
        horizon=horizon,
    )


def _elapsed(call: Callable[[], object], loops: int) -> float:
    began = time.perf_counter()
    for _ in range(loops):
        call()
    return time.perf_counter() - began
