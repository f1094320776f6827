"""The tables of a finite-horizon MDP."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp import validation
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.space import Space
from omg_cmdp.validation import BoolArray, FloatArray

compiled = Lazy("omg_cmdp.mdp.compiled")


@final
@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class TabularMDP:
    """A Markov decision process of `horizon` steps given by its tables, which are kept as read-only copies.

    Parameters
    ----------
    transitions : array (S, A, S) or (H, S, A, S)
        The probabilities of the next state, for all steps or for each.
    rewards : array (S, A) or (H, S, A)
        The mean rewards, in [0, 1].
    horizon : int
        The number of steps H.
    start : int or array (S,), default 0
        The first state, or its distribution; kept as a distribution.
    admissible : boolean array (S, A), optional
        Which actions are allowed, at least one in every state; by default all. Entries of inadmissible actions are
        never used: they may be anything, and are kept as zeros.

    Examples
    --------
    >>> mdp = TabularMDP(transitions=np.full((2, 3, 2), 0.5), rewards=np.ones((2, 3)), horizon=4)
    >>> mdp.states, mdp.actions, mdp.horizon
    (2, 3, 4)
    """

    space: Space
    """The sizes, start and admissible actions, which are known before the first episode."""
    states: int
    """The number of states S."""
    actions: int
    """The number of actions A, admissible or not."""
    horizon: int
    """The number of steps H."""
    start: FloatArray
    """The distribution (S,) of the first state."""
    admissible: BoolArray
    """The mask (S, A) of allowed actions."""
    raw: tuple[FloatArray, FloatArray, FloatArray, NDArray[np.uint8]]
    """The arrays `transition_steps`, `reward_steps`, `start` and `admissible` (as 0 and 1) for compiled code.

    Do not write to them. They are not read-only, because numba takes several times longer to accept such an array.
    """
    _tables: tuple[FloatArray, FloatArray]

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
        table = validation.float_table("transitions", transitions)
        if table.ndim not in (3, 4) or 0 in table.shape:
            raise ValueError(f"`transitions` must have shape (S, A, S) or (H, S, A, S), got {table.shape}")
        states, actions = table.shape[-3:-1]
        space = Space(states=states, actions=actions, horizon=horizon, start=start, admissible=admissible)
        self._hold(space, table, rewards)

    @classmethod
    def of_space(cls, space: Space, transitions: ArrayLike, rewards: ArrayLike) -> TabularMDP:
        """Return the MDP with these tables; only they are checked. See `Space.mdp`."""
        made = cls.__new__(cls)
        made._hold(space, validation.float_table("transitions", transitions), rewards)
        return made

    def _hold(self, space: Space, transitions: FloatArray, rewards: ArrayLike) -> None:
        """Check the tables and keep them; `transitions` is a copy already."""
        of_transitions, of_rewards = space.shapes
        earned = validation.float_table("rewards", rewards)
        if transitions.shape not in of_transitions or earned.shape not in of_rewards:
            validation.one_of_shapes("transitions", transitions, *of_transitions)
            validation.one_of_shapes("rewards", earned, *of_rewards)
        start, mask = space.raw
        moves = transitions if transitions.ndim == 4 else transitions[None]
        pays = earned if earned.ndim == 3 else earned[None]
        if not compiled.settle(moves, pays, mask, validation.ROW_SUM_TOLERANCE):
            # Rows that are never used are replaced by a valid one for the check.
            used = np.where(space.admissible[:, :, None], transitions, np.eye(1, space.states)[0])
            validation.distributions("transitions", used)
            validation.in_range("rewards", earned, 0.0, 1.0)
        # The fields are frozen, and this is their only writer.
        self.__dict__.update(space=space, states=space.states, actions=space.actions, horizon=space.horizon)
        self.__dict__.update(start=space.start, admissible=space.admissible, raw=(moves, pays, start, mask))
        self.__dict__["_tables"] = transitions, earned

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.methodcaller("mdp", transitions=self.transitions, rewards=self.rewards), (self.space,)

    def __repr__(self) -> str:
        return f"TabularMDP(transitions={self.transitions!r}, rewards={self.rewards!r}, space={self.space!r})"

    @property
    def transitions(self) -> FloatArray:
        """The probabilities of the next state, (S, A, S) or (H, S, A, S), read-only."""
        return validation.frozen(self._tables[0].view())

    @property
    def rewards(self) -> FloatArray:
        """The mean rewards, (S, A) or (H, S, A), read-only."""
        return validation.frozen(self._tables[1].view())

    @property
    def transition_steps(self) -> FloatArray:
        """The transitions as (K, S, A, S); step h uses entry h mod K, so K is 1 (stationary) or H."""
        return validation.frozen(self.raw[0].view())

    @property
    def reward_steps(self) -> FloatArray:
        """The rewards as (K, S, A), K = 1 or H, read like `transition_steps`."""
        return validation.frozen(self.raw[1].view())
