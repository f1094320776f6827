"""The tables of a Gymnasium environment: every outcome of every action, in one context.

`P[s][a]` lists (probability, next state, reward, terminated), and next states may repeat. Here a terminated transition
leads to one more state, S, where the episode stays until the horizon and earns nothing. (In some of Gymnasium's own
tables terminal states go on.)
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from omg_cmdp.contexts import OWN_BYTES
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.validation import FloatArray, IntArray


@final
class Outcomes:
    """The outcomes with a positive probability, sorted by their cell (s, a, s').

    `states` is the number of the environment's states, S; the tables have S + 1.
    """

    def __init__(self, table: Any, states: int, actions: int) -> None:
        lines = [(states, action, states, 1.0, 0.0) for action in range(actions)]
        try:
            for state in range(states):
                for action in range(actions):
                    for probability, after, reward, terminated in table[state][action]:
                        reached = states if terminated else int(after)
                        if not (terminated or 0 <= reached < states) or not math.isfinite(reward):
                            raise ValueError(
                                f"({probability}, {after}, {reward}, {terminated}) in P[{state}][{action}]"
                            )
                        lines.append((state, action, reached, float(probability), float(reward)))
        except (IndexError, KeyError, TypeError, ValueError) as error:
            rule = f"list (probability, next state, reward, terminated) for {states} states and {actions} actions"
            raise ValueError(f"`P` of the environment must {rule}, got {error!r}; or pass tables=False") from error
        self.shape = (states + 1, actions, states + 1)
        # Sorted by cell: transitions, means and draws are then searches and sums over one array.
        columns = np.array(sorted(line for line in lines if line[3] > 0.0))
        self.cells: IntArray = np.asarray(np.ravel_multi_index(tuple(columns[:, :3].astype(np.int64).T), self.shape))
        self.probabilities, self.rewards = np.ascontiguousarray(columns[:, 3]), np.ascontiguousarray(columns[:, 4])
        self._cumulative = np.concatenate([[0.0], self.probabilities.cumsum()])

    @property
    def nbytes(self) -> int:
        """About the memory that it takes."""
        return OWN_BYTES + 4 * self.cells.nbytes

    def same_as(self, other: Outcomes) -> bool:
        """Return whether both are the same tables."""
        mine, others = ((each.cells, each.probabilities, each.rewards) for each in (self, other))
        return all(map(np.array_equal, mine, others))

    def transitions(self) -> FloatArray:
        """Return the transitions (S + 1, A, S + 1)."""
        table = np.bincount(self.cells, weights=self.probabilities, minlength=math.prod(self.shape))
        return np.asarray(table.reshape(self.shape))

    def mean_rewards(self) -> FloatArray:
        """Return E[r | s, a], (S + 1, A), in the environment's units."""
        states, actions, _ = self.shape
        earned = self.probabilities * self.rewards
        means = np.bincount(self.cells // states, weights=earned, minlength=states * actions)
        return np.asarray(means.reshape(states, actions))

    def returns(self, horizon: int, start: FloatArray) -> tuple[float, float]:
        """Return the least and the most that an episode can earn, whatever is played and happens.

        Backward induction with the worst, or the best, of all outcomes that are possible in a state.
        """
        states, actions, _ = self.shape
        after, first = self.cells % states, (self.cells // (states * actions)).searchsorted(np.arange(states))
        lows, highs = np.zeros((2, states))
        for _ in range(horizon):
            lows = np.minimum.reduceat(self.rewards + lows[after], first)
            highs = np.maximum.reduceat(self.rewards + highs[after], first)
        return float(lows[start > 0.0].min()), float(highs[start > 0.0].max())

    def draw(self, episode: Trajectory, uniforms: FloatArray) -> FloatArray:
        """Return a reward for every step of `episode`, from its distribution given state, action and next state."""
        cells = self._cells(episode)
        first, last = self.cells.searchsorted(cells, side="left"), self.cells.searchsorted(cells, side="right")
        low, high = self._cumulative[first], self._cumulative[last]
        # Inversion within the outcomes of the cell, whose probabilities need not sum to one.
        found = self._cumulative.searchsorted(low + uniforms * (high - low), side="right") - 1
        return np.asarray(self.rewards[np.clip(found, first, last - 1)])

    def _cells(self, episode: Trajectory) -> IntArray:
        return np.asarray(np.ravel_multi_index((episode.states[:-1], episode.actions, episode.next_states), self.shape))

    def first_impossible_step(self, episode: Trajectory) -> int | None:
        """Return the first step of `episode` that these tables exclude; None if all of it can happen."""
        # Rounded: an environment may compute a reward in another order than its table.
        possible = set(zip(self.cells.tolist(), self.rewards.round(6).tolist(), strict=True))
        seen = zip(self._cells(episode).tolist(), episode.rewards.round(6).tolist(), strict=True)
        return next((step for step, outcome in enumerate(seen) if outcome not in possible), None)
