"""What UC³RL and RM-UCDD share: oracles, a round of planning, and a memory of what each round would have been."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from omg_cmdp import oracles
from omg_cmdp.agents.base import ModelAgent, Ranges
from omg_cmdp.agents.building import class_oracles
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.environment import Environment
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.persistence import State
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, instance_of
from omg_lab.rivals.counterfactual.histories import EpochFits, History, ListedContexts
from omg_lab.rivals.counterfactual.rounds import Bonus, FittedTables, PastRound

KNOWN = (oracles.KnownRewards, oracles.KnownDynamics)
OF_CLASSES = (
    *(oracles.FiniteRewards, oracles.OfflineFiniteRewards, oracles.LogLossRewards),
    *(oracles.FiniteDynamics, oracles.OfflineFiniteDynamics, oracles.OfflineLeastSquaresDynamics),
)
"""Oracles that know a world's class of functions."""


class CounterfactualAgent(ModelAgent):
    """An agent that plans with a bonus for what its earlier rounds would not have done in this context."""

    settings: ClassVar[tuple[str, ...]] = ("scales", "episodes", "history")
    usual_oracles = "offline"

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle,
        dynamics_oracle: DynamicsOracle,
        *,
        contexts: Iterable[Context] | None = None,
        scale: float | tuple[float, float] = 0.03,
        episodes: int | None = None,
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, **ranges)
        bonus, pair = Bonus.of(scale, episodes, self.value_bounds), (reward_oracle, dynamics_oracle)
        self.scales, self.episodes = bonus.scales, bonus.episodes
        self._round = self._make_round(bonus)
        self.history: History = (
            EpochFits(self._round, pair) if contexts is None else ListedContexts(self._round, pair, contexts)
        )

    @abc.abstractmethod
    def _make_round(self, bonus: Bonus) -> PastRound:
        """Return the round, which says what is counted."""

    @classmethod
    def for_world(cls, world: Environment, *, scale: Any = 0.03, **options: Any) -> Self:
        """Return an agent without a bonus for what is known: the truth, or a class of one function."""
        instance_of("world", world, Environment)
        options = options if "reward_oracle" in options else class_oracles(world) | options
        parts = (
            (options["reward_oracle"], world.reward_functions),
            (options["dynamics_oracle"], world.transition_functions),
        )
        if not isinstance(scale, (list, tuple)):
            scale = [scale * (not _is_known(*part, world.contexts[0])) for part in parts]
        return super().for_world(world, scale=tuple(scale), **options)

    def decide(self, context: Context) -> Decision:
        """Return the policy of one round."""
        tables, history = self.history.tables(context), self.history
        policies, _ = self._round.play(tables, history.memory(context), history.fitted, history.length)
        return Decision(policy=policies[0], model=self._as_mdp(tables))

    def model(self, context: Context) -> TabularMDP:
        """Return the fits of this round as an MDP."""
        return self._as_mdp(self.history.tables(context))

    def visits(self, context: Context) -> FloatArray:
        """Return (H, S, A): 1 + how often (h, s, a) would have been visited, or chosen, had `context` always come."""
        return np.asarray(self.history.memory(context)[0])

    def bonus(self, context: Context) -> FloatArray:
        """Return the bonus b (H, S, A)."""
        return self._round.bonus(self.visits(context), self.history.fitted)

    def _as_mdp(self, fits: FittedTables) -> TabularMDP:
        rewards, transitions = (steps[0] if len(steps) == 1 else steps for (steps,) in fits)
        return self.space.mdp(transitions=transitions, rewards=rewards)

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Teach both oracles, and play the round for every context."""
        super()._learn(trajectory, rewards)
        self.history.advance()

    def _learned(self) -> dict[str, NDArray[Any]]:
        """Return what both oracles learned, and the memory or the kept fits."""
        return {**super()._learned(), **self.history.state()}

    def _load_learned(self, state: State, episodes: int) -> None:
        arrays = self.history.read(state, episodes)
        super()._load_learned(state, episodes)
        self.history.resume(arrays, episodes)


def _is_known(oracle: Any, functions: Any, context: Context) -> bool:
    """Return whether an oracle has nothing to learn, as this context shows."""
    return isinstance(oracle, KNOWN) or (
        isinstance(oracle, OF_CLASSES) and functions is not None and len(functions(context)) == 1
    )
