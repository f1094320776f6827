"""What happened in one episode, to learn from: a context, states, actions and rewards."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context, Keyed, keyed, unchanging
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import (
    FloatArray,
    float_table,
    frozen,
    in_range,
    indices,
    instance_of,
    integer_vector,
    interval,
)

compiled = Lazy("omg_cmdp.mdp.compiled")

Steps = tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]
"""States, actions and rewards."""
ROUNDING = 1e-7
"""By how much a return may leave its range, as a share of H times the largest reward: what single precision loses."""


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Trajectory:
    """The context, L + 1 states, L actions and L rewards of an episode, as read-only copies; 1 <= L <= H.

    An episode with L < H was *truncated*: a person dropped out, and the rest is not known. One that
    *terminated* is continued to its H steps in an absorbing state, which earns nothing.

    Parameters
    ----------
    context : vector, record or label
        The context of the episode.
    states : array of int (L + 1,)
        The states, the last one after the last action. If nobody saw where that led, the last one is None, and
        `states` keeps the L others: the last reward is learned, the last transition is not.
    actions : array of int (L,)
        The actions.
    rewards : array (L,) or None
        The rewards. One that is not known yet is None, and kept as nan; None in the place of the list stands for L of
        them. `agent.update_rewards` takes those that arrive later.
    costs : array (L,) or (J, L), optional
        What the steps cost, of J kinds, in the units of the budgets; kept as (J, L).

    Examples
    --------
    >>> Trajectory(context="c", states=[0, 1, 1], actions=[0, 2], rewards=[0.0, 1.0]).next_states
    array([1, 1])
    >>> Trajectory(context="c", states=[0, 1, 1], actions=[0, 2], rewards=[0.0, None]).rewards
    array([ 0., nan])
    """

    states: NDArray[np.int64]
    actions: NDArray[np.int64]
    rewards: FloatArray
    costs: FloatArray | None
    known: Keyed
    """The context with its key, for the library's own objects."""
    raw: Steps
    """The arrays `states`, `actions` and `rewards` for compiled code; do not write to them."""

    _parts: ClassVar[tuple[str, ...]] = ("context", "states", "actions", "rewards", "costs")

    def __init__(
        self,
        *,
        context: Context,
        states: ArrayLike | Sequence[int | None],
        actions: ArrayLike,
        rewards: ArrayLike | Sequence[float | None] | None,
        costs: ArrayLike | None = None,
    ) -> None:
        visited, cut = _visited(states)
        taken = integer_vector("actions", actions)
        earned = np.full(taken.shape, np.nan) if rewards is None else _rewards(rewards)
        if earned.ndim != 1 or taken.shape != earned.shape or len(visited) + cut != len(taken) + 1 or not len(taken):
            got = f"{visited.shape}, {taken.shape} and {earned.shape}"
            raise ValueError(f"`states`, `actions` and `rewards` must have shapes (L+1,), (L,) and (L,), got {got}")
        self._hold(context, (visited, taken, earned), None if costs is None else _costs(costs, len(taken)))

    def _hold(self, context: Context, raw: Steps, costs: FloatArray | None = None) -> None:
        """Keep these very arrays: nothing is checked or copied. The fields are frozen, and this is their writer."""
        plain, key = context if type(context) is Keyed else (context, None)
        kept, (states, actions, rewards) = unchanging(plain), raw
        visited, taken, earned = frozen(states.view()), frozen(actions.view()), frozen(rewards.view())
        known = keyed(kept) if key is None else Keyed(kept, key)
        self.__dict__.update(known=known, states=visited, actions=taken, rewards=earned, raw=raw)
        self.__dict__["costs"] = None if costs is None else frozen(costs)

    @property
    def context(self) -> Context:
        """The context of the episode; what could be changed in place is a copy."""
        return unchanging(self.known.context)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that a copy is as read-only as this one.
        fields = {name: getattr(self, name) for name in self._parts}
        fields["states"] = self.states.tolist() + [None] * (not self.end_known)
        fields["rewards"] = [None if math.isnan(reward) else reward for reward in self.rewards.tolist()]
        return functools.partial(type(self), **fields), ()

    @property
    def next_states(self) -> NDArray[np.int64]:
        """The states after each action, as far as they are known."""
        return self.states[1:]

    @property
    def end_known(self) -> bool:
        """Whether the state after the last action is known."""
        return len(self.states) > len(self.actions)

    def check(
        self,
        space: Space,
        reward_range: tuple[float, float] = (0.0, 1.0),
        return_range: tuple[float, float] | None = None,
    ) -> None:
        """Raise unless this is an episode of `space`, its rewards in `reward_range` and their sum in `return_range`.

        What is not known may be anything in `reward_range`.
        """
        instance_of("space", space, Space)
        known = None if return_range is None else interval("return_range", return_range)
        self.must_fit(space, interval("reward_range", reward_range), known)

    def must_fit(
        self, space: Space, reward_range: tuple[float, float], return_range: tuple[float, float] | None = None
    ) -> None:
        """Do what `check` does, for a space and ranges that were checked when an agent or a log was made of them."""
        if len(self.actions) > space.horizon:
            raise ValueError(
                f"`actions` must have at most the horizon's length {space.horizon}, got {len(self.actions)}"
            )
        low, high = reward_range
        if compiled.is_episode(*self.raw, *space.raw, low, high):
            if return_range is not None:
                self._check_return(space.horizon, reward_range, return_range)
            return
        indices("states", self.states, space.states)
        indices("actions", self.actions, space.actions)
        for reward in self.rewards.tolist():
            if reward < low or reward > high:
                raise ValueError(f"`rewards` must lie in [{low:g}, {high:g}], got {reward}")
        first = int(self.states[0])
        if not space.start[first] > 0.0:
            # Its states could count as unreachable, which a plan leaves out, and plays uniformly.
            advice = f"pass start={first}, or the distribution (S,) of first states, to `Space`"
            raise ValueError(
                f"`states` must begin where the space starts, got state {first}, of probability 0: {advice}"
            )
        step = int(np.argmin(space.admissible[self.states[: len(self.actions)], self.actions]))
        pair = f"action {self.actions[step]} in state {self.states[step]}"
        raise ValueError(f"`actions` must be admissible, got {pair} at step {step}")

    def _check_return(self, horizon: int, reward_range: tuple[float, float], return_range: tuple[float, float]) -> None:
        """Raise unless what was earned, and what may still be earned, can add up to a return in its range."""
        (low, high), steps = reward_range, len(self.rewards)
        slack = ROUNDING * horizon * max(abs(low), abs(high))
        (least, most), earned = return_range, float(np.nansum(self.rewards))
        unknown = horizon - steps + np.count_nonzero(np.isnan(self.rewards))
        if not least - slack <= earned + unknown * high or not earned + unknown * low <= most + slack:
            got = f"[{least:g}, {most:g}] and an episode that earned {earned:g}"
            raise ValueError(f"`return_range` must hold what every episode earns, got {got}")


def _visited(states: Any) -> tuple[NDArray[Any], bool]:
    """Return the states that are known, and whether the last one is not."""
    cut = isinstance(states, (list, tuple)) and len(states) > 1 and states[-1] is None
    return integer_vector("states", states[:-1] if cut else states), cut


def _rewards(values: Any) -> FloatArray:
    """Return the rewards, nan for None."""
    unknown = (
        [place for place, value in enumerate(values) if value is None] if isinstance(values, (list, tuple)) else []
    )
    rewards = float_table("rewards", [0.0 if value is None else value for value in values] if unknown else values)
    if not all(map(math.isfinite, rewards.reshape(-1).tolist())):
        raise ValueError(f"`rewards` must be finite, or None if they are not known yet, got {rewards}")
    if unknown:
        rewards[unknown] = np.nan
    return rewards


def _costs(values: ArrayLike, steps: int) -> FloatArray:
    """Return the costs (J, L)."""
    costs = float_table("costs", values)
    if costs.ndim not in (1, 2) or costs.shape[-1] != steps:
        raise ValueError(f"`costs` must have shape ({steps},) or (J, {steps}), got {costs.shape}")
    in_range("costs", costs, -math.inf, math.inf)
    return costs.reshape(-1, steps)
