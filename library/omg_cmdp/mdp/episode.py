"""An episode as it was played: a trajectory with the propensities of its actions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.trajectory import Steps, Trajectory
from omg_cmdp.validation import FloatArray, first_index, float_table, frozen, one_of_shapes, positive_integer


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Episode(Trajectory):
    """A trajectory as it was played, with the probability of every action taken.

    Parameters
    ----------
    context, states, actions, rewards, costs
        As for a `Trajectory`.
    propensities : array (L,), optional
        The probabilities of the actions, in (0, 1]; None if they are unknown, which is enough to learn from but not to
        value another policy.
    length : int, optional
        The number of steps before the episode ended, those with a decision; by default L.

    Examples
    --------
    >>> Episode(context="c", states=[0, 1, 1], actions=[0, 2], rewards=[0.0, 1.0], propensities=[0.5, 0.1]).length
    2
    """

    propensities: FloatArray | None
    length: int

    _parts = (*Trajectory._parts, "propensities", "length")

    def __init__(
        self,
        *,
        context: Context,
        states: ArrayLike | Sequence[int | None],
        actions: ArrayLike,
        rewards: ArrayLike | Sequence[float | None] | None,
        propensities: ArrayLike | None = None,
        length: int | None = None,
        costs: ArrayLike | None = None,
    ) -> None:
        super().__init__(context=context, states=states, actions=actions, rewards=rewards, costs=costs)
        steps = len(self.actions)
        decided = steps if length is None else positive_integer("length", length)
        if decided > steps:
            raise ValueError(f"`length` must be at most the number of actions {steps}, got {length}")
        chances = None if propensities is None else _propensities(propensities, steps)
        self._add(chances, decided)

    def _add(self, propensities: FloatArray | None, length: int) -> None:
        self.__dict__.update(propensities=None if propensities is None else frozen(propensities), length=length)

    def first(self, steps: int) -> Episode:
        """Return its first steps, or all if there are no more: the episode of a person that drops out.

        >>> Episode(context="c", states=[0, 1, 1], actions=[0, 2], rewards=[0.0, 1.0]).first(1).states
        array([0, 1])
        """
        steps = positive_integer("steps", steps)
        if steps >= len(self.actions):
            return self
        states, actions, rewards = self.raw
        chances = None if self.propensities is None else self.propensities[:steps].copy()
        costs = None if self.costs is None else self.costs[:, :steps].copy()
        seen = states[: steps + 1].copy(), actions[:steps].copy(), rewards[:steps].copy()
        return Episode.of_arrays(self.known, seen, chances, min(self.length, steps), costs)

    def with_rewards(self, rewards: FloatArray) -> Episode:
        """Return the episode as it would be with these rewards (L,); nothing is checked."""
        steps = (*self.raw[:2], rewards)
        return Episode.of_arrays(self.known, steps, self.propensities, self.length, costs=self.costs)

    @classmethod
    def of_arrays(
        cls,
        context: Context,
        steps: Steps,
        propensities: FloatArray | None,
        length: int,
        costs: FloatArray | None = None,
    ) -> Episode:
        """Return the episode that holds these very arrays: nothing is checked or copied."""
        made = cls.__new__(cls)
        made._hold(context, steps, costs)
        made._add(propensities, length)
        return made

    @classmethod
    def of_steps(
        cls,
        space: Space,
        context: Context,
        seen: Steps,
        propensities: FloatArray | None = None,
        *,
        last: int | None,
        costs: FloatArray | None = None,
    ) -> Episode:
        """Return the episode of these L steps, with the state `last` after them; nothing is checked.

        None: the episode terminated, and is continued to its H steps in the last state of the space; -1: nobody knows.
        """
        (states, actions, rewards), steps = seen, len(seen[1])
        length = space.horizon if last is None else steps
        visited, taken = np.full(length + 1, space.states - 1), np.full(length, int(space.admissible[-1].argmax()))
        earned, known = np.zeros(length), np.ones(length)
        visited[:steps], taken[:steps], earned[:steps] = states, actions, rewards
        if last is not None:
            visited[steps] = last
            visited = visited[: steps + (last >= 0)]
        if propensities is not None:
            known[:steps] = propensities
        paid = None if costs is None else np.pad(costs, [(0, 0), (0, length - steps)])
        chances = None if propensities is None else known
        return cls.of_arrays(context, (visited, taken, earned), chances, steps, costs=paid)


def _propensities(values: ArrayLike, steps: int) -> FloatArray:
    chances = float_table("propensities", values)
    one_of_shapes("propensities", chances, (steps,))
    bad = ~((chances > 0.0) & (chances <= 1.0))
    if bad.any():
        [step] = first_index(bad)
        raise ValueError(f"`propensities` must lie in (0, 1], got {float(chances[step])} at step {step}")
    return chances
