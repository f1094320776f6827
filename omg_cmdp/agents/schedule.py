"""One number to tune, the same in every episode or a function of it, and the agents that have no other."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import ClassVar, final

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.validation import positive_number

Tuning = float | Callable[[int], float]
"""A positive number, or a function of the episode t = 1, 2, ..."""


@final
@dataclasses.dataclass(frozen=True)
class Power:
    """scale·t^exponent, as a function of the episode that saved agents know by its numbers.

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


@final
class Schedule:
    """The value of the argument `name` in every episode, from what was given for it."""

    def __init__(self, name: str, given: Tuning) -> None:
        self.name = name
        self.given = given if callable(given) else positive_number(name, given)

    def __call__(self, episode: int) -> float:
        """Return the value in episode t = 1, 2, ..."""
        if callable(self.given):
            return positive_number(f"{self.name}(t)", self.given(episode))
        return self.given

    def __str__(self) -> str:
        """The same for schedules that are known to be equal; of a plain function one knows only that it is one."""
        known = dataclasses.is_dataclass(self.given) or not callable(self.given)
        return str(self.given) if known else "a function"


ROOT = Power(30.0, 0.5)
"""30·√t: as in the theorems it grows with the root of the episodes; the constant is there to be tuned."""


class GammaAgent(ModelAgent):
    """An agent that explores the less, the larger one number `gamma` is: OMG's γ, or what stands in its place."""

    settings: ClassVar[tuple[str, ...]] = ("gamma",)
    usual: ClassVar[Power] = ROOT
    """What `gamma` is unless it is given."""

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle,
        dynamics_oracle: DynamicsOracle,
        gamma: Tuning | None = None,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, reward_range=reward_range)
        self.gamma = Schedule("gamma", self.usual if gamma is None else gamma)
