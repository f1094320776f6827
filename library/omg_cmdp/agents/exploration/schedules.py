"""Rules that are one number: γ, the same in every episode or a function of t."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import final

from omg_cmdp.agents.exploration.base import ExplorationRule, Situation
from omg_cmdp.fingerprints import by_values, setting
from omg_cmdp.planning.decision import Decision
from omg_cmdp.recipes.recipe import Made
from omg_cmdp.validation import instance_of, positive_number

Tuned = float | Callable[[int], float]
"""A positive number, or a function of the episode t = 1, 2, ..."""


@final
class Schedule(ExplorationRule):
    """One number, the same in every episode or a function of t = 1, 2, ...: OMG's γ, or a rival's constant.

    A saved agent knows a function by its values in the first hundred episodes and at powers of two.

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
        return setting(self.given) if not callable(self.given) or isinstance(self.given, Power) else self._values

    def __repr__(self) -> str:
        return f"Schedule({self})"

    @functools.cached_property
    def _values(self) -> str:
        return f"a function {by_values(self.given)}"  # type: ignore[arg-type]

    def decide(self, situation: Situation) -> Decision:
        """Return the plan with the paper's barrier at γ, or γ_t."""
        return situation.plan(self(situation.episode))


@final
@dataclasses.dataclass(frozen=True)
class Power(Made):
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
