"""A contextual combination lock with a safe exit: an agent that does not explore takes the exit for ever.

States       S = n + 2: 0..n-1 positions of the lock, n = 4, then n open and n+1 out. Episodes start at position 0.
Actions      A = K + 1: 0..K-1 keys, K = 3, and K the exit.
Horizon      H = n + 1: the keys, and one step to take what is inside.
Contexts     16 labels; each has a code of its own, the right key for every position.
Transitions  From a position the right key leads on with probability 1 - slip = .95, a wrong one with probability
             slip; otherwise both lead out. The exit leads out. Out and open are absorbing.
Rewards      The exit pays .25 at any position, every action in the open state 1, all else 0. They are deterministic,
             not Bernoulli, and known: a class of one.
Class        32 books of codes, one of them true; in every context and position each key is right in N/K of them, up to
             rounding.

The optimal policy opens every lock, and its value is (1 - slip)^n = .81. In the mean model of the class a key leads on
with probability p <= slip + (1 - 2·slip)·⌈N/K⌉/N = .36, and p² = .13 is below the exit's .25. For n >= 2 the best plan
in that model leaves at once: at the last position but one, trying a key is worth p·max(p, exit) < exit, and at those
before it p·exit. What is seen at the exit is the same under every book of codes, so an agent that stays with it learns
nothing, and its regret is .56 in every episode.
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
class CombinationLock(Noiseless):
    """Find the keys to n positions, or take the exit.

    Parameters
    ----------
    states : int
        S = n + 2, for a lock of n positions; the horizon is S - 1. At least 3.
    actions : int
        A = K + 1: K keys and the exit; at least 2.
    slip : float
        The probability in [0, 1) that the right key fails, and that a wrong one leads on.
    exit_reward : float
        What the exit pays, in [0, 1).
    context_count : int
        Number of contexts.
    transition_class_size : int
        Number M of transition functions in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class and its true member.

    >>> lock = CombinationLock()
    >>> round(lock.optimal_value(0), 3)  # 0.95⁴
    0.815
    """

    states: int = 6
    actions: int = 4
    slip: float = 0.05
    exit_reward: float = 0.25
    context_count: int = 16
    transition_class_size: int = 32

    def _draw(self) -> None:
        self.positions = positions = integer("states", self.states, 3) - 2
        self.keys = keys = integer("actions", self.actions, 2) - 1
        self.slip, self.exit_reward = fraction("slip", self.slip), fraction("exit_reward", self.exit_reward)
        count, books = self.context_count, self.transition_class_size
        self.space = Space(states=self.states, actions=self.actions, horizon=positions + 1)
        self.contexts = tuple(range(count))
        (for_transitions,) = streams(self.seed, 1)
        self.transition_index = int(for_transitions.integers(books))
        self._codes = shuffled(for_transitions, np.arange(books) % keys, (count, positions))

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (1, S, A), which are known."""
        self._label(context)
        rewards = np.zeros((1, self.space.states, self.space.actions))
        rewards[:, : self.positions, -1] = self.exit_reward
        rewards[:, self.positions] = 1.0
        return rewards

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (M, S, A, S) under every book of codes."""
        codes = self._codes[:, self._label(context)]
        right = codes[:, :, None] == np.arange(self.keys)
        advance = np.where(right, 1.0 - self.slip, self.slip)
        tables = np.zeros((len(advance), self.space.states, self.space.actions, self.space.states))
        for position in range(self.positions):
            tables[:, position, :-1, position + 1] = advance[:, position]
            tables[:, position, :-1, -1] = 1.0 - advance[:, position]
        tables[:, : self.positions, -1, -1] = 1.0
        for last in (-2, -1):
            tables[:, last, :, last] = 1.0
        return tables
