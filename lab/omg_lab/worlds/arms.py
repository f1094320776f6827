"""Many arms, one good: the bandit of textbooks, once for every label.

States, actions, horizon   S = 1, A = 10, H = 1.
Contexts                   2 labels; each has a best arm.
Rewards                    The best arm pays .9, the others .5. Bernoulli.
Transitions                None to speak of: a class of one.
Class                      16 hypotheses on the best arms, one of them true; in every context each arm is best in N/A of
                           them, up to rounding.

With a fixed gap the regret of a good agent grows like the logarithm of T, at best by Σ Δ/kl(.5, .9) = 9·.4/.51 = 7.0
for each factor e, in every context (Lai and Robbins, 1985).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray
from omg_lab.worlds.base import OneState, shuffled, streams

BEST, OTHER = 0.9, 0.5


@final
@dataclass(kw_only=True, eq=False)
class Arms(OneState):
    """One arm of mean .9 among arms of mean .5; `best_arms` (C,) are the good ones.

    Parameters
    ----------
    actions : int
        Number of arms.
    context_count : int
        Number of contexts.
    reward_class_size : int
        Number N of reward functions in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class and its true member.

    >>> world = Arms()
    >>> float(world.mdp(1).rewards[0, world.best_arms[1]])
    0.9
    """

    actions: int = 10
    context_count: int = 2
    reward_class_size: int = 16

    def _draw(self) -> None:
        count, actions, size = self.context_count, self.actions, self.reward_class_size
        self.space, self.contexts = Space(states=1, actions=actions, horizon=1), tuple(range(count))
        (for_rewards,) = streams(self.seed, 1)
        self.reward_index = int(for_rewards.integers(size))
        self._best = shuffled(for_rewards, for_rewards.permutation(actions)[np.arange(size) % actions], (count,))
        # Labels have different arms as long as there are enough, so that the context matters.
        self._best[self.reward_index] = self.best_arms = for_rewards.permutation(actions)[np.arange(count) % actions]

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (N, 1, A) under every hypothesis."""
        best = self._best[:, self._label(context), None, None]
        return np.where(best == np.arange(self.space.actions), BEST, OTHER)
