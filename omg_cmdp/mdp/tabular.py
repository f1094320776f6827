"""The tables of a finite-horizon MDP (`TabularMDP`) and the part of them an agent knows beforehand (`Space`)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp import validation
from omg_cmdp.validation import BoolArray, FloatArray


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
        distribution = validation.start_distribution(start, states)
        mask = validation.admissible_mask(admissible, states, actions)
        object.__setattr__(self, "states", states)
        object.__setattr__(self, "actions", actions)
        object.__setattr__(self, "horizon", validation.positive_integer("horizon", horizon))
        object.__setattr__(self, "start", validation.frozen(distribution))
        object.__setattr__(self, "admissible", validation.frozen(mask))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (Space, dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True, init=False, eq=False)
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

    transitions: FloatArray
    rewards: FloatArray
    horizon: int
    start: FloatArray
    admissible: BoolArray

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
        transitions = validation.float_table("transitions", transitions)
        if transitions.ndim not in (3, 4) or 0 in transitions.shape:
            raise ValueError(f"`transitions` must have shape (S, A, S) or (H, S, A, S), got {transitions.shape}")
        states, actions = transitions.shape[-3:-1]
        table = (states, actions)
        validation.one_of_shapes("transitions", transitions, (*table, states), (horizon, *table, states))
        rewards = validation.float_table("rewards", rewards)
        validation.one_of_shapes("rewards", rewards, table, (horizon, *table))
        distribution = validation.start_distribution(start, states)
        mask = validation.admissible_mask(admissible, states, actions)

        if mask.all():
            validation.distributions("transitions", transitions)
        else:
            # The check sees a harmless row in the place of each row that is never used.
            validation.distributions("transitions", np.where(mask[:, :, None], transitions, np.eye(1, states)[0]))
            transitions = np.where(mask[:, :, None], transitions, 0.0)
            rewards = np.where(mask, rewards, 0.0)
        validation.in_range("rewards", rewards, 0.0, 1.0)

        tables = {"transitions": transitions, "rewards": rewards, "start": distribution, "admissible": mask}
        object.__setattr__(self, "horizon", horizon)
        for name, array in tables.items():
            object.__setattr__(self, name, validation.frozen(array.view()))
        steps = (
            transitions.reshape(-1, *table, states),
            rewards.reshape(-1, *table),
            distribution,
            mask.view(np.uint8),
        )
        object.__setattr__(self, "_raw", steps)

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that a copy in another process is as read-only as this one.
        return _rebuild, (TabularMDP, dataclasses.asdict(self))

    @property
    def states(self) -> int:
        """The number of states S."""
        return int(self.transitions.shape[-1])

    @property
    def actions(self) -> int:
        """The number of actions A, admissible or not."""
        return int(self.transitions.shape[-2])

    @property
    def space(self) -> Space:
        """What of this MDP is known beforehand."""
        return Space(
            states=self.states,
            actions=self.actions,
            horizon=self.horizon,
            start=self.start,
            admissible=self.admissible,
        )

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


def _rebuild(cls: type[Space] | type[TabularMDP], fields: dict[str, Any]) -> Space | TabularMDP:
    return cls(**fields)
