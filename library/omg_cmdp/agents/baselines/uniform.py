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
    """Play every admissible action with equal probability; the oracles learn, but their model is not used."""

    takes_keyed = True

    def decide(self, context: Context) -> Decision:
        """Return the uniform policy."""
        return Decision(policy=uniform_policy(self.space), model=self.model(context))


def uniform_policy(space: Space) -> FloatArray:
    """Return (H, S, A): in every state the admissible actions with equal probability."""
    rows = space.admissible / space.admissible.sum(axis=1, keepdims=True)
    return np.tile(rows, (space.horizon, 1, 1))
