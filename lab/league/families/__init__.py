"""The families of the league. A world of a family is drawn anew in every seed.

*Development*: the worlds of `omg_lab`, on which everything in OMG's default was chosen, and on which the constants of
all agents are. *Test*: families that played no part in any choice; `published.py` has those that others defined,
`structured.py` those that vary one thing at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from omg_cmdp import ContextualMDP
from omg_lab.studies.catalogue import build_world

from . import published, structured
from .world import COUNTS, KNOWN_DYNAMICS, KNOWN_REWARDS, REGRESSION, Family

__all__ = ["DEVELOPMENT", "TEST", "Family"]


def _lab(kind: str, oracles: Any, episodes: int, **options: Any) -> Family:
    """Return the family of a world of the lab, whose structure is drawn by its seed."""

    def make(generator: np.random.Generator) -> ContextualMDP:
        world: ContextualMDP = build_world(kind, options, seed=int(generator.integers(2**31)), episodes=episodes)
        world.support = None  # nobody is told which transitions are possible: not all agents could use it
        return world

    return Family(make, oracles, episodes, f"omg_lab.worlds: {kind}")


DEVELOPMENT: dict[str, Family] = {
    "river swim": _lab("river_swim", COUNTS, 500),
    "deep sea": _lab("deep_sea", COUNTS, 500),
    "noisy room": _lab("noisy_room", COUNTS, 500),
    "corridor": _lab("corridor", COUNTS, 400),
    "treatment, counts": _lab("treatment", COUNTS, 500),
    "arms": _lab("arms", KNOWN_DYNAMICS, 800, actions=20),
    "long decoy": _lab("long_decoy", KNOWN_DYNAMICS, 400, horizon=20),
    "noisy room, known rewards": _lab("noisy_room", KNOWN_REWARDS, 400),
    "linear": _lab("linear", "linear", 500),
    "softmax": _lab("softmax", "linear", 500),
    "iris": _lab("classification", REGRESSION, 500, dataset="iris"),
    "wine": _lab("classification", REGRESSION, 500, dataset="wine"),
    "decoy": _lab("decoy", "finite", 500),
    "lock": _lab("lock", "finite", 500),
    "bandit": _lab("bandit", "finite", 500),
    "treatment": _lab("treatment", "finite", 500),
}

TEST: dict[str, Family] = {
    "loop": Family(published.loop, COUNTS, 300, "Dearden, Friedman and Russell 1998"),
    "discounting chain": Family(published.discounting_chain, COUNTS, 300, "bsuite"),
    "machine replacement": Family(published.machine_replacement, KNOWN_REWARDS, 400, "Puterman 1994"),
    "inventory": Family(published.inventory, COUNTS, 500, "Puterman 1994"),
    "service rate": Family(published.service_rate, KNOWN_REWARDS, 400, "Puterman 1994"),
    "gambler": Family(published.gambler, KNOWN_REWARDS, 500, "Sutton and Barto 2018"),
    "blackjack": Family(published.blackjack, COUNTS, 1000, "Gymnasium's toy text"),
    "four rooms": Family(published.four_rooms, COUNTS, 400, "Sutton, Precup and Singh 1999"),
    "mini grid": Family(published.mini_grid, COUNTS, 200, "MiniGrid, Colosseum"),
    "step count": Family(published.step_count, COUNTS, 300, "Karine and Marlin 2024"),
    "logistic mixture": Family(published.logistic_mixture, "linear", 400, "Modi and Tewari 2020"),
    "diabetes": Family(published.diabetes, REGRESSION, 600, "Efron et al. 2004"),
    "garnet": Family(published.garnet_of_two, COUNTS, 400, "Archibald, McKinnon and Thomas 1995"),
    "small gaps": Family(structured.small_gaps, KNOWN_DYNAMICS, 1000, "gaps of a few hundredths"),
    "rare rewards": Family(structured.rare_rewards, KNOWN_DYNAMICS, 1000, "a prior that hopes for too much"),
    "deterministic": Family(structured.deterministic, COUNTS, 400, "nothing moves by chance"),
    "dense": Family(structured.dense, COUNTS, 500, "noise everywhere"),
    "long episodes": Family(structured.long_episodes, COUNTS, 300, "H = 50"),
    "hidden leaf": Family(structured.hidden_leaf, COUNTS, 400, "one reward, deep, beside a safe exit"),
    "many contexts": Family(structured.many_contexts, REGRESSION, 500, "200 vectors"),
    "misspecified": Family(structured.misspecified, REGRESSION, 500, "rewards that are not linear"),
    "known class": Family(structured.known_class, "finite", 400, "a class that holds the truth"),
    "wrong class": Family(structured.wrong_class, "finite", 400, "a class that does not"),
    "twelve labels": Family(structured.twelve_labels, COUNTS, 600, "contexts that share what nobody says"),
}
