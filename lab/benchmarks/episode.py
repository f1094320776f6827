"""What one episode costs: microseconds, calls of Python functions and between modules, keys of contexts, copies.

`python -m lab.benchmarks.episode` counts them with a profiler's hook, in an episode after the first hundred, and then
times runs without the hook.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import omg_cmdp as omg
import omg_lab

COPIES = {"copy", "array", "astype", "ascontiguousarray"}
PACKAGE = str(Path(omg.__file__).parent)
EPISODES, REPEATS = 2000, 5


def run(kind: str) -> omg.Run:
    """Return a run of an agent with finite classes in the softmax world, of (S, A, H) = (5, 3, 5)."""
    world = omg_lab.worlds.SoftmaxWorld(seed=1)
    rewards = omg.oracles.FiniteRewards(world.reward_functions, horizon=world.space.horizon)
    dynamics = omg.oracles.FiniteDynamics(world.transition_functions, horizon=world.space.horizon)
    if kind == "greedy":
        agent: omg.Agent = omg.agents.Greedy(world.space, rewards, dynamics)
    else:
        agent = omg.OMG(world.space, rewards, dynamics, "adaptive" if kind == "adaptive" else 100.0, episodes=10_000)
    return omg.Run(world, omg.adversaries.IID(world.contexts), agent)


def count(kind: str) -> Counter[str]:
    """Return the counts of one episode."""
    played = run(kind)
    found = Counter({"calls": 0, "between modules": 0, "context keys": 0, "copies": 0})
    played.advance(100)

    def hook(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found["calls"] += 1
            found["context keys"] += frame.f_code.co_name == "context_key"
            caller = frame.f_back.f_code.co_filename if frame.f_back else ""
            found["between modules"] += caller.startswith(PACKAGE) and caller != frame.f_code.co_filename
        elif event == "c_call" and frame.f_code.co_filename.startswith(PACKAGE):
            found["copies"] += argument.__name__ in COPIES

    sys.setprofile(hook)
    try:
        played.advance(1)
    finally:
        sys.setprofile(None)
    return found


def microseconds(kind: str) -> float:
    """Return the time of an episode: the least of some runs, because other programs only ever add to it."""
    times = []
    for _ in range(REPEATS):
        played = run(kind)
        played.advance(100)
        began = time.perf_counter()
        played.advance(EPISODES)
        times.append((time.perf_counter() - began) / EPISODES)
    return 1e6 * min(times)


if __name__ == "__main__":
    for kind in ("greedy", "fixed", "adaptive"):
        counts = ", ".join(f"{name} {number}" for name, number in count(kind).items())
        print(f"{kind:9} {microseconds(kind):5.0f} µs, {counts}", flush=True)
