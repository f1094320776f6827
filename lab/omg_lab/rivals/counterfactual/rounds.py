"""One round of an algorithm that asks: what would have been played on this context in every round so far?"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple, final

import numpy as np

from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.bellman import ValueBounds
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, float_table, positive_integer

compiled = Lazy("omg_lab.rivals.compiled.counterfactual")


class FittedTables(NamedTuple):
    """The predictions of both oracles on C contexts; step h uses entry h mod K."""

    rewards: FloatArray
    """(C, K, S, A)."""
    transitions: FloatArray
    """(C, K, S, A, S)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bonus:
    """b = min(1, β_R/2W) + H·min(2, β_P/2W), β = β₀·√T; H is the range of values, `span`."""

    scales: tuple[float, float]
    """β₀ of the rewards and of the dynamics."""
    episodes: int | None
    span: float

    @classmethod
    def of(cls, scale: Any, episodes: Any, bounds: ValueBounds) -> Bonus:
        """Return the bonus of arguments that come from outside: one scale or two, T or None."""
        given = float_table("scale", scale)
        if given.shape not in ((), (2,)) or not (np.isfinite(given).all() and given.min() >= 0.0):
            raise ValueError(f"`scale` must be a number or two, finite and not negative, got {scale!r}")
        rewards, dynamics = np.broadcast_to(given, 2).tolist()
        known = None if episodes is None else positive_integer("episodes", episodes)
        return cls(scales=(rewards, dynamics), episodes=known, span=bounds.span)

    def __call__(self, visits: FloatArray, fitted: int) -> FloatArray:
        """Return b for W = `visits`; the models were fitted after `fitted` rounds, and T is one more if not known."""
        rewards, dynamics = (scale * math.sqrt(self.episodes or fitted + 1) for scale in self.scales)
        doubled = 2.0 * visits
        bonuses = np.minimum(1.0, rewards / doubled), np.minimum(2.0, dynamics / doubled)
        return np.asarray(bonuses[0] + self.span * bonuses[1])


@final
class PastRound:
    """One round for C contexts at once, and what it counts in each of them, at least 1: (C, H, S, A).

    Counted are visits, W, or the choices of policies, N, where `choices` is true; these matter by the factor
    `reachability`, and the first rounds, one for each action, are not counted.
    """

    def __init__(
        self, space: Space, bounds: ValueBounds, bonus: Bonus, *, choices: bool = False, reachability: float = 1.0
    ) -> None:
        self.space, self.sizes = space, (space.horizon, space.states, space.actions)
        self.warm_up = int(space.admissible.sum(axis=1).max()) if choices else 0
        self._bonus, self._choices, self._reachability = bonus, choices, reachability
        self._known = np.array(space.start), space.admissible.astype(np.uint8), *bounds

    def bonus(self, counts: FloatArray, fitted: int) -> FloatArray:
        """Return b for these counts; the models were fitted after `fitted` rounds."""
        return self._bonus(self._reachability * counts, fitted)

    def play(self, tables: FittedTables, counts: FloatArray, fitted: int, rounds: int) -> tuple[FloatArray, FloatArray]:
        """Return the policies (C, H, S, A) of `rounds` rounds, all alike, and the counts after them."""
        optimistic = tables.rewards + self.bonus(counts, fitted)
        policies, occupancies = np.empty((2, *optimistic.shape))
        compiled.plan_round(tables.transitions, optimistic, *self._known, policies, occupancies)
        return policies, counts + rounds * (policies if self._choices else occupancies)

    def counted(self, first: int, last: int) -> int:
        """Return how many of the rounds after `first` and up to `last` come after the warm-up."""
        return max(last, self.warm_up) - max(first, self.warm_up)
