"""What the worlds of Gymnasium's grids share: tables that a number mixes, a class around them, neighbours."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.environments.gymnasium.tables import Outcomes
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import BoolArray, FloatArray
from omg_lab.worlds.base import World, streams


class GridTables(NamedTuple):
    """The tables of an environment; the last state is the one where ended episodes stay."""

    transitions: FloatArray
    """(S + 1, A, S + 1)."""
    rewards: FloatArray
    """E[r | s, a], (S + 1, A), in the environment's units."""
    start: FloatArray
    """(S + 1,)."""


def read_tables(name: str, **arguments: Any) -> GridTables:
    """Return the tables of the registered environment `name`, made with these arguments."""
    try:
        import gymnasium
    except ImportError as error:
        raise ImportError("this world needs Gymnasium: pip install gymnasium") from error
    env: Any = gymnasium.make(name, **arguments).unwrapped
    outcomes = Outcomes(env.P, int(env.observation_space.n), int(env.action_space.n))
    start = np.append(np.asarray(env.initial_state_distrib, dtype=np.float64), 0.0)
    env.close()
    return GridTables(outcomes.transitions(), outcomes.mean_rewards(), start)


def within_one_cell(*, rows: int, columns: int, actions: int = 4) -> BoolArray:
    """Return which moves can happen, (S + 1, A, S + 1): to a cell at most one away, or to the end.

    >>> within_one_cell(rows=1, columns=3)[:, 0].astype(int)
    array([[1, 1, 0, 1],
           [1, 1, 1, 1],
           [0, 1, 1, 1],
           [0, 0, 0, 1]])
    """
    cells = rows * columns
    places = np.stack(np.divmod(np.arange(cells), columns), axis=1)
    reachable = np.zeros((cells + 1, cells + 1), dtype=np.bool_)
    reachable[:-1, :-1] = np.abs(places[:, None] - places).sum(axis=-1) <= 1
    reachable[:, -1] = True
    return np.repeat(reachable[:, None], actions, axis=1)


@dataclass(kw_only=True, eq=False)
class Grid(World):
    """A grid whose tables are w·T₁ + (1 - w)·T₀, with a number w in [0, 1] as context.

    `_tables` returns T₁ and T₀. `shares` are the smallest and the largest w of the contexts. A hypothesis of the class,
    for rewards and transitions alike, is a permutation of the actions; the true one changes nothing. The dial moves
    towards a grid where every cell has a w of its own, uniform in `shares`, whatever the context.
    """

    horizon: int = 30
    context_count: int = 6
    class_size: int = 8

    package = "gymnasium"
    shares: ClassVar[tuple[float, float]]

    @abc.abstractmethod
    def _tables(self) -> tuple[GridTables, GridTables]:
        """Return T₁ and T₀."""

    def _draw(self) -> None:
        tables, size = self._tables(), self.class_size
        self._transition_tables = np.stack([table.transitions for table in tables])
        self._rewards = np.stack([table.rewards for table in tables])
        admissible = np.ones(self._rewards.shape[1:], dtype=np.bool_)
        admissible[-1, 1:] = False
        states, actions, start = len(admissible), admissible[0].size, tables[0].start
        self.space = Space(states=states, actions=actions, horizon=self.horizon, start=start, admissible=admissible)
        self.contexts = tuple(np.linspace(*self.shares, self.context_count).round(6).tolist())
        for_names, outside = streams(self.seed, 2)
        self.reward_index = self.transition_index = int(for_names.integers(size))
        self._names = for_names.permuted(np.tile(np.arange(actions), (size, 1)), axis=1)
        self._names[self.transition_index] = np.arange(actions)
        own = outside.uniform(*self.shares, size=(states, 1))
        self._own = np.stack([own, 1.0 - own])

    def features(self, context: Context) -> FloatArray:
        """Return [w, 1 - w]: the shares of two tables, and of two reward functions."""
        is_number = isinstance(context, (int, float, np.integer, np.floating)) and not isinstance(context, bool)
        share = float(context) if is_number else math.nan
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"`context` must be a number in [0, 1], got {context!r:.60}")
        return np.array([share, 1.0 - share])

    def reward_functions(self, context: Context) -> FloatArray:
        """Return the rewards (N, S, A) under every permutation of the actions."""
        rewards = np.tensordot(self.features(context), self._rewards, 1)
        return np.moveaxis(rewards[:, self._names], 1, 0)

    def transition_functions(self, context: Context) -> FloatArray:
        """Return the transitions (M, S, A, S) under every permutation of the actions."""
        table = np.tensordot(self.features(context), self._transition_tables, 1)
        return np.moveaxis(table[:, self._names], 1, 0)

    def _outside_rewards(self, context: Context) -> FloatArray:
        return np.asarray((self._own * self._rewards).sum(axis=0))

    def _outside_transitions(self, context: Context) -> FloatArray:
        return np.asarray((self._own[..., None] * self._transition_tables).sum(axis=0))
