"""Rules that are one number: γ, the same in every episode or a function of t."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import final

from omg_cmdp.agents.exploration.base import ExplorationRule, Situation, setting
from omg_cmdp.persistence import fingerprint
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import instance_of, positive_number

Tuned = float | Callable[[int], float]
"""A positive number, or a function of the episode t = 1, 2, ..."""

COMPARED = (*range(1, 33), *(10**power for power in range(2, 7)))
"""The episodes by which a saved agent knows a function again."""


@final
class Schedule(ExplorationRule):
    """One number, the same in every episode or a function of t = 1, 2, ...: OMG's γ, or a rival's constant.

    Parameters
    ----------
    given : float or callable
        The number, or the function.
    name : str, default "gamma"
        The name of the argument, for error messages.

    Examples
    --------
    >>> Schedule(5.0)(1), Schedule(lambda t: 30.0 * t**0.5)(4)
    (5.0, 60.0)
    """

    def __init__(self, given: Tuned, name: str = "gamma") -> None:
        instance_of("name", name, str)
        self.name = name
        self.given = given if callable(given) else positive_number(name, given)

    def __call__(self, episode: int) -> float:
        """Return the value in episode t."""
        if callable(self.given):
            return positive_number(f"{self.name}(t)", self.given(episode))
        return self.given

    def __str__(self) -> str:
        if not callable(self.given) or dataclasses.is_dataclass(self.given):
            return setting(self.given)
        return f"a function with {fingerprint([self._told(episode) for episode in COMPARED])} in some episodes"

    def _told(self, episode: int) -> str:
        """Return the value in an episode as text; a function may be made for fewer episodes than are compared."""
        try:
            return f"{self(episode):.12g}"  # the last bits of a power may be others on another machine
        except Exception:
            return "nothing"

    def decide(self, situation: Situation) -> Decision:
        """Return the plan with the paper's barrier at γ, or γ_t."""
        return situation.plan(self(situation.episode))


@final
@dataclasses.dataclass(frozen=True)
class Power:
    """scale·t^exponent, as a function of the episode t; saved agents compare its two numbers.

    Parameters
    ----------
    scale : float
        The value in the first episode.
    exponent : float
        The power of t.

    Examples
    --------
    >>> Power(30.0, 0.5)(4)
    60.0
    """

    scale: float
    exponent: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_number("scale", self.scale))
        if not isinstance(self.exponent, (int, float)) or not math.isfinite(self.exponent):
            raise ValueError(f"`exponent` must be a finite number, got {self.exponent!r}")

    def __call__(self, episode: int) -> float:
        """Return the value in episode t."""
        return float(self.scale * episode**self.exponent)


ROOT = Power(30.0, 0.5)
"""30·√t: as in the theorems it grows with the root of the episodes; the constant is there to be tuned."""
