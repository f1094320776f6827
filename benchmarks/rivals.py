"""The agents of the studies by name: "OMG", "PC-IGW 100", ..., the last word being the one constant there is to tune.

All play with finite classes around the truth at the guarded rate (the product class on the lower-bound instance), or
with offline fits of the same classes. UCBVI and the GLMs have models of their own: tables, and the contexts' features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.agents import Agent
from omg_cmdp.environments import World
from omg_cmdp.studies.catalogue import build_agent
from omg_cmdp.studies.kinds import Setting


class Rival(NamedTuple):
    """A kind of agent, its options with a constant, and the five constants that are tried; none if nothing is tuned."""

    kind: str
    options: Callable[[float], dict[str, Any]] = lambda constant: {}
    grid: tuple[float, ...] = ()
    plays: Callable[[World], bool] = lambda world: True
    """On which worlds."""


def _root(constant: float) -> dict[str, Any]:
    """Return the schedule γ_t = constant·√t."""
    return {"gamma": {"scale": constant, "exponent": 0.5}}


def _scale(constant: float) -> dict[str, Any]:
    return {"scale": constant}


def _is_bandit(world: World) -> bool:
    return world.space.horizon == 1


def _has_vectors(world: World) -> bool:
    return isinstance(world.contexts[0], np.ndarray)


ROOTS = (10.0, 30.0, 100.0, 300.0, 1000.0)
BONUSES = (0.003, 0.01, 0.03, 0.1, 0.3)
SMALL_BONUSES = (0.001, 0.003, 0.01, 0.03, 0.1)
SHARES = (0.03, 0.1, 0.3, 1.0, 3.0)

RIVALS: dict[str, Rival] = {
    "OMG": Rival("omg"),
    "OMG, root": Rival("omg", _root, ROOTS),
    "OMG by epochs": Rival("epoch_omg", _scale, ROOTS),
    "PC-IGW": Rival("pc_igw", _root, ROOTS),
    "PC-IGW by epochs": Rival("epoch_pc_igw", _scale, ROOTS),
    "UC3RL": Rival("uc3rl", _scale, SMALL_BONUSES),
    "RM-UCDD": Rival("rm_ucdd", _scale, SMALL_BONUSES),
    "GLM-ORL": Rival("glm_orl", _scale, SMALL_BONUSES),
    "GLM-RLSVI": Rival("glm_rlsvi", _scale, (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)),
    "UCBVI, blind": Rival("ucbvi", lambda c: {"cover": "blind", "scale": c}, BONUSES),
    "UCBVI per context": Rival("ucbvi", lambda c: {"cover": "per_context", "scale": c}, BONUSES),
    "UCBVI per ball": Rival(
        "ucbvi", lambda c: {"cover": "per_ball", "radius": c, "scale": 0.03}, (0.1, 0.2, 0.4, 0.8, 1.6), _has_vectors
    ),
    "UCBVI by clusters": Rival("ucbvi", lambda c: {"cover": "clusters", "scale": c}, BONUSES, _has_vectors),
    "posterior sampling": Rival("posterior_sampling"),
    "feel-good sampling": Rival("feel_good", lambda c: {"optimism": c}, SHARES, lambda world: not world.product_class),
    "greedy": Rival("greedy"),
    "greedy, offline": Rival("greedy", lambda c: {"oracles": "offline"}),
    "ε-greedy": Rival("epsilon_greedy", lambda c: {"epsilon": {"scale": c, "exponent": -1.0 / 3.0}}, SHARES),
    "Boltzmann": Rival("boltzmann", _root, (0.3, 1.0, 3.0, 10.0, 30.0)),
    "local IGW": Rival("local_igw", _root, (3.0, 10.0, 30.0, 100.0, 300.0)),
    "entropy": Rival("occupancy_entropy", _root, (0.3, 1.0, 3.0, 10.0, 30.0)),
    "SquareCB": Rival("square_cb", _root, ROOTS, _is_bandit),
    "FALCON": Rival("falcon", _root, ROOTS, _is_bandit),
    "FastCB": Rival("fast_cb", _root, ROOTS, _is_bandit),
    "uniform": Rival("uniform"),
}

RULES = {
    "fixed": Rival("omg", lambda c: {"gamma": c}),
    "theory": Rival("omg", lambda c: {"gamma": "theory"}),
    "anytime": Rival("omg", lambda c: {"gamma": "anytime"}),
}
"""OMG with other rules for γ than its own."""


def make(name: str, world: World, *, seed: int, episodes: int) -> Agent:
    """Return the agent of this name: one of `RIVALS` or `RULES`, and its constant."""
    words, _, last = name.rpartition(" ")
    tuned = last.replace(".", "").replace("e", "").replace("+", "").replace("-", "").isdigit()
    kind, constant = (words, float(last)) if tuned else (name, float("nan"))
    rival = RULES[kind] if kind in RULES else RIVALS[kind]
    return build_agent(rival.kind, rival.options(constant), Setting(world=world, seed=seed, episodes=episodes))
