"""The agents of the league: what each is, which constant it has, and in which worlds it can play.

An agent with a constant is tuned on the development families: the grid begins at five values around `first`, a factor
of `factor` apart, and is widened until the best value is inside. OMG's default, greedy, posterior sampling, VIDS and
uniform play have nothing to tune. *Cell agents* count for themselves; they play where the others count too, and are
told what the others know. Nobody plays where others know what it cannot use.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from omg_cmdp import ContextualMDP

from .families import Family


class Entry(NamedTuple):
    """A kind of agent as study files name it, and its constant."""

    kind: str
    options: Callable[[float], dict[str, Any]] = lambda constant: {}
    first: float | None = None
    """The middle of the first grid; None: nothing is tuned."""
    factor: float = math.sqrt(10.0)
    plays: Callable[[Family, ContextualMDP], bool] = lambda family, world: True
    published: float | None = None
    """The constant of its paper, where that means anything at this length."""
    first_season_only: bool = False
    """Whether it takes so long that it plays i.i.d. contexts without delay only."""

    def grid(self, widened: tuple[int, int] = (0, 0)) -> list[float]:
        """Return the constants, with the numbers of values that `widened` says below and above.

        >>> [round(constant, 3) for constant in Entry("", first=1.0).grid((0, 1))]
        [0.1, 0.316, 1.0, 3.162, 10.0, 31.623]
        """
        assert self.first is not None
        return [self.first * self.factor**step for step in range(-2 - widened[0], 3 + widened[1])]


def _root(name: str) -> Callable[[float], dict[str, Any]]:
    return lambda constant: {name: {"scale": constant, "exponent": 0.5}}


def _plain(name: str, **fixed: Any) -> Callable[[float], dict[str, Any]]:
    return lambda constant: {name: constant, **fixed}


def _whole(name: str, **fixed: Any) -> Callable[[float], dict[str, Any]]:
    return lambda constant: {name: max(1, round(constant)), **fixed}


def _counts(family: Family, world: ContextualMDP) -> bool:
    """Return whether nobody is told of a class or of features."""
    kinds = set(family.oracles.values()) if isinstance(family.oracles, dict) else {family.oracles}
    return kinds <= {"counts", "known"}


def _bandit(family: Family, world: ContextualMDP) -> bool:
    return world.space.horizon == 1


def _listed(family: Family, world: ContextualMDP) -> bool:
    """Return whether there are few enough contexts for an agent that plans for all of them in every episode."""
    return len(world.contexts) <= 20


def _counts_rewards(family: Family, world: ContextualMDP) -> bool:
    """Return whether rewards are not known either."""
    return _counts(family, world) and not (isinstance(family.oracles, dict) and family.oracles["rewards"] == "known")


def _few_states(family: Family, world: ContextualMDP) -> bool:
    """Return whether an agent can plan in 64 models and weigh all their policies in all of them, in every episode."""
    return world.space.states <= 64


def _finite(family: Family, world: ContextualMDP) -> bool:
    return family.oracles == "finite" and not world.product_class


def _small(family: Family, world: ContextualMDP) -> bool:
    return world.space.horizon * world.space.states * world.space.actions <= 500


OURS = "OMG"
ENTRIES: dict[str, Entry] = {
    OURS: Entry("omg"),
    "greedy": Entry("greedy"),
    "uniform": Entry("uniform"),
    "posterior sampling": Entry("posterior_sampling"),
    "VIDS": Entry("vids", lambda constant: {"draws": 64}, plays=_few_states, first_season_only=True),
    "ε-greedy": Entry("epsilon_greedy", lambda c: {"epsilon": {"scale": c, "exponent": -1.0 / 3.0}}, 0.1),
    "OMG, root": Entry("omg", _root("gamma"), 100.0),
    "PC-IGW": Entry("pc_igw", _root("gamma"), 100.0, plays=_small),
    "Boltzmann": Entry("boltzmann", _root("gamma"), 3.0),
    "entropy": Entry("occupancy_entropy", _root("gamma"), 3.0, plays=_small),
    "regularised IDS": Entry("regularised_ids", _root("worth"), 0.1),
    "UC3RL": Entry("uc3rl", _plain("scale"), 0.003, plays=_listed, published=1.0),
    "RM-UCDD": Entry("rm_ucdd", _plain("scale"), 0.003, plays=_listed, published=1.0),
    "ERM reduction": Entry("erm_reduction", _whole("samples"), 4.0, 2.0, _small),
    "feel-good sampling": Entry("feel_good", _plain("optimism"), 0.3, plays=_finite),
    "UCBVI": Entry("ucbvi", _plain("scale", cover="per_context"), 0.01, plays=_counts, published=1.0),
    "UCBVI-BF": Entry("ucbvi_bf", _plain("scale"), 1e-3, plays=_counts, published=1.0),
    "MVP": Entry("mvp", _plain("scale"), 1e-4, plays=_counts, published=1.0),
    "RLSVI": Entry("rlsvi", _plain("scale"), 1e-4, plays=_counts),
    "Rmax": Entry("cover_rmax", _whole("visits", cover="per_context"), 4.0, 2.0, _counts_rewards),
    "SquareCB": Entry("square_cb", _root("gamma"), 100.0, plays=_bandit),
    "FALCON": Entry("falcon", _root("gamma"), 100.0, plays=_bandit),
    "FastCB": Entry("fast_cb", _root("gamma"), 100.0, plays=_bandit),
    "AdaCB": Entry("ada_cb", _root("gamma"), 100.0, plays=_bandit),
    "RegCB": Entry("reg_cb", _plain("radius"), 0.1, plays=_bandit),
    "LinMED": Entry("lin_med", _plain("radius"), 0.3, plays=_bandit),
    "Epoch-Greedy": Entry("epoch_greedy", _plain("scale"), 1.0, plays=_bandit),
}
