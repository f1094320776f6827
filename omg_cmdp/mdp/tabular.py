"""The tables of a finite-horizon MDP (`TabularMDP`) and the part of them an agent knows beforehand (`Space`)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp import validation
from omg_cmdp.jit import lazy
from omg_cmdp.validation import BoolArray, FloatArray

kernels = lazy("omg_cmdp.mdp.kernels")


@dataclasses.dataclass(frozen=True, init=False, eq=False)
class Space:
    """What is known before the first episode: sizes, horizon, where episodes start, which actions are allowed.

    `start` is a state or a distribution (S,), kept as a distribution; `admissible` is None or a boolean mask
    (S, A) with an action in every state, kept as a mask.

    >>> Space(states=3, actions=2, horizon=4).start
    array([1., 0., 0.])
    """

    states: int
    actions: int
    horizon: int
    start: FloatArray
    admissible: BoolArray

    def __init__(
        self, *, states: int, actions: int, horizon: int, start: ArrayLike = 0, admissible: ArrayLike | None = None
    ) -> None:
        states = validation.positive_integer("states", states)
        actions = validation.positive_integer("actions", actions)
        horizon = validation.positive_integer("horizon", horizon)
        distribution = validation.start_distribution(start, states)
        mask = validation.admissible_mask(admissible, states, actions)
        pairs, steps = (states, actions), (horizon, states, actions)
        self.__dict__.update(
            states=states,
            actions=actions,
            horizon=horizon,
            start=validation.frozen(distribution.view()),
            admissible=validation.frozen(mask.view()),
            _raw=(distribution, mask.view(np.uint8)),
            _shapes=(((*pairs, states), (*steps, states)), (pairs, steps)),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that a copy in another process is as read-only as this one.
        return _rebuilt, (Space, dataclasses.asdict(self))

    @property
    def raw(self) -> tuple[FloatArray, NDArray[np.uint8]]:
        """The arrays `start` and `admissible` (as 0 and 1) for compiled code; not to be written to."""
        return self._raw  # type: ignore[attr-defined, no-any-return]

    def mdp(self, *, transitions: ArrayLike, rewards: ArrayLike) -> TabularMDP:
        """Return the MDP that these tables make of the space; only they are checked, the rest was once.

        >>> Space(states=1, actions=2, horizon=4).mdp(transitions=np.ones((1, 2, 1)), rewards=[[0.0, 1.0]]).horizon
        4
        """
        made = object.__new__(TabularMDP)
        made._hold(self, validation.float_table("transitions", transitions), rewards)
        return made

    def checked_policy(self, policy: ArrayLike) -> FloatArray:
        """Return a copy of `policy` (H, S, A); raise unless its rows are distributions over admissible actions."""
        table, shape = validation.float_table("policy", policy), (self.horizon, self.states, self.actions)
        if table.shape != shape or not kernels.is_policy(table, self.raw[1], validation.ROW_SUM_TOLERANCE):
            return validation.policy_table(table, shape, self.admissible)  # says what is wrong
        return table


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class TabularMDP:
    """A Markov decision process of `horizon` steps given by its tables.

    `transitions` has shape (S, A, S), or (H, S, A, S) when it depends on the step; `rewards` in [0, 1] has shape
    (S, A) or (H, S, A). `start` is a state or a distribution (S,), kept as a distribution. `admissible` is None or a
    boolean mask (S, A) with an action in every state, kept as a mask. The tables are copied and read-only; entries of
    inadmissible actions are never used: they may hold anything, and are kept as zeros.

    >>> mdp = TabularMDP(transitions=np.full((2, 3, 2), 0.5), rewards=np.ones((2, 3)), horizon=4)
    >>> mdp.states, mdp.actions, mdp.horizon
    (2, 3, 4)
    """

    space: Space
    """What of this MDP is known beforehand."""

    def __init__(
        self,
        *,
        transitions: ArrayLike,
        rewards: ArrayLike,
        horizon: int,
        start: ArrayLike = 0,
        admissible: ArrayLike | None = None,
    ) -> None:
        horizon = validation.positive_integer("horizon", horizon)
        kernel = validation.float_table("transitions", transitions)
        if kernel.ndim not in (3, 4) or 0 in kernel.shape:
            raise ValueError(f"`transitions` must have shape (S, A, S) or (H, S, A, S), got {kernel.shape}")
        states, actions = kernel.shape[-3:-1]
        space = Space(states=states, actions=actions, horizon=horizon, start=start, admissible=admissible)
        self._hold(space, kernel, rewards)

    def _hold(self, space: Space, transitions: FloatArray, rewards: ArrayLike) -> None:
        """Check the tables, of which `transitions` is a copy already, and keep them."""
        of_transitions, of_rewards = space._shapes  # type: ignore[attr-defined]
        validation.one_of_shapes("transitions", transitions, *of_transitions)
        earned = validation.float_table("rewards", rewards)
        validation.one_of_shapes("rewards", earned, *of_rewards)
        start, mask = space.raw
        raw = (
            transitions if transitions.ndim == 4 else transitions[None],
            earned if earned.ndim == 3 else earned[None],
            start,
            mask,
        )
        if not kernels.settle(*raw[:2], mask, validation.ROW_SUM_TOLERANCE):
            # The check sees a harmless row in the place of each row that is never used.
            used = np.where(space.admissible[:, :, None], transitions, np.eye(1, space.states)[0])
            validation.distributions("transitions", used)
            validation.in_range("rewards", earned, 0.0, 1.0)
        self.__dict__.update(space=space, _tables=(transitions, earned), _raw=raw)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.space.mdp, {"transitions": self.transitions, "rewards": self.rewards})

    def __repr__(self) -> str:
        return f"TabularMDP(transitions={self.transitions!r}, rewards={self.rewards!r}, space={self.space!r})"

    @functools.cached_property
    def transitions(self) -> FloatArray:
        """The probabilities of the next state, (S, A, S) or (H, S, A, S), read-only."""
        return validation.frozen(self._tables[0].view())  # type: ignore[attr-defined]

    @functools.cached_property
    def rewards(self) -> FloatArray:
        """The mean rewards, (S, A) or (H, S, A), read-only."""
        return validation.frozen(self._tables[1].view())  # type: ignore[attr-defined]

    @property
    def states(self) -> int:
        """The number of states S."""
        return self.space.states

    @property
    def actions(self) -> int:
        """The number of actions A, admissible or not."""
        return self.space.actions

    @property
    def horizon(self) -> int:
        """The number of steps H."""
        return self.space.horizon

    @property
    def start(self) -> FloatArray:
        """The distribution (S,) of the first state."""
        return self.space.start

    @property
    def admissible(self) -> BoolArray:
        """The mask (S, A) of allowed actions."""
        return self.space.admissible

    @property
    def raw(self) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.uint8]]:
        """The arrays `kernel`, `reward_steps`, `start` and `admissible` (as 0 and 1) for compiled code.

        Not to be written to, though numpy would allow it: numba takes several times longer to accept a read-only array.
        """
        return self._raw  # type: ignore[attr-defined, no-any-return]

    @property
    def kernel(self) -> FloatArray:
        """The transitions as (K, S, A, S); step h uses entry h mod K, so K is 1 (stationary) or H."""
        return self.transitions if self.transitions.ndim == 4 else self.transitions[None]

    @property
    def reward_steps(self) -> FloatArray:
        """The rewards as (K, S, A), K = 1 or H, read like `kernel`."""
        return self.rewards if self.rewards.ndim == 3 else self.rewards[None]


def _rebuilt(make: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    return make(**arguments)
