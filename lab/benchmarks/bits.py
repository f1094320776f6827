"""Do two versions of the package give the same bits? `python -m lab.benchmarks.bits FILE`.

The first call writes FILE: a digest of every column of the ledgers of 35 runs, seven worlds by five agents, each saved
and restored halfway. A later call compares with it, and names the runs and columns that differ.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import omg_cmdp as omg
import omg_lab

EPISODES = 60

WORLDS: dict[str, Callable[[], Any]] = {
    "bandit": lambda: omg_lab.worlds.ContextualBandit(seed=1),
    "decoy": lambda: omg_lab.worlds.Decoy(seed=2),
    "linear": lambda: omg_lab.worlds.LinearWorld(seed=3),
    "lock": lambda: omg_lab.worlds.CombinationLock(seed=4),
    "lower_bound": lambda: omg_lab.worlds.LowerBound(seed=5),
    "softmax": lambda: omg_lab.worlds.SoftmaxWorld(seed=6),
    "treatment": lambda: omg_lab.worlds.TreatmentTrial(seed=7),
}


def finite(world: Any) -> tuple[Any, Any]:
    horizon = world.space.horizon
    dynamics = omg.oracles.FiniteDynamics(world.transition_functions, horizon=horizon)
    if not world.product_class:
        return omg.oracles.FiniteRewards(world.reward_functions, horizon=horizon), dynamics
    count = len(world.reward_functions(world.contexts[0]))
    listed = {"contexts": world.contexts, "states": world.space.states, "functions": count}
    return omg.oracles.ProductRewards(world.reward_functions, horizon=horizon, **listed), dynamics


def counts(world: Any) -> tuple[Any, Any]:
    sizes = {name: getattr(world.space, name) for name in ("states", "actions", "horizon")}
    return omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)


AGENTS: dict[str, Callable[[Any], Any]] = {
    "omg": lambda world: omg.OMG(world.space, *finite(world), episodes=EPISODES),
    "omg, γ = 100, counts": lambda world: omg.OMG(world.space, *counts(world), 100.0),
    "greedy": lambda world: omg.agents.Greedy(world.space, *finite(world)),
    "posterior sampling, counts": lambda world: omg.agents.PosteriorSampling(world.space, *counts(world), seed=3),
    "ucbvi": lambda world: omg_lab.rivals.UCBVI(world.space, omg_lab.rivals.Blind()),
}


def digests(world: str, agent: str) -> dict[str, str]:
    """Return a digest of every column of a run that was saved and restored halfway, except those with seconds."""

    def run() -> omg.Run:
        made = WORLDS[world]()
        adversary = (
            omg.adversaries.WorstRegret(made.contexts) if world == "lock" else omg.adversaries.IID(made.contexts)
        )
        return omg.Run(made, adversary, AGENTS[agent](made), seed=11)

    with tempfile.TemporaryDirectory() as folder:
        first = run()
        first.advance(EPISODES // 2)
        first.save(Path(folder) / "run.npz")
        second = run()
        second.restore(Path(folder) / "run.npz")
        second.advance(EPISODES - EPISODES // 2)
    table = second.ledger.table()
    names = [name for name in table if not str(name).startswith("seconds_")]
    return {name: hashlib.sha256(table[name].to_numpy(dtype=float).tobytes()).hexdigest()[:16] for name in names}


def main(path: Path) -> int:
    """Write the digests to `path`, or compare with those in it; return how many runs differ."""
    found = {f"{world}: {agent}": digests(world, agent) for world in WORLDS for agent in AGENTS}
    if not path.exists():
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
        print(f"{len(found)} runs written to {path}")
        return 0
    before = json.loads(path.read_text(encoding="utf-8"))
    differing = {
        run: [name for name, digest in columns.items() if found[run].get(name) != digest]
        for run, columns in before.items()
    }
    for run, names in differing.items():
        if names:
            print(f"{run}: {', '.join(names)}")
    count = sum(bool(names) for names in differing.values())
    print(f"{len(before) - count} of {len(before)} runs are equal to the bit")
    return count


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
