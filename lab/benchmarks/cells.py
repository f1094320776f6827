"""The cells of the leagues: worlds with their oracles and adversaries, as data. A world more is a line more.

*finite*: the worlds and adversaries of the preset `league`, with the function classes of the worlds.
*learned*: tables that must be learned, by counts, by regressions, or by bases of kernels.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from omg_lab.studies.catalogue import WORLDS, build_world
from omg_lab.worlds import World

from .grid import Parts, preset

SLOW = ("PC-IGW", "UC3RL", "RM-UCDD", "GLM-ORL", "GLM-RLSVI", "entropy")
SLOWER = (*SLOW, "OMG, root")
"""Rivals that take more than 20 ms an episode in large cells, and in those of Gymnasium's grids."""


class Cell(NamedTuple):
    """A world, and who plays there."""

    world: dict[str, Any]
    """As in a study file, with its kind, and perhaps `episodes`, `oracles` and `return_range`."""
    adversaries: tuple[str, ...]
    most_seeds: int = 10
    without: tuple[str, ...] = ()
    """Agents that would take too long here."""


class League(NamedTuple):
    """Cells by name, the adversaries that they name, and how long runs are."""

    cells: dict[str, Cell]
    adversaries: Parts
    episodes: int
    """Of a world that says nothing else."""
    seeds: int
    """As many as the three hours of a league allow for."""
    tuning_share: float
    """How long the runs are by which constants are chosen, relative to the others."""
    tuning_adversaries: tuple[str, ...]

    def content(self, share: float = 1.0) -> dict[str, Any]:
        """Return the study without agents and seeds, for this share of the episodes."""

        def shorter(options: dict[str, Any]) -> dict[str, Any]:
            return {key: round(share * value) if key == "episodes" else value for key, value in options.items()}

        worlds = {name: shorter(cell.world) for name, cell in self.cells.items() if cell.world["kind"] in WORLDS}
        return {
            "name": "league",
            **shorter({"episodes": self.episodes}),
            "worlds": worlds,
            "adversaries": self.adversaries,
        }

    def missing(self) -> list[str]:
        """Return the cells whose world is not in the catalogue: it may need a package that is not installed."""
        return [name for name, cell in self.cells.items() if cell.world["kind"] not in WORLDS]


@functools.cache
def example(league: str, cell: str) -> World:
    """Return a world of a cell, to ask which agents can play there."""
    options = LEAGUES[league].cells[cell].world
    world: World = build_world(options["kind"], options, seed=0, episodes=LEAGUES[league].episodes)
    return world


ALL = ("iid", "sorted", "adaptive")
MANY = ("iid", "adaptive of 3")
"""Where there are many contexts, the adaptive adversary looks at three of them in an episode."""

BANDIT = {"rewards": "counts", "dynamics": "known"}
REGRESSION = {"rewards": "linear", "dynamics": "known"}
LAKE = {"rewards": "linear", "dynamics": "basis"}
ROOM = {"kind": "noisy_room", "episodes": 1000}

LEARNED = {
    "river swim": Cell({"kind": "river_swim", "episodes": 1000, "oracles": "counts"}, ALL),
    "deep sea": Cell({"kind": "deep_sea", "episodes": 1000, "oracles": "counts"}, ALL),
    "noisy room": Cell({**ROOM, "oracles": "counts"}, ALL),
    "noisy room, known rewards": Cell({**ROOM, "oracles": {"rewards": "known", "dynamics": "counts"}}, ALL),
    "long decoy 20": Cell({"kind": "long_decoy", "horizon": 20, "episodes": 600, "oracles": BANDIT}, ALL),
    "long decoy 100": Cell({"kind": "long_decoy", "horizon": 100, "episodes": 400, "oracles": BANDIT}, ALL),
    "corridor": Cell({"kind": "corridor", "episodes": 600, "oracles": "counts"}, ALL),
    "arms 10": Cell({"kind": "arms", "actions": 10, "episodes": 1000, "oracles": BANDIT}, ALL),
    "arms 50": Cell({"kind": "arms", "actions": 50, "episodes": 1500, "oracles": BANDIT}, ALL),
    "linear": Cell({"kind": "linear", "episodes": 800, "oracles": "linear"}, ALL[:2] + MANY[1:]),
    "softmax": Cell({"kind": "softmax", "episodes": 800, "oracles": "linear"}, ALL[:2] + MANY[1:]),
    "linear, misspecified": Cell(
        {"kind": "linear", "misspecification": 0.2, "episodes": 800, "oracles": "linear"}, MANY
    ),
    "softmax, misspecified": Cell(
        {"kind": "softmax", "misspecification": 0.2, "episodes": 800, "oracles": "linear"}, MANY
    ),
    "treatment": Cell({"kind": "treatment", "episodes": 1000, "oracles": "counts"}, ALL[:2] + MANY[1:]),
    "ACTG 175": Cell(
        {"kind": "actg175", "episodes": 500, "oracles": {"rewards": "known", "dynamics": "softmax"}},
        MANY,
        5,
        SLOW,
    ),
    "ICU-Sepsis, reduced": Cell(
        {"kind": "reduced_sepsis", "episodes": 500, "oracles": {"rewards": "known", "dynamics": "counts"}},
        MANY,
        5,
        SLOW,
    ),
    # An episode of 100 steps, or with 49 states, takes OMG 50 ms and more: i.i.d. contexts only.
    "frozen lake": Cell({"kind": "frozen_lake", "episodes": 300, "oracles": LAKE}, MANY[:1], 3, SLOWER),
    "frozen lake, one return": Cell(
        {"kind": "frozen_lake", "episodes": 300, "oracles": LAKE, "return_range": "world"}, MANY[:1], 3, SLOWER
    ),
    "cliff": Cell({"kind": "cliff_walking", "episodes": 300, "oracles": "counts"}, MANY[:1], 3, SLOWER),
    **{
        name: Cell({"kind": "classification", "dataset": name, "episodes": episodes, "oracles": REGRESSION}, MANY, most)
        for name, episodes, most in (
            ("iris", 500, 10),
            ("wine", 500, 10),
            ("breast_cancer", 500, 10),
            ("digits", 1500, 5),
        )
    },
}


def _finite() -> League:
    content = preset("league")
    adversaries = content["adversaries"]
    cells = {name: Cell({"kind": name, **table}, tuple(adversaries)) for name, table in content["worlds"].items()}
    return League(cells, adversaries, 1000, 6, 0.5, tuple(adversaries))


LEAGUES = {
    "finite": _finite(),
    "learned": League(
        LEARNED,
        {
            "iid": {},
            "sorted": {},
            "adaptive": {"kind": "worst_regret"},
            "adaptive of 3": {"kind": "worst_regret", "look": 3},
        },
        1500,
        3,
        0.25,
        ("iid",),
    ),
}
