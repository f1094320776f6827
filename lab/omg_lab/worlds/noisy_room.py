"""A noisy room: ten states in which everything moves and nothing pays, beside the hub where the money is.

States       S = n + 1: 0 the hub, where episodes start; 1..n the room, n = 10.
Actions      3. At the hub 0 and 1 are desks, and 2 is the door to the room.
Horizon      H = 6.
Contexts     4 labels; each has a good desk, and both desks are good in half of them.
Transitions  A desk leads back to the hub. The door leads to a state of the room, drawn uniformly. In the room
             every action leads to a random state of the room, or, with probability exit = .1, back to the hub; the
             rows are uniform on the simplex, and the same in all contexts.
Rewards      The good desk pays .7, the other one .55, the door and the room nothing; Bernoulli.
Class        16 hypotheses on the good desks, half of them for each desk up to rounding, and 16 on the moves in the
             room; one of each is true.

The best policy works at the good desk and never sees the room: V* = .7·H. Of the 3·(n + 1) pairs of a context two
decide. The 3n rows of the room are what is hardest to learn, and worth nothing; an agent that is told the rewards need
not explore at all. Both desks pay more than the ½ at which a table of counts begins: greedy may stay at the wrong one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, integer
from omg_lab.worlds.base import World, fraction, shuffled, streams

GOOD, OTHER = 0.7, 0.55
DESKS, DOOR = slice(0, 2), 2


@final
@dataclass(kw_only=True, eq=False)
class NoisyRoom(World):
    """Two desks, and a door to a room of random moves that pays nothing; `good_desks` (C,) are the better ones.

    Parameters
    ----------
    states : int
        S = n + 1: the hub and a room of n states; at least 2.
    horizon : int
        The size H.
    exit : float
        The probability in [0, 1) of coming back to the hub from a state of the room.
    context_count : int
        Number of contexts.
    reward_class_size : int
        Number N of reward functions in the class.
    transition_class_size : int
        Number M of transition functions in the class.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class and its true member.

    >>> room = NoisyRoom()
    >>> round(room.optimal_value(0), 9), room.space.states
    (4.2, 11)
    """

    states: int = 11
    horizon: int = 6
    exit: float = 0.1
    context_count: int = 4
    reward_class_size: int = 16
    transition_class_size: int = 16

    def _draw(self) -> None:
        size, count = integer("states", self.states, 2) - 1, self.context_count
        functions, tables = self.reward_class_size, self.transition_class_size
        self.exit = fraction("exit", self.exit)
        self.space = Space(states=1 + size, actions=3, horizon=self.horizon)
        self.contexts = tuple(range(count))
        for_rewards, for_transitions = streams(self.seed, 2)
        self.reward_index = int(for_rewards.integers(functions))
        self.transition_index = int(for_transitions.integers(tables))
        good = shuffled(for_rewards, np.arange(functions) % 2, (count,))
        good[self.reward_index] = self.good_desks = for_rewards.permutation(np.arange(count) % 2)
        self._desks = np.where(good[..., None] == np.arange(2), GOOD, OTHER)
        self._moves = for_transitions.dirichlet(np.ones(size), size=(tables, size, 3))
        self.support = np.ones((1 + size, 3, 1 + size), dtype=np.bool_)
        self.support[0, DESKS, 1:], self.support[0, DOOR, 0] = False, False

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (N, S, A) under every hypothesis on the good desk."""
        desks = self._desks[:, self._label(context)]
        rewards = np.zeros((len(desks), self.space.states, 3))
        rewards[:, 0, DESKS] = desks
        return rewards

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (M, S, A, S) under every hypothesis on the moves."""
        self._label(context)
        tables = np.zeros((len(self._moves), self.space.states, 3, self.space.states))
        tables[:, 0, DESKS, 0] = 1.0
        tables[:, 0, DOOR, 1:] = 1.0 / (self.space.states - 1)
        tables[:, 1:, :, 0] = self.exit
        tables[:, 1:, :, 1:] = (1.0 - self.exit) * self._moves
        return tables
