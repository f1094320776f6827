"""What UC³RL and RM-UCDD share: a plan with bonuses for every context that may come, and counts of what it would do.

All contexts are listed, and each has its counts: a round is planned for all of them, whichever came. (The papers ask
the models of all earlier rounds again when a context comes, which takes time that grows with the rounds.)
"""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Any, Self

import numpy as np

from omg_cmdp.agents.building import class_oracles
from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.environment import Environment
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, float_table, instance_of, positive_integer
from omg_lab.rivals.declared import Option, optional
from omg_lab.rivals.listed import Counterfactual

compiled = Lazy("omg_lab.rivals.compiled.plans")


def two_scales(name: str, value: Any) -> tuple[float, float]:
    """Return β₀ of the rewards and of the dynamics: two numbers, or one for both."""
    given = float_table(name, value)
    if given.shape not in ((), (2,)) or not (np.isfinite(given).all() and given.min() >= 0.0):
        raise ValueError(f"`{name}` must be a number or two, finite and not negative, got {value!r}")
    rewards, dynamics = np.broadcast_to(given, 2).tolist()
    return rewards, dynamics


class CounterfactualAgent(Counterfactual):
    """An agent that plans with a bonus for what its earlier rounds would not have done in this context.

    b = min(1, β_R/2W) + H·min(2, β_P/2W), β = β₀·√T; H is the range of values, W what is counted.
    """

    _: dataclasses.KW_ONLY
    scale: Option[float | tuple[float, float], tuple[float, float]] = Option(two_scales, 0.03)
    episodes: Option[int | None, int | None] = Option(optional(positive_integer), None)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._counts = np.ones((len(self.contexts), self.space.horizon, *self.space.admissible.shape))

    @classmethod
    def for_world(cls, world: Environment, *, scale: Any = 0.03, **options: Any) -> Self:
        """Return an agent without a bonus for what is known: the truth, or a class of one function."""
        instance_of("world", world, Environment)
        options = options if "reward_oracle" in options else class_oracles(world) | options
        if not isinstance(scale, (list, tuple)):
            classes = (options[name].functions(world.contexts[0]) for name in ("reward_oracle", "dynamics_oracle"))
            scale = [0.0 if tables is not None and len(tables) == 1 else scale for tables in classes]
        return super().for_world(world, scale=tuple(scale), **options)

    def decide(self, context: Context) -> Decision:
        """Return the policy of this round."""
        place = self.contexts.place(context)
        return Decision(policy=self._plan(slice(place, place + 1))[0][0], model=self.model(context))

    def visits(self, context: Context) -> FloatArray:
        """Return (H, S, A): 1 + how often (h, s, a) would have been visited, or chosen, had `context` always come."""
        return np.array(self._counts[self.contexts.place(context)])

    def bonus(self, context: Context) -> FloatArray:
        """Return the bonus b (H, S, A)."""
        return self._bonus(self.visits(context))

    def _bonus(self, counts: FloatArray) -> FloatArray:
        rewards, dynamics = (beta * math.sqrt(self.episodes or self.episodes_seen + 1) for beta in self.scale)
        bonuses = np.minimum(1.0, rewards / (2.0 * counts)), np.minimum(2.0, dynamics / (2.0 * counts))
        return np.asarray(bonuses[0] + self.value_bounds.span * bonuses[1])

    def _plan(self, here: slice) -> tuple[FloatArray, FloatArray]:
        """Return the policies of this round for these contexts, and their occupancies in the model, (C, H, S, A)."""
        pairs = self.space.admissible.shape
        rewards = self._predicted(self.reward_oracle, here, *pairs)
        dynamics = self._predicted(self.dynamics_oracle, here, *pairs, self.space.states)
        optimistic = rewards + self._bonus(self._counts[here])
        policies, occupancies = np.empty((2, *optimistic.shape))
        known = *self.space.raw, *self.value_bounds
        compiled.plan_round(dynamics, optimistic, *known, policies, occupancies)
        return policies, occupancies

    @abc.abstractmethod
    def _counted(self) -> FloatArray:
        """Return what this round adds to the counts of all contexts, (C, H, S, A)."""

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Teach both oracles, and count the round for every context, by the models that it was planned with."""
        self.contexts.place(trajectory.context)  # refuses one that is not listed
        counts = self._counts + self._counted()
        super()._learn(trajectory, rewards)
        self._counts = counts
