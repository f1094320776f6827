"""Colosseum's families: their tables, and the exact values of what its posterior sampling and Q-learning play."""

from __future__ import annotations

import importlib
import json
import sys
import unittest.mock
import warnings
from typing import Any

import numpy as np

# From Python 3.11 on the names of an IntEnum are numbers to `gin`, which refuses them; nothing here needs them.
importlib.import_module("gin").__dict__["constants_from_enum"] = lambda kind, **_: kind

# Its neural agents are imported with the others, and are not needed either.
for name in ("ray", "sonnet", "tensorflow", "tensorflow_probability", "trfl", "tree"):
    sys.modules.setdefault(name, unittest.mock.MagicMock())

FAMILIES = {
    "river_swim": "RiverSwimEpisodic",
    "deep_sea": "DeepSeaEpisodic",
    "simple_grid": "SimpleGridEpisodic",
    "frozen_lake": "FrozenLakeEpisodic",
    "minigrid_empty": "MiniGridEmptyEpisodic",
}


def world(request: dict[str, Any]) -> Any:
    family = request["world"]
    module = importlib.import_module(f"colosseum.mdp.{family}")
    options = {k: tuple(map(_tuple, v)) if isinstance(v, list) else v for k, v in request["options"].items()}
    return getattr(module, FAMILIES[family])(seed=request.get("seed", 0), **options)


def _tuple(entry: Any) -> Any:
    return tuple(entry) if isinstance(entry, list) else entry


def tables(request: dict[str, Any]) -> dict[str, Any]:
    mdp = world(request)
    return {
        "transitions": np.asarray(mdp.T, dtype=float).tolist(),
        "rewards": np.asarray(mdp.R, dtype=float).tolist(),
        "start": mdp.starting_state_distribution.tolist(),
        "horizon": int(mdp.H),
        "places": [_place(mdp.index_to_node[i]) for i in range(mdp.n_states)],
        "optimal_value": optimal_value(mdp),
    }


def _place(node: Any) -> list[int]:
    # Some nodes can be gone through, and say their place twice; those of MiniGrid cannot.
    return list(map(int, node if hasattr(node, "__iter__") else vars(node).values()))


def agent(request: dict[str, Any], mdp: Any) -> Any:
    agents: Any = importlib.import_module("colosseum.agent.agents.episodic")
    specs: Any = importlib.import_module("colosseum.utils.acme.specs")
    kind = {"PSRL": agents.PSRLEpisodic, "Q-learning": agents.QLearningEpisodic}[request["agent"]]
    steps = request["episodes"] * mdp.H
    return kind.get_agent_instance_from_parameters(
        request["seed"], steps, specs.make_mdp_spec(mdp), request["parameters"]
    )


def optimal_value(mdp: Any) -> float:
    return float(mdp.optimal_value_functions[1][0] @ mdp.starting_state_distribution)


def play(request: dict[str, Any]) -> dict[str, Any]:
    mdp = world(request)
    while abs(optimal_value(mdp) - request["optimal_value"]) > 1e-5:
        # The seed may choose where episodes start, too: the next one that starts in an equivalent place.
        request = {**request, "seed": request["seed"] + 100}
        mdp = world(request)
    player = agent(request, mdp)
    kernel, rewards = np.asarray(mdp.T, dtype=float), np.asarray(mdp.R, dtype=float)
    now = mdp.reset()
    player.before_start_interacting()
    values = []
    for _ in range(request["episodes"]):
        # What is learned within an episode changes no later step of it; ties are broken uniformly.
        q = np.asarray(player._actor._q_values)[: mdp.H]
        best = q == q.max(axis=-1, keepdims=True)
        value = np.zeros(mdp.n_states)
        for policy in (best / best.sum(axis=-1, keepdims=True))[::-1]:
            value = (policy * (rewards + kernel @ value)).sum(axis=-1)
        values.append(float(value @ mdp.starting_state_distribution))
        while True:
            step = mdp.h
            action = player.select_action(now, step)
            then = mdp.step(action)
            player.step_update(now, action, then, step)
            if player.is_episode_end(now, action, then, step):
                player.episode_end_update()
            now = then
            if then.last():
                now = mdp.reset()
                break
    return {"values": values}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    request = json.loads(sys.argv[1])
    print(json.dumps({"tables": tables, "play": play}[request["what"]](request)))
