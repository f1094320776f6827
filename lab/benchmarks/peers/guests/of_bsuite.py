"""bsuite's deep sea: what a move does, and when its bootstrapped DQN (JAX) solves it."""

from __future__ import annotations

import importlib
import json
import sys
import types
import warnings
from typing import Any

import numpy as np


def tables(request: dict[str, Any]) -> dict[str, Any]:
    """Return [row, column, action, reward, next column] of all moves; with `luck` those to the right succeed."""
    size = request["size"]
    sea = _sea()(size, deterministic=not request["stochastic"], mapping_seed=request["mapping_seed"])
    sea._rng = types.SimpleNamespace(rand=lambda: float(request["luck"]), randn=lambda: 0.0)
    moves = []
    for row in range(size):
        for column in range(row + 1):
            for action in range(2):
                sea._row, sea._column = row, column
                step = sea._step(action)
                moves.append([row, column, action, float(step.reward), int(sea._column)])
    return {"moves": moves, "optimal_return": float(sea._optimal_return)}


def play(request: dict[str, Any]) -> dict[str, Any]:
    """Return the first logged episode with a share of bad episodes below the threshold; None if there is none."""
    boot_dqn: Any = importlib.import_module("bsuite.baselines.jax.boot_dqn")
    sea = _sea()(
        request["size"],
        deterministic=not request.get("stochastic", False),
        mapping_seed=request["mapping_seed"],
        seed=request["seed"],
    )
    np.random.seed(request["seed"])  # noqa: NPY002, its heads, masks, noise and replay are drawn from this one
    agent = boot_dqn.default_agent(sea.observation_spec(), sea.action_spec(), seed=request["seed"])
    for episode in range(1, request["episodes"] + 1):
        now = sea.reset()
        while not now.last():
            action = agent.select_action(now)
            then = sea.step(action)
            agent.update(now, action, then)
            now = then
        bad = sea.bsuite_info()["total_bad_episodes"]
        if episode in request["logged"] and bad / episode < request["threshold"]:
            return {"solved": episode}
    return {"solved": None}


def _sea() -> Any:
    return importlib.import_module("bsuite.environments.deep_sea").DeepSea


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    request = json.loads(sys.argv[1])
    print(json.dumps({"tables": tables, "play": play}[request["what"]](request)))
