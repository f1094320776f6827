"""A family of worlds, and a world that is given by its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omg_cmdp import ContextualMDP, Space, TabularMDP
from omg_cmdp.contexts import Context
from omg_cmdp.validation import FloatArray

Tables = Callable[[Context], FloatArray]


class TableWorld(ContextualMDP):
    """One MDP for each context: labels 0, 1, …, or the rows of `vectors`.

    `return_range` is what every agent is told. `classes` are the functions of a finite class, for
    rewards (C, N, S, A) and transitions (C, M, S, A, S).
    """

    def __init__(
        self,
        mdps: Sequence[TabularMDP],
        *,
        vectors: FloatArray | None = None,
        return_range: tuple[float, float] | None = None,
        classes: tuple[FloatArray, FloatArray] | None = None,
    ) -> None:
        self.space, self.return_range = mdps[0].space, return_range
        self.contexts = tuple(range(len(mdps))) if vectors is None else tuple(vectors)
        self._mdps = {self._key(context): mdp for context, mdp in zip(self.contexts, mdps, strict=True)}
        if classes is not None:
            self.reward_functions, self.transition_functions = (self._looked_up(tables) for tables in classes)

    def mdp(self, context: Context) -> TabularMDP:
        """Return the true MDP of `context`."""
        return self._mdps[self._key(context)]

    def _looked_up(self, tables: FloatArray) -> Tables:
        places = {key: place for place, key in enumerate(self._mdps)}
        return lambda context: tables[places[self._key(context)]]

    @staticmethod
    def _key(context: Any) -> Any:
        return context.tobytes() if isinstance(context, np.ndarray) else int(context)


class Family(NamedTuple):
    """A generator of worlds, with random structure in every seed, and what every agent is told of them."""

    make: Callable[[np.random.Generator], ContextualMDP]
    oracles: Any
    """As in a study file: what is known, what is counted, what is linear in features."""
    episodes: int
    source: str
    """Who defined it, or which structure it stands for."""


COUNTS = "counts"
KNOWN_REWARDS = {"rewards": "known", "dynamics": "counts"}
KNOWN_DYNAMICS = {"rewards": "counts", "dynamics": "known"}
REGRESSION = {"rewards": "linear", "dynamics": "known"}


def one_hot(states: NDArray[np.integer[Any]] | Sequence[Any], count: int) -> FloatArray:
    """Return unit vectors (…, S) of states."""
    return np.asarray(np.eye(count)[np.asarray(states)])


def relabelled(generator: np.random.Generator, rewards: FloatArray, transitions: FloatArray) -> tuple[Any, Any]:
    """Return the tables with the actions of every state in a random order."""
    order = generator.permuted(np.broadcast_to(np.arange(rewards.shape[1]), rewards.shape), axis=1)
    rows = np.arange(len(rewards))[:, None]
    return rewards[rows, order], transitions[rows, order]


def mdp(transitions: FloatArray, rewards: FloatArray, horizon: int, **options: Any) -> TabularMDP:
    """Return an MDP of these tables."""
    states, actions = rewards.shape
    return Space(states=states, actions=actions, horizon=horizon, **options).mdp(
        transitions=transitions, rewards=rewards
    )
