"""A contextual bandit: one state, one step. Here agents for MDPs can be checked against what is known of bandits.

States, actions, horizon   S = 1, A = 4, H = 1.
Contexts                   16 directions c in R^4, ‖c‖ = 1.
Rewards                    f(c, a) = ½ + θ(a)·c, Bernoulli; ‖θ(a)‖ = ½.
Transitions                Trivial: there is only one state.
Class                      32 tables θ in uniform directions, one of them true.
Dial                       towards rewards ½ + ½·sin(ω(a)·c), with frequencies ω of standard deviation 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray
from omg_lab.worlds.base import OneState, Waves, streams, unit_vectors, vector


@final
@dataclass(kw_only=True, eq=False)
class ContextualBandit(OneState, Waves):
    """Rewards linear in a context on the unit sphere.

    Parameters
    ----------
    actions : int
        Number of arms.
    dimension : int
        Length d of a context.
    context_count : int
        Number of contexts.
    reward_class_size : int
        Number N of reward functions in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class, its true member and what the dial moves towards.

    >>> bandit = ContextualBandit(actions=5)
    >>> bandit.mdp(bandit.contexts[0]).rewards.shape
    (1, 5)
    """

    actions: int = 4
    dimension: int = 4
    context_count: int = 16
    reward_class_size: int = 32

    def _draw(self) -> None:
        self.space = Space(states=1, actions=self.actions, horizon=1)
        for_contexts, for_rewards, outside = streams(self.seed, 3)
        self.contexts = unit_vectors(for_contexts, self.context_count, self.dimension)
        self.reward_index = int(for_rewards.integers(self.reward_class_size))
        theta = for_rewards.normal(size=(self.reward_class_size, 1, self.actions, self.dimension))
        self._theta = 0.5 * theta / np.linalg.norm(theta, axis=-1, keepdims=True)
        self._draw_waves(outside, self.dimension)

    def reward_functions(self, context: Context) -> FloatArray:
        """Return ½ + θ(a)·c for every θ of the class, (N, 1, A)."""
        return np.asarray(np.clip(0.5 + self._theta @ vector(context, self.dimension), 0.0, 1.0))
