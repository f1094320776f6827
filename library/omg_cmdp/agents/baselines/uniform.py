"""Uniform play: the low end of every comparison."""

from __future__ import annotations

from typing import Any, final

from numpy.typing import NDArray

from omg_cmdp.agents.base import Learner
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.occupancy import uniform_policy
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.persistence import State
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray


@final
class Uniform(Learner):
    """Play every admissible action with equal probability, and learn nothing.

    For oracles that learn from uniform play there is `EpsilonGreedy(..., epsilon=1.0)`.

    Parameters
    ----------
    space : Space
        Sizes, horizon, start and admissible actions.
    reward_range : (float, float), default (0, 1)
        Between which numbers every reward lies, in the units in which rewards arrive.
    return_range : (float, float), optional
        Between which numbers the sum of an episode's rewards lies, in the same units; by default H times
        `reward_range`.

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> Uniform(omg.Space(states=1, actions=2, horizon=1)).policy(None)
    array([[[0.5, 0.5]]])
    """

    takes_keyed = True
    waits_for_rewards = True

    def decide(self, context: Context) -> Decision:
        """Return the uniform policy."""
        return Decision(policy=uniform_policy(self.space))

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        pass

    def _learn_rewards(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        pass

    def _learned(self) -> dict[str, NDArray[Any]]:
        return {}

    def _load_learned(self, state: State, episodes: int) -> None:
        pass
