"""rlberry-scool's chain and grid world, and the exact values of what its UCBVI plays in them."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from typing import Any

import numpy as np


def world(name: str, options: dict[str, Any]) -> Any:
    from rlberry_scool.envs.finite import Chain, GridWorld

    return {"chain": Chain, "grid_world": GridWorld}[name](**options)


def value(kernel: Any, rewards: Any, actions: Any, start: int) -> float:
    """Return the value of the deterministic policy `actions` (H, S)."""
    states, values = np.arange(len(kernel)), np.zeros(len(kernel))
    for chosen in actions[::-1]:
        values = rewards[states, chosen] + kernel[states, chosen] @ values
    return float(values[start])


def play(request: dict[str, Any]) -> dict[str, Any]:
    from rlberry_scool.agents import UCBVIAgent

    env = world(request["world"], request["options"])
    agent = UCBVIAgent(
        env, horizon=request["horizon"], gamma=1.0, seeder=request["seed"], **request.get("agent_options", {})
    )
    start = int(env.initial_state_distribution)
    values = []
    for _ in range(request["episodes"]):
        values.append(value(env.P, env.R, agent.Q.argmax(axis=-1), start))
        agent._run_episode()
    return {"values": values}


def tables(request: dict[str, Any]) -> dict[str, Any]:
    env = world(request["world"], request["options"])
    return {"transitions": env.P.tolist(), "rewards": env.R.tolist(), "start": int(env.initial_state_distribution)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable()
    request = json.loads(sys.argv[1])
    print(json.dumps({"tables": tables, "play": play}[request["what"]](request)))
