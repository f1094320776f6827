"""One episode as it was played."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.jit import lazy
from omg_cmdp.mdp.tabular import Space
from omg_cmdp.validation import FloatArray, float_table, frozen

kernels = lazy("omg_cmdp.mdp.kernels")


@dataclasses.dataclass(frozen=True, init=False, eq=False)
class Trajectory:
    """The context, H + 1 states, H actions and H rewards of an episode, as read-only arrays.

    >>> Trajectory(context="c", states=[0, 1, 1], actions=[0, 2], rewards=[0.0, 1.0]).next_states
    array([1, 1])
    """

    context: Context
    states: NDArray[np.int64]
    actions: NDArray[np.int64]
    rewards: FloatArray

    def __init__(self, *, context: Context, states: ArrayLike, actions: ArrayLike, rewards: ArrayLike) -> None:
        visited, taken = _integers("states", states), _integers("actions", actions)
        self._hold(context, visited, taken, float_table("rewards", rewards))

    @classmethod
    def of_arrays(
        cls, context: Context, states: NDArray[np.int64], actions: NDArray[np.int64], rewards: FloatArray
    ) -> Trajectory:
        """Return the episode in these vectors themselves: they are not copied, and become read-only."""
        made = object.__new__(cls)
        made._hold(context, states, actions, rewards)
        return made

    def _hold(self, context: Context, visited: NDArray[np.int64], taken: NDArray[np.int64], earned: FloatArray) -> None:
        if earned.ndim != 1 or taken.shape != earned.shape or len(visited) != len(taken) + 1 or not len(taken):
            got = f"{visited.shape}, {taken.shape} and {earned.shape}"
            raise ValueError(f"`states`, `actions` and `rewards` must have shapes (H+1,), (H,) and (H,), got {got}")
        if not all(map(math.isfinite, earned.tolist())):
            raise ValueError(f"`rewards` must be finite, got {earned}")
        kept = frozen(context.copy()) if isinstance(context, np.ndarray) else context
        self.__dict__.update(context=kept, states=frozen(visited), actions=frozen(taken), rewards=frozen(earned))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that a copy is as read-only as this one.
        return _rebuilt, (self.context, self.states, self.actions, self.rewards)

    @property
    def next_states(self) -> NDArray[np.int64]:
        """The states after each action."""
        return self.states[1:]

    def check(self, space: Space, reward_range: tuple[float, float] = (0.0, 1.0)) -> None:
        """Raise unless this is an episode of `space`, with rewards in `reward_range`."""
        if len(self.actions) != space.horizon:
            raise ValueError(f"`actions` must have the horizon's length {space.horizon}, got {len(self.actions)}")
        low, high = reward_range
        if kernels.is_episode(self.states, self.actions, self.rewards, space.raw[1], low, high):
            return
        for name, values, count in (("states", self.states, space.states), ("actions", self.actions, space.actions)):
            for value in values.tolist():
                if not 0 <= value < count:
                    raise ValueError(f"`{name}` must lie in 0..{count - 1}, got {value}")
        for reward in self.rewards.tolist():
            if not low <= reward <= high:
                raise ValueError(f"`rewards` must lie in [{low:g}, {high:g}], got {reward}")
        step = int(np.argmin(space.admissible[self.states[:-1], self.actions]))
        pair = f"action {self.actions[step]} in state {self.states[step]}"
        raise ValueError(f"`actions` must be admissible, got {pair} at step {step}")


def _rebuilt(context: Context, states: ArrayLike, actions: ArrayLike, rewards: ArrayLike) -> Trajectory:
    return Trajectory(context=context, states=states, actions=actions, rewards=rewards)


def _integers(name: str, values: ArrayLike) -> NDArray[Any]:
    try:
        array = np.array(values)
    except ValueError:
        raise ValueError(f"`{name}` must be a vector of integers, got {values!r:.60}") from None
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"`{name}` must be a vector of integers, got {array.dtype} of shape {array.shape}")
    return array if array.dtype == np.int64 else array.astype(np.int64)
