"""A random contextual MDP that is linear in the context.

States, actions, horizon   S = 4, A = 3, H = 5; episodes start in state 0.
Contexts                   16 points c of the simplex in R^3, from a Dirichlet distribution of concentration ¼: mixtures
                           of three types, most of them near one.
Rewards                    f(c, s, a) = ½ + θ(s, a)·c, Bernoulli; θ(s, a) uniform in [-½, ½]^d.
Transitions                P(s'|c, s, a) = Σ_i c_i·P_i(s'|s, a); each row of P_i Dirichlet of concentration ½.
Class                      32 tables θ and 32 tables (P_1, ..., P_d), all drawn in this way; the truth is one of each.
Dial                       towards rewards ½ + ½·sin(ω(s, a)·c) and transitions ∝ exp(2·sin(ω(s, a, s')·c)), with
                           frequencies ω of standard deviation 4: no linear function of c fits them.

The linear CMDP of Modi et al. (2018). Nothing here punishes an agent that does not explore: any path tells the
functions of the class apart. For worlds that do punish it, see `lock` and `decoy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, distributions, frozen
from omg_lab.worlds.base import Waves, streams, vector

CONTEXT_CONCENTRATION = 0.25
ROW_CONCENTRATION = 0.5


@final
@dataclass(kw_only=True, eq=False)
class LinearWorld(Waves):
    """Rewards and transitions linear in a context on the simplex.

    Parameters
    ----------
    states, actions, horizon : int
        The sizes S, A and H.
    dimension : int
        Number d of types, the length of a context.
    context_count : int
        Number of contexts.
    reward_class_size : int
        Number N of reward functions in the class.
    transition_class_size : int
        Number M of transition functions in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class, its true member and what the dial moves towards.

    >>> world = LinearWorld(seed=1)
    >>> world.reward_functions(world.contexts[0]).shape, world.transition_functions(world.contexts[0]).shape
    ((32, 4, 3), (32, 4, 3, 4))
    """

    states: int = 4
    actions: int = 3
    horizon: int = 5
    dimension: int = 3
    context_count: int = 16
    reward_class_size: int = 32
    transition_class_size: int = 32

    def _draw(self) -> None:
        pairs = (self.states, self.actions)
        self.space = Space(states=self.states, actions=self.actions, horizon=self.horizon)
        for_contexts, for_rewards, for_transitions, outside = streams(self.seed, 4)
        drawn = for_contexts.dirichlet([CONTEXT_CONCENTRATION] * self.dimension, size=self.context_count)
        self.contexts = tuple(map(frozen, drawn))
        functions, tables = self.reward_class_size, self.transition_class_size
        self.reward_index = int(for_rewards.integers(functions))
        self.transition_index = int(for_transitions.integers(tables))
        self._theta = for_rewards.uniform(-0.5, 0.5, size=(functions, *pairs, self.dimension))
        self._transition_tables = for_transitions.dirichlet(
            [ROW_CONCENTRATION] * self.states, size=(self.dimension, tables, *pairs)
        )
        self._draw_waves(outside, self.dimension)

    def reward_functions(self, context: Context) -> FloatArray:
        """Return ½ + θ(s, a)·c for every θ of the class, (N, S, A)."""
        return np.clip(0.5 + self._theta @ self._on_simplex(context), 0.0, 1.0)

    def transition_functions(self, context: Context) -> FloatArray:
        """Return Σ_i c_i·P_i for every (P_1, ..., P_d) of the class, (M, S, A, S)."""
        return np.tensordot(self._on_simplex(context), self._transition_tables, axes=1)

    def _on_simplex(self, context: Context) -> FloatArray:
        weights = vector(context, self.dimension)
        distributions("context", weights)
        return weights
