"""Uniform play: the low end of every comparison."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.base import Learner, ModelAgent, Ranges
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.misfit.judgement import Misfit
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.persistence import State
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray


@final
class Uniform(ModelAgent):
    """Play every admissible action with equal probability.

    It needs no oracles. If it has some, they learn, and ledgers show their losses, but their model is not used.

    Parameters
    ----------
    space : Space
        Sizes, horizon, start and admissible actions.
    reward_oracle : RewardOracle, optional
        Learns the mean rewards; the model's f̂.
    dynamics_oracle : DynamicsOracle, optional
        Learns the transitions; the model's P̂. Both oracles or none.
    **ranges
        `reward_range` and `return_range`, as for every agent (`Learner`).

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> Uniform(omg.Space(states=1, actions=2, horizon=1)).policy(None)
    array([[[0.5, 0.5]]])
    """

    takes_keyed = True

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle | None = None,
        dynamics_oracle: DynamicsOracle | None = None,
        **ranges: Unpack[Ranges],
    ) -> None:
        self._is_plain = reward_oracle is None and dynamics_oracle is None
        if reward_oracle is None and dynamics_oracle is None:
            Learner.__init__(self, space, **ranges)
        elif reward_oracle is None or dynamics_oracle is None:
            missing = "reward_oracle" if reward_oracle is None else "dynamics_oracle"
            raise ValueError(f"`{missing}` is missing: give both oracles, or none")
        else:
            super().__init__(space, reward_oracle, dynamics_oracle, **ranges)

    def model(self, context: Context) -> TabularMDP:
        """Return f̂ and P̂ of both oracles as an MDP; None without oracles."""
        return None if self._is_plain else super().model(context)  # type: ignore[return-value]  # others have a model

    def misfit(self, episodes: Iterable[Trajectory] | None = None) -> Misfit:
        """Return whether episodes contradict the class of an oracle; None without oracles."""
        return None if self._is_plain else super().misfit(episodes)  # type: ignore[return-value]  # as `model`

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        if not self._is_plain:
            super()._learn(trajectory, rewards)

    def _learn_rewards(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        if not self._is_plain:
            super()._learn_rewards(trajectory, rewards)

    def _learned(self) -> dict[str, NDArray[Any]]:
        return {} if self._is_plain else super()._learned()

    def _load_learned(self, state: State, episodes: int) -> None:
        if not self._is_plain:
            super()._load_learned(state, episodes)

    def decide(self, context: Context) -> Decision:
        """Return the uniform policy."""
        return Decision(policy=uniform_policy(self.space), model=self.model(context))


def uniform_policy(space: Space) -> FloatArray:
    """Return (H, S, A): in every state the admissible actions with equal probability."""
    rows = space.admissible / space.admissible.sum(axis=1, keepdims=True)
    return np.tile(rows, (space.horizon, 1, 1))
