"""A decoy: a safe arm that looks best until the others are tried.

States, actions, horizon   S = 3, A = 3, H = 4; episodes start in state 0. Action 0 is safe, the others are risky.
Contexts                   16 labels.
Rewards                    The safe arm pays .5. A risky arm pays .95 in about 30 % of the pairs of a context and a
                           state, and .1 in the others. Bernoulli.
Transitions                Random rows, uniform on the simplex, that depend on state and action but not on the
                           context; they are known, a class of one.
Class                      32 hypotheses on where the risky arms are good, one of them true; for every context, state
                           and arm, 30 % of them, rounded up, call it good.

In the mean model of the class a risky arm pays .1 + .85·10/32 = .37 in every state, and the safe arm .5. All states are
then worth the same, and the best plan is the safe arm everywhere. Its rewards are the same under every hypothesis, so
an agent that stays with it never learns about the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, integer
from omg_lab.worlds.base import World, fraction, shuffled, streams

SAFE, GOOD, BAD = 0.5, 0.95, 0.1


class SafeArm(World):
    """A world whose action 0 is safe; `_risky` (N, C, S, A - 1) are the means of the others."""

    _risky: FloatArray

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (N, S, A) under every hypothesis."""
        risky = self._risky[:, self._label(context)]
        return np.concatenate([np.full((*risky.shape[:2], 1), SAFE), risky], axis=-1)


@final
@dataclass(kw_only=True, eq=False)
class Decoy(SafeArm):
    """A safe arm of mean .5 and risky arms of mean .95 or .1, depending on context and state.

    Parameters
    ----------
    states, horizon : int
        The sizes S and H.
    actions : int
        The size A: one safe arm and A - 1 risky ones; at least 2.
    good_share : float
        The share in [0, 1) of hypotheses that call a risky arm good, rounded up.
    context_count : int
        Number of contexts.
    reward_class_size : int
        Number N of reward functions in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class and its true member.

    >>> world = Decoy()
    >>> world.reward_functions(0).mean(axis=0).round(2)[0]  # the prior mean
    array([0.5 , 0.37, 0.37])
    """

    states: int = 3
    actions: int = 3
    horizon: int = 4
    good_share: float = 0.3
    context_count: int = 16
    reward_class_size: int = 32

    def _draw(self) -> None:
        states, actions, size = self.states, integer("actions", self.actions, 2), self.reward_class_size
        self.space = Space(states=states, actions=actions, horizon=self.horizon)
        self.contexts = tuple(range(self.context_count))
        for_rewards, for_transitions = streams(self.seed, 2)
        self.reward_index = int(for_rewards.integers(size))
        good = np.arange(size) < math.ceil(size * fraction("good_share", self.good_share))
        cells = (self.context_count, states, actions - 1)
        self._risky = np.where(shuffled(for_rewards, good, cells), GOOD, BAD)
        self._known = for_transitions.dirichlet(np.ones(states), size=(1, states, actions))

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (1, S, A, S), which is known."""
        self._label(context)
        return self._known.copy()
