"""A corridor with one reward at its end: a wrong action sends back to the start.

States       0..n-1 positions, n the end, n+1 out; n = 6. Episodes start at position 0.
Actions      A = 2; one of them is right, depending on the context and the position.
Horizon      H = 24: time enough for several tries.
Contexts     2 labels, each with its own right actions.
Transitions  The right action leads on with probability 1 - slip = .95, and else back to position 0; a wrong one leads
             on with probability slip. From the end the only way is out, and out is absorbing; there only action 0
             is admissible.
Rewards      1 for the step at the end, else 0; without noise, and known: a class of one.
Class        16 books of right actions, one of them true; in every context and position each action is right in 1/A of
             them, up to rounding.
Dial         towards actions that lead on with probabilities uniform in [slip, 1 - slip].

A value is the probability to go n steps on in a row, once within H - 1 steps: for the best policy that of a run of n
successes in H - 1 coins of probability 1 - slip. An episode earns 1 at most.
"""

from __future__ import annotations

from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, positive_integer
from omg_lab.worlds.base import World, fraction, label, shuffled, streams


@final
class Corridor(World):
    """Go n positions on without a mistake, and be paid once.

    >>> round(Corridor(length=2, horizon=3).optimal_value(0), 4)  # 0.95²
    0.9025
    """

    return_range = (0.0, 1.0)

    def __init__(
        self,
        *,
        length: int = 6,
        actions: int = 2,
        horizon: int = 24,
        slip: float = 0.05,
        context_count: int = 2,
        transition_class_size: int = 16,
        misspecification: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.length, self.slip = positive_integer("length", length), fraction("slip", slip)
        count = positive_integer("context_count", context_count)
        books = positive_integer("transition_class_size", transition_class_size)
        admissible = np.ones((length + 2, positive_integer("actions", actions)), dtype=np.bool_)
        admissible[length:, 1:] = False
        space = Space(states=length + 2, actions=actions, horizon=horizon, admissible=admissible)
        super().__init__(space=space, contexts=tuple(range(count)), misspecification=misspecification)

        for_transitions, outside = streams(seed, 2)
        self.transition_index = int(for_transitions.integers(books))
        self._right = shuffled(for_transitions, np.arange(books) % actions, (count, length))
        low, high = sorted((self.slip, 1.0 - self.slip))
        self._worn = outside.uniform(low, high, size=(1, count, length, actions))
        self.support = self._kernels(np.full((1, length, actions), 0.5))[0] > 0.0

    def draw_reward(self, mean: float, uniform: float) -> float:
        """Return the mean: rewards have no noise."""
        return float(mean)

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (1, S, A), which are known."""
        label(context, len(self.contexts))
        rewards = np.zeros((1, self.space.states, self.space.actions))
        rewards[:, self.length] = 1.0
        return rewards

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the kernels (M, S, A, S) under every book of right actions."""
        right = self._right[:, label(context, len(self.contexts)), :, None] == np.arange(self.space.actions)
        return self._kernels(np.where(right, 1.0 - self.slip, self.slip))

    def _outside_transitions(self, context: Context) -> FloatArray:
        return np.asarray(self._kernels(self._worn[:, context])[0])

    def _kernels(self, on: FloatArray) -> FloatArray:
        """Return (M, S, A, S) for actions that lead on with probabilities `on` (M, n, A)."""
        kernels = np.zeros((len(on), self.space.states, self.space.actions, self.space.states))
        for position in range(self.length):
            kernels[:, position, :, position + 1] = on[:, position]
            kernels[:, position, :, 0] = 1.0 - on[:, position]
        kernels[:, self.length :, :, -1] = 1.0
        return kernels
