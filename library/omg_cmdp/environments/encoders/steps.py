"""The steps that encoders are fitted to, as they were seen in an environment."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.validation import (
    BoolArray,
    FloatArray,
    float_table,
    frozen,
    in_range,
    integer_vector,
    one_of_shapes,
    typed_array,
)

IntArray = NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Steps:
    """n steps in the order in which they were taken; the steps of an episode follow each other.

    Fitting needs some hundreds of them or more, of actions that differ: see `environments.random_steps`.

    Parameters
    ----------
    observations, next_observations : array_like, shape (n, d)
        What was observed before and after each step.
    actions : array_like of int, shape (n,)
        The actions taken.
    rewards : array_like, shape (n,)
        The rewards, in any finite range.
    terminated : array_like of bool, shape (n,)
        Whether the episode terminated with this step, so that no cell follows.
    episodes, contexts : array_like of int, shape (n,)
        The numbers of the episode, which must not decrease, and of the context.

    Examples
    --------
    >>> steps = Steps(observations=[[0.1], [0.4]], next_observations=[[0.4], [0.9]], rewards=[0.0, 1.0],
    ...     terminated=[False, True], actions=[1, 1], episodes=[0, 0], contexts=[0, 0])
    >>> len(steps), len(steps.where([True, False]))
    (2, 1)
    """

    observations: FloatArray
    actions: IntArray
    rewards: FloatArray
    next_observations: FloatArray
    terminated: BoolArray
    episodes: IntArray
    contexts: IntArray

    def __post_init__(self) -> None:
        observations = matrix("observations", self.observations)
        if not len(observations):
            raise ValueError("`observations` must have at least one row, got none")
        following = matrix("next_observations", self.next_observations)
        one_of_shapes("next_observations", following, observations.shape)
        columns: dict[str, NDArray[Any]] = {
            name: integer_vector(name, getattr(self, name)) for name in ("actions", "episodes", "contexts")
        }
        for name, column in columns.items():
            if column.min(initial=0) < 0:
                raise ValueError(f"`{name}` must be integers of at least 0, got {column.min()}")
        columns["terminated"] = typed_array("terminated", self.terminated, "b", "boolean")
        columns["rewards"] = float_table("rewards", self.rewards)
        for name, column in columns.items():
            one_of_shapes(name, column, (len(observations),))
        in_range("rewards", columns["rewards"], -np.inf, np.inf)
        for name, array in {"observations": observations, "next_observations": following, **columns}.items():
            object.__setattr__(self, name, frozen(array))
        if (np.diff(self.episodes) < 0).any():
            where = int(np.argmax(np.diff(self.episodes) < 0)) + 1
            raise ValueError(f"`episodes` must not decrease, got {self.episodes[where]} at index {where}")

    def __len__(self) -> int:
        return len(self.actions)

    def where(self, chosen: BoolArray) -> Steps:
        """Return the steps for which `chosen` (n,) is true."""
        chosen = typed_array("chosen", chosen, "b", "boolean")
        one_of_shapes("chosen", chosen, self.rewards.shape)
        return Steps(**{name: array[chosen] for name, array in vars(self).items()})


def matrix(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as finite numbers (n, d)."""
    table = float_table(name, value)
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(f"`{name}` must have shape (n, d), got {table.shape}")
    if table.size:
        in_range(name, table, -np.inf, np.inf)
    return table
