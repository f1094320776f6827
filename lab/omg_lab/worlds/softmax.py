"""A random contextual MDP with softmax transitions.

States, actions, horizon   S = 5, A = 3, H = 5; episodes start in state 0.
Contexts                   16 directions c in R^4, ‖c‖ = 1.
Rewards                    f(c, s, a) = 1/(1 + exp(-w(s, a)·c)), Bernoulli; ‖w(s, a)‖ = 3.
Transitions                P(s'|c, s, a) ∝ exp(W(s, a, s')·c); ‖W(s, a)‖ = 3 (Frobenius).
Class                      32 tables w and 32 tables W in uniform directions; the truth is one of each.
Dial                       towards rewards ½ + ½·sin(ω(s, a)·c) and transitions ∝ exp(2·sin(ω(s, a, s')·c)), with
                           frequencies ω of standard deviation 4.

The norms are the defaults of `SoftmaxDynamics`, so that its theorem covers this world. The generalised linear model of
Modi and Tewari (2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, positive_number
from omg_lab.worlds.base import Waves, sigmoid, softmax, streams, unit_vectors, vector


@final
@dataclass(kw_only=True, eq=False)
class SoftmaxWorld(Waves):
    """Softmax transitions and logistic rewards in a context on the unit sphere.

    Parameters
    ----------
    states, actions, horizon : int
        The sizes S, A and H.
    dimension : int
        Length d of a context.
    context_count : int
        Number of contexts.
    weight_norm : float
        The norm of the weights; 3 by default, as in `SoftmaxDynamics`.
    reward_class_size : int
        Number N of reward functions in the class.
    transition_class_size : int
        Number M of transition functions in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class, its true member and what the dial moves towards.

    >>> world = SoftmaxWorld(seed=1)
    >>> bool(world.mdp(world.contexts[0]).transitions.min() > 0.01)
    True
    """

    states: int = 5
    actions: int = 3
    horizon: int = 5
    dimension: int = 4
    context_count: int = 16
    weight_norm: float = 3.0
    reward_class_size: int = 32
    transition_class_size: int = 32

    def _draw(self) -> None:
        pairs, dimension = (self.states, self.actions), self.dimension
        self.space = Space(states=self.states, actions=self.actions, horizon=self.horizon)
        norm = positive_number("weight_norm", self.weight_norm)
        for_contexts, for_rewards, for_transitions, outside = streams(self.seed, 4)
        self.contexts = unit_vectors(for_contexts, self.context_count, dimension)
        functions, tables = self.reward_class_size, self.transition_class_size
        self.reward_index = int(for_rewards.integers(functions))
        self.transition_index = int(for_transitions.integers(tables))
        weights = for_rewards.normal(size=(functions, *pairs, dimension))
        self._reward_weights = norm * weights / np.linalg.norm(weights, axis=-1, keepdims=True)
        weights = for_transitions.normal(size=(tables, *pairs, self.states, dimension))
        self._transition_weights = norm * weights / np.linalg.norm(weights, axis=(-2, -1), keepdims=True)
        self._draw_waves(outside, dimension)

    def reward_functions(self, context: Context) -> FloatArray:
        """Return 1/(1 + exp(-w(s, a)·c)) for every w of the class, (N, S, A)."""
        return sigmoid(self._reward_weights @ vector(context, self.dimension))

    def transition_functions(self, context: Context) -> FloatArray:
        """Return softmax(W(s, a)·c) for every W of the class, (M, S, A, S)."""
        return softmax(self._transition_weights @ vector(context, self.dimension))
