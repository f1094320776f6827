"""A corridor with one reward at its end: a wrong action sends back to the start.

States       S = n + 2: 0..n-1 positions, n = 6, then n the end and n+1 out. Episodes start at position 0.
Actions      A = 2; one of them is right, depending on the context and the position.
Horizon      H = 24: time enough for several tries.
Contexts     2 labels, each with its own right actions.
Transitions  The right action leads on with probability 1 - slip = .95, and else back to position 0; a wrong one leads
             on with probability slip. From the end the only way is out, and out is absorbing; there only action 0
             is admissible.
Rewards      1 for the step at the end, else 0; without noise, and known: a class of one.
Class        16 books of right actions, one of them true; in every context and position each action is right in 1/A of
             them, up to rounding.

A value is the probability to go n steps on in a row, once within H - 1 steps: for the best policy that of a run of n
successes in H - 1 coins of probability 1 - slip. An episode earns 1 at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, integer
from omg_lab.worlds.base import Noiseless, fraction, shuffled, streams


@final
@dataclass(kw_only=True, eq=False)
class Corridor(Noiseless):
    """Go n positions on without a mistake, and be paid once.

    Parameters
    ----------
    states : int
        S = n + 2, for a corridor of n positions; at least 3.
    actions, horizon : int
        The sizes A and H.
    slip : float
        The probability in [0, 1) that the right action fails, and that a wrong one leads on.
    context_count : int
        Number of contexts.
    transition_class_size : int
        Number M of transition functions in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class and its true member.

    >>> round(Corridor(states=4, horizon=3).optimal_value(0), 4)  # 0.95²
    0.9025
    """

    return_range = (0.0, 1.0)

    states: int = 8
    actions: int = 2
    horizon: int = 24
    slip: float = 0.05
    context_count: int = 2
    transition_class_size: int = 16

    def _draw(self) -> None:
        count, actions, books = self.context_count, self.actions, self.transition_class_size
        self.length = length = integer("states", self.states, 3) - 2
        self.slip = fraction("slip", self.slip)
        admissible = np.ones((self.states, actions), dtype=np.bool_)
        admissible[length:, 1:] = False
        self.space = Space(states=self.states, actions=actions, horizon=self.horizon, admissible=admissible)
        self.contexts = tuple(range(count))
        (for_transitions,) = streams(self.seed, 1)
        self.transition_index = int(for_transitions.integers(books))
        self._right = shuffled(for_transitions, np.arange(books) % actions, (count, length))
        self.support = self._transition_tables(np.full((1, length, actions), 0.5))[0] > 0.0

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (1, S, A), which are known."""
        self._label(context)
        rewards = np.zeros((1, self.space.states, self.space.actions))
        rewards[:, self.length] = 1.0
        return rewards

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (M, S, A, S) under every book of right actions."""
        right = self._right[:, self._label(context), :, None] == np.arange(self.space.actions)
        return self._transition_tables(np.where(right, 1.0 - self.slip, self.slip))

    def _transition_tables(self, on: FloatArray) -> FloatArray:
        """Return (M, S, A, S) for actions that lead on with probabilities `on` (M, n, A)."""
        tables = np.zeros((len(on), self.space.states, self.space.actions, self.space.states))
        for position in range(self.length):
            tables[:, position, :, position + 1] = on[:, position]
            tables[:, position, :, 0] = 1.0 - on[:, position]
        tables[:, self.length :, :, -1] = 1.0
        return tables
