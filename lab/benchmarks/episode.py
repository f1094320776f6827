"""What one episode costs besides arithmetic: calls of Python functions, between modules, keys of contexts, copies.

`python -m lab.benchmarks.episode` counts them with a profiler's hook, in an episode after the first hundred.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import omg_cmdp as omg
import omg_lab

COPIES = {"copy", "array", "astype", "ascontiguousarray"}
PACKAGE = str(Path(omg.__file__).parent)


def run(kind: str) -> omg.Run:
    """Return a run of an agent with finite classes in the softmax world, of (H, S, A) = (5, 5, 3)."""
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
    played, found = run(kind), Counter[str]()
    played.advance(100)

    def hook(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found["calls"] += 1
            caller = frame.f_back.f_code.co_filename if frame.f_back else ""
            found["between modules"] += caller.startswith(PACKAGE) and caller != frame.f_code.co_filename
        elif event == "c_call" and frame.f_code.co_filename.startswith(PACKAGE):
            found["copies"] += argument.__name__ in COPIES
            found["context keys"] += argument.__name__ == "tobytes"

    sys.setprofile(hook)
    try:
        played.advance(1)
    finally:
        sys.setprofile(None)
    return found


if __name__ == "__main__":
    for kind in ("greedy", "fixed", "adaptive"):
        print(f"{kind:9}", ", ".join(f"{name} {number}" for name, number in count(kind).items()))
