"""Compile before the first decision is asked for."""

from __future__ import annotations

import numpy as np

from omg_cmdp.adversaries.oblivious import IID
from omg_cmdp.agents.omg import OMG
from omg_cmdp.contexts import Context
from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.runs.simulate import simulate
from omg_cmdp.validation import FloatArray


def warm_up() -> None:
    """Compile what OMG and its planner need for small tables, with finite classes, or load it from the cache.

    The first plan on a machine compiles for about a minute, and the first one of a process loads for about a second. A
    program that must answer at once calls this when it starts. Other oracles compile with their first use.

    Examples
    --------
    >>> warm_up()
    """
    world = _Tiny()
    for gamma in ("adaptive", 10.0):
        simulate(world, IID(["any"]), OMG.for_world(world, gamma=gamma), episodes=2)


class _Tiny(ContextualMDP):
    """The smallest world in which every step of a run has something to do."""

    space = Space(states=2, actions=2, horizon=2)

    def reward_functions(self, context: Context) -> FloatArray:
        return np.array([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])

    def transition_functions(self, context: Context) -> FloatArray:
        return np.full((1, 2, 2, 2), 0.5)

    def mdp(self, context: Context) -> TabularMDP:
        rewards, transitions = self.reward_functions(context), self.transition_functions(context)
        return self.space.mdp(transitions=transitions[0], rewards=rewards[0])
