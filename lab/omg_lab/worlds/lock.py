"""A contextual combination lock with a safe exit: an agent that does not explore takes the exit for ever.

States       0..n-1 positions of the lock, n open, n+1 out; n = 4. Episodes start at position 0.
Actions      0..K-1 keys, K the exit; K = 3.
Horizon      H = n + 1: the keys, and one step to take what is inside.
Contexts     16 labels; each has a code of its own, the right key for every position.
Transitions  From a position the right key leads on with probability 1 - slip = .95, a wrong one with probability
             slip; otherwise both lead out. The exit leads out. Out and open are absorbing.
Rewards      The exit pays .25 at any position, every action in the open state 1, all else 0. They are deterministic,
             not Bernoulli, and known: a class of one.
Class        32 books of codes, one of them true; in every context and position each key is right in N/K of them, up to
             rounding.
Dial         towards keys that lead on with probabilities uniform in [slip, 1 - slip], drawn for each context, position
             and key: the keys are worn, and none is right.

The optimal policy opens every lock, and its value is (1 - slip)^n = .81. In the mean model of the class a key leads on
with probability p <= slip + (1 - 2·slip)·⌈N/K⌉/N = .36, and p² = .13 is below the exit's .25. For n >= 2 the best plan
in that model leaves at once: at the last position but one, trying a key is worth p·max(p, exit) < exit, and at those
before it p·exit. What is seen at the exit is the same under every book of codes, so an agent that stays with it learns
nothing, and its regret is .56 in every episode.
"""

from __future__ import annotations

from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import FloatArray, positive_integer
from omg_lab.worlds.base import World, fraction, label, shuffled, streams


@final
class CombinationLock(World):
    """Find the keys to n positions, or take the exit.

    >>> lock = CombinationLock()
    >>> round(lock.optimal_value(0), 3)  # 0.95⁴
    0.815
    """

    def __init__(
        self,
        *,
        positions: int = 4,
        keys: int = 3,
        slip: float = 0.05,
        exit_reward: float = 0.25,
        context_count: int = 16,
        transition_class_size: int = 32,
        misspecification: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.positions, self.keys = positive_integer("positions", positions), positive_integer("keys", keys)
        self.slip, self.exit_reward = fraction("slip", slip), fraction("exit_reward", exit_reward)
        count = positive_integer("context_count", context_count)
        books = positive_integer("transition_class_size", transition_class_size)
        space = Space(states=positions + 2, actions=keys + 1, horizon=positions + 1)
        super().__init__(space=space, contexts=tuple(range(count)), misspecification=misspecification)

        for_transitions, outside = streams(seed, 2)
        self.transition_index = int(for_transitions.integers(books))
        self._codes = shuffled(for_transitions, np.arange(books) % keys, (count, positions))
        self._worn = outside.uniform(min(slip, 1.0 - slip), max(slip, 1.0 - slip), size=(count, positions, keys))

    def draw_reward(self, mean: float, uniform: float) -> float:
        """Return the mean: rewards are deterministic."""
        return float(mean)

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (1, S, A), which are known."""
        label(context, len(self.contexts))
        rewards = np.zeros((1, self.space.states, self.space.actions))
        rewards[:, : self.positions, -1] = self.exit_reward
        rewards[:, self.positions] = 1.0
        return rewards

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the kernels (M, S, A, S) under every book of codes."""
        codes = self._codes[:, label(context, len(self.contexts))]
        right = codes[:, :, None] == np.arange(self.keys)
        return self._kernels(np.where(right, 1.0 - self.slip, self.slip))

    def _outside_transitions(self, context: Context) -> FloatArray:
        return np.asarray(self._kernels(self._worn[None, context])[0])

    def _kernels(self, advance: FloatArray) -> FloatArray:
        """Return (M, S, A, S) for keys that lead on with probabilities `advance` (M, n, K)."""
        kernels = np.zeros((len(advance), self.space.states, self.space.actions, self.space.states))
        for position in range(self.positions):
            kernels[:, position, :-1, position + 1] = advance[:, position]
            kernels[:, position, :-1, -1] = 1.0 - advance[:, position]
        kernels[:, : self.positions, -1, -1] = 1.0
        for last in (-2, -1):
            kernels[:, last, :, last] = 1.0
        return kernels
