"""Cells, worlds with their oracles, as data: what an episode takes is measured on them. A cell more is a line more.

*finite*: the worlds of the preset `league`, with their function classes.
*learned*: tables that must be learned, by counts, by regressions, or by bases of kernels.
"""

from __future__ import annotations

from typing import Any

from omg_lab.studies.catalogue import WORLDS, build_world
from omg_lab.worlds import World

from .grid import preset

EPISODES = 1000

BANDIT = {"rewards": "counts", "dynamics": "known"}
REGRESSION = {"rewards": "linear", "dynamics": "known"}
MIXED = {"rewards": "linear", "dynamics": "basis"}
LAKE = {
    "kind": "gymnasium",
    "id": "FrozenLake-v1",
    "contexts": [0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
    "arguments": "success_rate",
    "horizon": 100,
    "episodes": 300,
}
ROOM = {"kind": "noisy_room", "episodes": 1000}

LEARNED: dict[str, dict[str, Any]] = {
    "river swim": {"kind": "river_swim", "episodes": 1000, "oracles": "counts"},
    "deep sea": {"kind": "deep_sea", "episodes": 1000, "oracles": "counts"},
    "noisy room": {**ROOM, "oracles": "counts"},
    "noisy room, known rewards": {**ROOM, "oracles": {"rewards": "known", "dynamics": "counts"}},
    "long decoy 20": {"kind": "long_decoy", "horizon": 20, "episodes": 600, "oracles": BANDIT},
    "long decoy 100": {"kind": "long_decoy", "horizon": 100, "episodes": 400, "oracles": BANDIT},
    "corridor": {"kind": "corridor", "episodes": 600, "oracles": "counts"},
    "arms 10": {"kind": "arms", "actions": 10, "episodes": 1000, "oracles": BANDIT},
    "arms 50": {"kind": "arms", "actions": 50, "episodes": 1500, "oracles": BANDIT},
    "linear": {"kind": "linear", "episodes": 800, "oracles": "linear"},
    "softmax": {"kind": "softmax", "episodes": 800, "oracles": "linear"},
    "linear, misspecified": {"kind": "linear", "misspecification": 0.2, "episodes": 800, "oracles": "linear"},
    "softmax, misspecified": {"kind": "softmax", "misspecification": 0.2, "episodes": 800, "oracles": "linear"},
    "treatment": {"kind": "treatment", "episodes": 1000, "oracles": "counts"},
    "ACTG 175": {"kind": "actg175", "episodes": 500, "oracles": {"rewards": "known", "dynamics": "softmax"}},
    "ICU-Sepsis, reduced": {
        "kind": "reduced_sepsis",
        "episodes": 500,
        "oracles": {"rewards": "known", "dynamics": "counts"},
    },
    "frozen lake": {**LAKE, "oracles": MIXED},
    "frozen lake, one return": {**LAKE, "oracles": MIXED, "return_range": [0.0, 1.0]},
    **{
        name: {"kind": "classification", "dataset": name, "episodes": episodes, "oracles": REGRESSION}
        for name, episodes in (("iris", 500), ("wine", 500), ("breast_cancer", 500), ("digits", 1500))
    },
}

FINITE: dict[str, dict[str, Any]] = {
    name: {"kind": name, **table} for name, table in preset("league")["worlds"].items()
}
CELLS = {"finite": FINITE, "learned": LEARNED}


def content(part: str) -> dict[str, Any]:
    """Return the study of the cells whose worlds can be built here, without agents and seeds."""
    worlds = {name: options for name, options in CELLS[part].items() if options["kind"] in WORLDS}
    return {"name": part, "episodes": EPISODES, "worlds": worlds, "adversaries": {"iid": {}}}


def example(part: str, cell: str) -> World:
    """Return a world of a cell."""
    options = CELLS[part][cell]
    world: World = build_world(options["kind"], options, seed=0, episodes=EPISODES)
    return world
