"""Uniform play: the low end of every comparison."""

from __future__ import annotations

from typing import final

import numpy as np

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray


@final
class Uniform(ModelAgent):
    """Play every admissible action with equal probability; the oracles learn, but their model is not used.

    Parameters
    ----------
    space : Space
        Sizes, horizon, start and admissible actions.
    reward_oracle : RewardOracle
        Learns the mean rewards; the model's f̂.
    dynamics_oracle : DynamicsOracle
        Learns the transitions; the model's P̂.
    reward_range : (float, float), default (0, 1)
        Between which numbers every reward lies, in the units in which rewards arrive.
    return_range : (float, float), optional
        Between which numbers the sum of an episode's rewards lies, in the same units; by default H times
        `reward_range`. A tighter range makes bonuses and plausible values tighter too.

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> sizes = {"states": 1, "actions": 2, "horizon": 1}
    >>> Uniform(omg.Space(**sizes), omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)).policy(None)
    array([[[0.5, 0.5]]])
    """

    takes_keyed = True

    def decide(self, context: Context) -> Decision:
        """Return the uniform policy."""
        return Decision(policy=uniform_policy(self.space), model=self.model(context))


def uniform_policy(space: Space) -> FloatArray:
    """Return (H, S, A): in every state the admissible actions with equal probability."""
    rows = space.admissible / space.admissible.sum(axis=1, keepdims=True)
    return np.tile(rows, (space.horizon, 1, 1))
