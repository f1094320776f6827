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
        gains = np.moveaxis(self._rewards, 0, -1)  # (steps, S, A, N)
        gains = np.where(space.admissible[:, :, None], gains, -np.inf)
        moves = self._transitions.reshape(len(transitions), -1, states * actions, states)
        for h in reversed(range(horizon)):
            following = self.values[:, h + 1].reshape(len(rewards), len(transitions), states).transpose(1, 2, 0)
            expected = (moves[:, h % moves.shape[1]] @ following).reshape(-1, states, actions, len(rewards))
            found = np.moveaxis(gains[h % len(gains)] + expected, -1, 0).reshape(-1, states, actions)
            self.actions[:, h] = found.argmax(axis=2)
            self.values[:, h] = np.clip(found.max(axis=2), bounds.lows[h], bounds.highs[h])
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
