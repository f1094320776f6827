"""All pairs of a reward function and transitions of two finite classes, each with its optimal values and policy."""

from __future__ import annotations

import numpy as np

from omg_cmdp.mdp.bellman import ValueBounds
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import FloatArray, frozen


class Hypotheses:
    """The pairs at one context: `rewards` (N, S, A) and `transitions` (M, S, A, S), or either with steps.

    Hypothesis k = i·M + j has rewards i and transitions j. Values are clipped to `bounds`; ties go to the lowest.
    """

    def __init__(self, space: Space, rewards: FloatArray, transitions: FloatArray, bounds: ValueBounds) -> None:
        states, actions, horizon = space.states, space.actions, space.horizon
        self.space = space
        self._rewards = rewards.reshape(len(rewards), -1, states, actions)
        self._transitions = transitions.reshape(len(transitions), -1, states, actions, states)
        self.count = len(rewards) * len(transitions)
        """How many there are, K."""
        self.values = np.zeros((self.count, horizon + 1, states))
        """V_h(s) of the optimal policy of each, (K, H + 1, S)."""
        self.actions = np.empty((self.count, horizon, states), dtype=np.int64)
        """What it plays, (K, H, S)."""
        every = [(state, action) for state in range(states) for action in range(actions)]
        for h in reversed(range(horizon)):
            gains = np.stack([self._expected(h, *pair) for pair in every], axis=1)
            gains = np.where(space.admissible, gains.reshape(self.count, states, actions), -np.inf)
            self.actions[:, h] = gains.argmax(axis=2)
            self.values[:, h] = np.clip(gains.max(axis=2), bounds.lows[h], bounds.highs[h])
        self.starts = np.asarray(self.values[:, 0] @ space.start)
        """The optimal value of each, (K,)."""
        self.spans = np.asarray(np.ptp(self.values[:, 1:], axis=2).max(axis=0))
        """The largest difference of the next values of one hypothesis between two states, (H,)."""
        for kept in (self.values, self.actions, self.starts, self.spans):  # a context's hypotheses are made once
            frozen(kept)

    @property
    def nbytes(self) -> int:
        """What is kept."""
        return self.values.nbytes + self.actions.nbytes + self._rewards.nbytes + self._transitions.nbytes

    def _expected(self, step: int, state: int, action: int) -> FloatArray:
        """Return r + Σ_s' P(s')·V_{h+1}(s') of each, with its own V, (K,)."""
        rewards, rows = self.pair(step, state, action)
        following = self.values[:, step + 1].reshape(len(rewards), len(rows), -1)
        return np.asarray((rewards[:, None] + (rows * following).sum(axis=2)).reshape(-1))

    def pair(self, step: int, state: int, action: int) -> tuple[FloatArray, FloatArray]:
        """Return what each reward function says of a pair, (N,), and what each table of transitions, (M, S)."""
        rewards = self._rewards[:, step % self._rewards.shape[1], state, action]
        return rewards, self._transitions[:, step % self._transitions.shape[1], state, action]

    def policy(self, index: int) -> FloatArray:
        """Return the policy of a hypothesis, (H, S, A), one-hot."""
        return np.asarray(np.eye(self.space.actions)[self.actions[index]])

    def mdp(self, index: int) -> TabularMDP:
        """Return a hypothesis as an MDP."""
        reward, table = divmod(index, len(self._transitions))
        rewards, transitions = self._rewards[reward], self._transitions[table]
        return self.space.mdp(
            transitions=transitions if len(transitions) > 1 else transitions[0],
            rewards=rewards if len(rewards) > 1 else rewards[0],
        )
