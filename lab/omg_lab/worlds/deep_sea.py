"""DeepSea (Osband et al., 2019): a treasure at the end of a long dive, and small change for turning back.

States       n = 10 columns, 0 at the shore, where episodes start. In the original a state is a row and a column; the
             row is the step h, which a policy knows anyway, and n states are enough.
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
Dial         towards choppy water: a probability to the right, uniform in [slip, 1 - slip], for every context, column
             and action, and rewards uniform in [0, .01/n] but for the treasure. At slip 0 every book excludes that.

Without slip only one sequence of moves in 2ⁿ finds the treasure, and all others look better until it is found:
V* = 1 by n dives, and 0.01 for who never dives.
"""

from __future__ import annotations

from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, positive_integer
from omg_lab.worlds.base import World, fraction, label, shuffled, streams

CHANGE = 0.01


@final
class DeepSea(World):
    """Dive n times for the treasure, or turn back for small change.

    >>> sea = DeepSea(size=7)
    >>> sea.optimal_value(0)
    1.0
    """

    def __init__(
        self,
        *,
        size: int = 10,
        slip: float = 0.0,
        context_count: int = 2,
        class_size: int = 16,
        misspecification: float = 0.0,
        seed: int = 0,
    ) -> None:
        if positive_integer("size", size) < 2:
            raise ValueError(f"`size` must be an integer of at least 2, got {size}")
        count, books = positive_integer("context_count", context_count), positive_integer("class_size", class_size)
        self.slip, self.change = fraction("slip", slip), CHANGE / size
        space = Space(states=size, actions=2, horizon=size)
        super().__init__(space=space, contexts=tuple(range(count)), misspecification=misspecification)

        for_names, outside = streams(seed, 2)
        self.reward_index = self.transition_index = int(for_names.integers(books))
        dives = shuffled(for_names, np.arange(books) % 2, (count, size))
        self._dives = dives[..., None] == np.arange(2)
        low, high = sorted((self.slip, 1.0 - self.slip))
        self._choppy = outside.uniform(low, high, size=(1, count, size, 2))
        self._scattered = outside.uniform(0.0, self.change, size=(count, size, 2))
        columns = np.arange(size)
        near = np.abs(columns[:, None] - columns) == 1
        near[0, 0] = near[-1, -1] = True
        self.support = np.repeat(near[:, None], 2, axis=1)
        # Who turns back and slips is paid, and still on the way.
        self.return_range = (0.0, 1.0 + (size - 1) * self.change)

    def draw_reward(self, mean: float, uniform: float) -> float:
        """Return the mean: rewards have no noise."""
        return float(mean)

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (N, S, A) under every book of names."""
        dives = self._dives[:, label(context, len(self.contexts))]
        rewards = np.where(dives, 0.0, self.change)
        rewards[:, -1] = np.where(dives[:, -1], 1.0, self.change)
        return rewards

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the kernels (M, S, A, S) under every book of names."""
        dives = self._dives[:, label(context, len(self.contexts))]
        return self._kernels(np.where(dives, 1.0 - self.slip, self.slip))

    def _outside_rewards(self, context: Context) -> FloatArray:
        rewards = self._scattered[context].copy()
        rewards[-1] = self._reward_member(context)[-1]
        return rewards

    def _outside_transitions(self, context: Context) -> FloatArray:
        return np.asarray(self._kernels(self._choppy[:, context])[0])

    def _kernels(self, on: FloatArray) -> FloatArray:
        """Return (M, S, A, S) for actions that lead on with probabilities `on` (M, S, A)."""
        columns = np.arange(self.space.states)
        kernels = np.zeros((*on.shape, len(columns)))
        # Both moves of a column are apart, so that nothing is written twice.
        kernels[:, columns, :, np.minimum(columns + 1, columns[-1])] = np.moveaxis(on, 1, 0)
        kernels[:, columns, :, np.maximum(columns - 1, 0)] = np.moveaxis(1.0 - on, 1, 0)
        return kernels
