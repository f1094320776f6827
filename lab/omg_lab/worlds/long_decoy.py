"""A long decoy: one pair is met H times in an episode, and so is the error about it.

States       S = 1.
Actions      0 is safe, 1 is risky.
Horizon      H = 20; 5 and 100 are the others that we measure.
Contexts     2 labels; the risky action is good in half of them, up to rounding.
Transitions  None to speak of: a class of one.
Rewards      Safe .5; risky .6 where it is good, and .1 where it is not. Bernoulli.
Class        16 hypotheses on where risky is good, one of them true; in every context half of them, up to rounding.

An agent that stays safe loses .1·H in every episode of a good context, and one that takes the risk in a bad one .4·H in
one episode: a wrong estimate of one mean costs H times what it costs in a bandit, and one step is enough to learn from.
A table of counts starts at a mean of ½ and is never below what the safe action pays: after a bad first look, greedy is
safe for ever. In the class the mean of the risky action is .35.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.mdp.space import Space
from omg_lab.worlds.base import OneState, shuffled, streams
from omg_lab.worlds.decoy import SafeArm

GOOD, BAD = 0.6, 0.1


@final
@dataclass(kw_only=True, eq=False)
class LongDecoy(SafeArm, OneState):
    """A safe action and a risky one for H steps; `good` (C,) says where risky is better.

    Parameters
    ----------
    horizon : int
        The size H.
    context_count : int
        Number of contexts.
    reward_class_size : int
        Number N of reward functions in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class and its true member.

    >>> world = LongDecoy(horizon=100)
    >>> sorted(round(world.optimal_value(context), 9) for context in world.contexts)
    [50.0, 60.0]
    """

    horizon: int = 20
    context_count: int = 2
    reward_class_size: int = 16

    def _draw(self) -> None:
        count, size = self.context_count, self.reward_class_size
        self.space, self.contexts = Space(states=1, actions=2, horizon=self.horizon), tuple(range(count))
        (for_rewards,) = streams(self.seed, 1)
        self.reward_index = int(for_rewards.integers(size))
        hypotheses = shuffled(for_rewards, np.arange(size) % 2 == 0, (count,))
        hypotheses[self.reward_index] = self.good = for_rewards.permutation(np.arange(count) % 2 == 0)
        self._risky = np.where(hypotheses, GOOD, BAD)[:, :, None, None]
