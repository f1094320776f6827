"""The instance of a regret lower bound: a bandit in every context and state, with a gap too small to detect in time.

States, actions, horizon   S = 4, A = 3, H = 5, each at least 2; episodes start in state 0 and never return to it.
Contexts                   d = 12 labels; the bound is for contexts that come uniformly at random.
Transitions                Uniform on the states 1..S-1, whatever the state and the action; known, a class of one.
Rewards                    ½ + Δ·1[a = a*(c, s)], Bernoulli, with a* uniform and independent in every (c, s), and
                           Δ = min(¼, ½·√(A·d·(S-1)/(T·(H-1)))), T the number of episodes to come.
Class                      All functions of this form: a product, A hypotheses "the good action is g" for each context
                           and state, A^(dS) in all. `reward_functions(c)[g]` has the good action g in every state;
                           an oracle must keep weights for each (c, s) separately.

Beyond the first step these are d·(S-1) bandits, each played T·(H-1)/(d·(S-1)) times on average, and a gap Δ cannot be
detected in so few plays: the regret of any agent is, for some a*, at least a constant times √(d·S·A·T·H). The bandit
lower bound of Agarwal et al. (2012) copied into every state, in the manner of Levy and Mansour (2022), who have in
place of d the ratio log(|G|/|S|)/log|A| for the union G of the classes of all states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, integer
from omg_lab.worlds.base import World, streams


@final
@dataclass(kw_only=True, eq=False)
class LowerBound(World):
    """d·S bandits behind one random walk; `good_actions` (d, S) is a*, `gap` is Δ.

    Parameters
    ----------
    states, actions, horizon : int
        The sizes S, A and H, each at least 2.
    context_count : int
        Number of contexts.
    episodes : int
        The number T of episodes to come, which sets the gap; a study supplies its own.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class and its true member.

    >>> world = LowerBound(episodes=10_000)
    >>> round(world.gap, 4)
    0.026
    """

    product_class = True

    states: int = 4
    actions: int = 3
    horizon: int = 5
    context_count: int = 12
    episodes: int = 3000

    def _draw(self) -> None:
        states, actions = integer("states", self.states, 2), integer("actions", self.actions, 2)
        count = self.context_count
        self.space = Space(states=states, actions=actions, horizon=integer("horizon", self.horizon, 2))
        self.contexts = tuple(range(count))
        plays = self.episodes * (self.horizon - 1)
        self.gap = min(0.25, 0.5 * math.sqrt(actions * count * (states - 1) / plays))
        (for_rewards,) = streams(self.seed, 1)
        self.good_actions = for_rewards.integers(actions, size=(count, states))

    def reward_functions(self, context: Context) -> FloatArray:
        """Return (A, S, A): entry g says that the good action is g."""
        self._label(context)
        bonus = self.gap * np.eye(self.space.actions)[:, None, :]
        return np.repeat(0.5 + bonus, self.space.states, axis=1)

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (1, S, A, S), which is known."""
        self._label(context)
        states = self.space.states
        table = np.full((1, states, self.space.actions, states), 1.0 / (states - 1))
        table[..., 0] = 0.0
        return table

    def _reward_member(self, context: Context) -> FloatArray:
        """Return the rewards with the good action a*(context, s) in every state s."""
        good = self.good_actions[self._label(context)]
        return np.asarray(self.reward_functions(context)[good, np.arange(self.space.states)])
