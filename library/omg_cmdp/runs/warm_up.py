"""Compile before the first decision is asked for."""

from __future__ import annotations

import numpy as np

from omg_cmdp.adversaries.oblivious import IID
from omg_cmdp.agents.omg import OMG
from omg_cmdp.contexts import Context
from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.jit import count_compilations
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.counts.dynamics import CountDynamics
from omg_cmdp.oracles.counts.rewards import CountRewards
from omg_cmdp.planning.plan import SPARSE_FROM, plan
from omg_cmdp.runs.simulate import simulate
from omg_cmdp.validation import FloatArray


def warm_up() -> int:
    """Compile what OMG and its planner need, with finite classes or counts, or load it from the cache.

    The first plan on a machine compiles for about 20 seconds, and the first one of a process loads for about half a
    second. A program that must answer at once calls this when it starts; `python -m omg_cmdp warm-up` fills the cache
    of an image. Other oracles compile with their first use.

    Returns
    -------
    int
        The number of functions that had to be compiled; 0 if all were in the cache.

    Examples
    --------
    >>> warm_up() >= 0
    True
    """
    before, world = count_compilations(), _Tiny()
    rewards = CountRewards(states=2, actions=2, horizon=2)
    counted = OMG(world.space, rewards, CountDynamics(states=2, actions=2, horizon=2))
    for agent in (OMG.for_world(world), OMG.for_world(world, gamma=10.0), counted):
        simulate(world, IID(["any"]), agent, episodes=2)
    plan(_lock(digits=12), 10.0)  # the safety net, and then sparse rows
    plan(TabularMDP(transitions=np.eye(SPARSE_FROM)[:, None], rewards=np.zeros((SPARSE_FROM, 1)), horizon=1), 10.0)
    return count_compilations() - before


def _lock(digits: int) -> TabularMDP:
    """Return a combination lock, whose end the uniform policy hardly ever reaches."""
    moves = np.zeros((2, 2, 2))
    moves[0, 0, 0] = moves[0, 1, 1] = moves[1, :, 1] = 1.0
    return TabularMDP(transitions=moves, rewards=[[1.0, 0.0], [0.0, 0.0]], horizon=digits)


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
