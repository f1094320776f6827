"""DeepSea (Osband et al., 2019): a treasure at the end of a long dive, and small change for turning back.

States       S = n = 10 columns, 0 at the shore, where episodes start. In the original a state is a row and a column;
             the row is the step h, which a policy knows anyway, and n states are enough.
Actions      2: one dives on, a column to the right, the other turns back, a column to the left, but not beyond the
             shore. Which is which depends on the context and the column.
Horizon      H = n: the last column can be reached by the last step, by n - 1 dives, and not before.
Contexts     2 labels, each with its own names of the actions.
Transitions  The move is made with probability 1 - slip, and the other one with probability slip = 0.
Rewards      .01/n for turning back, 1 for diving on at the last column, else 0; without noise. In the original diving
             costs .01/n and turning back nothing; here .01/n is added to every step, so .01 to every value and nothing
             to a regret.
Class        16 books of names, for the rewards and for the transitions; the same one is true in both. In every context
             and column half of them call an action the dive, up to rounding.

Without slip only one sequence of moves in 2ⁿ finds the treasure, and all others look better until it is found:
V* = 1 by n dives, and 0.01 for an agent that never dives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, integer
from omg_lab.worlds.base import Noiseless, fraction, shuffled, streams

CHANGE = 0.01


@final
@dataclass(kw_only=True, eq=False)
class DeepSea(Noiseless):
    """Dive n times for the treasure, or turn back for small change.

    Parameters
    ----------
    states : int
        S = n columns, and the horizon too: H = S; at least 2.
    slip : float
        The probability in [0, 1) that a move goes the other way.
    context_count : int
        Number of contexts.
    class_size : int
        Number of books of names, for rewards and transitions.
    misspecification : float
        The dial ε in [0, 1): the share of what lies outside the class; 0 by default, so that the truth is a member.
    seed : int
        Draws the structure: the class and its true member.

    >>> sea = DeepSea(states=7)
    >>> sea.optimal_value(0)
    1.0
    """

    states: int = 10
    slip: float = 0.0
    context_count: int = 2
    class_size: int = 16

    def _draw(self) -> None:
        size, count = integer("states", self.states, 2), self.context_count
        self.slip, self.change = fraction("slip", self.slip), CHANGE / size
        self.space, self.contexts = Space(states=size, actions=2, horizon=size), tuple(range(count))
        (for_names,) = streams(self.seed, 1)
        self.reward_index = self.transition_index = int(for_names.integers(self.class_size))
        dives = shuffled(for_names, np.arange(self.class_size) % 2, (count, size))
        self._dives = dives[..., None] == np.arange(2)
        self.support = self._transition_tables(np.full((1, size, 2), 0.5))[0] > 0.0
        # An agent that turns back and slips is paid, and still on the way.
        self.return_range = (0.0, 1.0 + (size - 1) * self.change)

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (N, S, A) under every book of names."""
        dives = self._dives[:, self._label(context)]
        rewards = np.where(dives, 0.0, self.change)
        rewards[:, -1] = np.where(dives[:, -1], 1.0, self.change)
        return rewards

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (M, S, A, S) under every book of names."""
        dives = self._dives[:, self._label(context)]
        return self._transition_tables(np.where(dives, 1.0 - self.slip, self.slip))

    def _transition_tables(self, on: FloatArray) -> FloatArray:
        """Return (M, S, A, S) for actions that lead on with probabilities `on` (M, S, A)."""
        columns = np.arange(self.space.states)
        tables = np.zeros((*on.shape, len(columns)))
        # Both moves of a column are apart, so that nothing is written twice.
        tables[:, columns, :, np.minimum(columns + 1, columns[-1])] = np.moveaxis(on, 1, 0)
        tables[:, columns, :, np.maximum(columns - 1, 0)] = np.moveaxis(1.0 - on, 1, 0)
        return tables
