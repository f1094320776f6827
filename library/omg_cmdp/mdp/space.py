"""What an agent knows of an MDP before the first episode."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp import validation
from omg_cmdp.jit import Lazy
from omg_cmdp.recipes.recipe import Made
from omg_cmdp.validation import BoolArray, FloatArray, instance_of

if TYPE_CHECKING:
    from omg_cmdp.mdp.tabular import TabularMDP

compiled = Lazy("omg_cmdp.mdp.compiled")

Shapes = tuple[tuple[int, ...], tuple[int, ...]]
"""The shape of a table for all steps, and of one for each."""


@dataclasses.dataclass(frozen=True, init=False, eq=False)
class Space(Made):
    """What is known before the first episode: sizes, horizon, where episodes start, which actions are allowed.

    Parameters
    ----------
    states, actions, horizon : int
        S, A and H.
    start : int or array (S,), default 0
        The first state, or its distribution; kept as a distribution.
    admissible : boolean array (S, A), optional
        Which actions are allowed, at least one in every state; by default all.

    Examples
    --------
    >>> Space(states=3, actions=2, horizon=4).start
    array([1., 0., 0.])
    """

    states: int
    actions: int
    horizon: int
    start: FloatArray
    admissible: BoolArray
    raw: tuple[FloatArray, NDArray[np.uint8]] = dataclasses.field(repr=False)
    """The arrays `start` and `admissible` (as 0 and 1) for compiled code; do not write to them."""
    shapes: tuple[Shapes, Shapes] = dataclasses.field(repr=False)
    """The shapes that tables of transitions, and of rewards, may have."""

    def __init__(
        self, *, states: int, actions: int, horizon: int, start: ArrayLike = 0, admissible: ArrayLike | None = None
    ) -> None:
        states = validation.positive_integer("states", states)
        actions = validation.positive_integer("actions", actions)
        horizon = validation.positive_integer("horizon", horizon)
        distribution = validation.start_distribution(start, states)
        mask = validation.admissible_mask(admissible, states, actions)
        pairs, steps = (states, actions), (horizon, states, actions)
        # The fields are frozen, and this is their only writer.
        self.__dict__.update(states=states, actions=actions, horizon=horizon)
        self.__dict__.update(start=validation.frozen(distribution.view()), admissible=validation.frozen(mask.view()))
        shapes = ((*pairs, states), (*steps, states)), (pairs, steps)
        self.__dict__.update(raw=(distribution, mask.view(np.uint8)), shapes=shapes)

    def __repr__(self) -> str:
        starts, closed = np.flatnonzero(self.start), int((~self.admissible).sum())
        start = str(starts[0]) if len(starts) == 1 else f"a distribution over {len(starts)} states"
        rest = [f"start={start}"] * (start != "0") + [f"{closed} pairs inadmissible"] * (closed > 0)
        return f"Space({', '.join([f'states={self.states}, actions={self.actions}, horizon={self.horizon}', *rest])})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that a copy in another process is as read-only as this one.
        fields = {name: getattr(self, name) for name in ("states", "actions", "horizon", "start", "admissible")}
        return functools.partial(Space, **fields), ()

    def difference(self, other: Space) -> tuple[str, str] | None:
        """Return in words what this space has, and what `other` has in its place; None if they are the same.

        >>> Space(states=3, actions=2, horizon=4).difference(Space(states=3, actions=2, horizon=4, start=1))
        ('`start` 1.0 at index (0,)', '0.0')
        """
        if other is self:
            return None
        instance_of("other", other, Space)
        ours, theirs = ((each.states, each.actions, each.horizon) for each in (self, other))
        if ours != theirs:
            return "{} states, {} actions and horizon {}".format(*ours), "{}, {} and {}".format(*theirs)
        for name in ("start", "admissible"):
            mine, others = getattr(self, name), getattr(other, name)
            if (mine != others).any():
                where = validation.first_index(mine != others)
                return f"`{name}` {mine[where]} at index {where}", f"{others[where]}"
        return None

    def mdp(self, *, transitions: ArrayLike, rewards: ArrayLike) -> TabularMDP:
        """Return the MDP of this space with these tables; only the tables are checked.

        >>> Space(states=1, actions=2, horizon=4).mdp(transitions=np.ones((1, 2, 1)), rewards=[[0.0, 1.0]]).horizon
        4
        """
        return tabular.TabularMDP.of_space(self, transitions, rewards)

    def checked_policy(self, policy: ArrayLike) -> FloatArray:
        """Return `policy` as a float array (H, S, A); raise unless its rows are distributions over admissible actions.

        A writable array that is one already is returned itself, not copied.
        """
        shape = (self.horizon, self.states, self.actions)
        if type(policy) is np.ndarray and policy.dtype == np.float64 and policy.flags.carray:
            table = policy
        else:
            table = validation.float_table("policy", policy)
        if table.shape != shape or not compiled.is_policy(table, self.raw[1], validation.ROW_SUM_TOLERANCE):
            return validation.policy_table(table, shape, self.admissible)  # says what is wrong
        return table


# Below the class, because each of the two needs the other: a space makes MDPs, and an MDP has a space.
from omg_cmdp.mdp import tabular  # noqa: E402
