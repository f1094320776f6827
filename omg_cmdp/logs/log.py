"""What a log is: whole episodes of one space, and the probability with which each action was taken."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.mdp.episode import Trajectory
from omg_cmdp.mdp.tabular import Space
from omg_cmdp.validation import FloatArray, first_index, float_table, frozen, interval, one_of_shapes


@dataclasses.dataclass(frozen=True, init=False, eq=False)
class Log:
    """Episodes of `space`, in the order in which they were played, with rewards in `reward_range`.

    `propensities` (n, H) are the probabilities with which the logged actions were taken, in (0, 1]; None if nobody
    knows, which is enough to learn from, and not enough to value a policy.

    >>> played = Trajectory(context="c", states=[0, 0], actions=[1], rewards=[1.0])
    >>> log = Log(Space(states=1, actions=2, horizon=1), [played] * 3, [[0.5]] * 3)
    >>> len(log), len(log[:2])
    (3, 2)
    """

    space: Space
    trajectories: tuple[Trajectory, ...]
    propensities: FloatArray | None
    reward_range: tuple[float, float]

    def __init__(
        self,
        space: Space,
        trajectories: Iterable[Trajectory],
        propensities: ArrayLike | None = None,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        episodes = tuple(trajectories)
        if not episodes:
            raise ValueError("`trajectories` must hold at least one episode, got none")
        bounds = interval("reward_range", reward_range)
        for trajectory in episodes:
            trajectory.check(space, bounds)
        chances = None
        if propensities is not None:
            chances = float_table("propensities", propensities)
            one_of_shapes("propensities", chances, (len(episodes), space.horizon))
            bad = ~((chances > 0.0) & (chances <= 1.0))
            if bad.any():
                where = first_index(bad)
                raise ValueError(f"`propensities` must lie in (0, 1], got {float(chances[where])} at index {where}")
            frozen(chances)
        self.__dict__.update(space=space, trajectories=episodes, propensities=chances, reward_range=bounds)

    def __len__(self) -> int:
        return len(self.trajectories)

    def __getitem__(self, chosen: slice) -> Log:
        """Return some of the episodes: half of them to learn from, say, and the others to judge by."""
        if not isinstance(chosen, slice):
            advice = "single ones are in `trajectories`"
            raise ValueError(f"`log[...]` must be given a slice of episodes ({advice}), got {chosen!r:.60}")
        propensities = None if self.propensities is None else self.propensities[chosen]
        return Log(self.space, self.trajectories[chosen], propensities, reward_range=self.reward_range)

    @property
    def states(self) -> NDArray[np.int64]:
        """The states, (n, H + 1)."""
        return np.stack([trajectory.states for trajectory in self.trajectories])

    @property
    def actions(self) -> NDArray[np.int64]:
        """The actions, (n, H)."""
        return np.stack([trajectory.actions for trajectory in self.trajectories])

    @property
    def rewards(self) -> FloatArray:
        """The rewards, (n, H)."""
        return np.stack([trajectory.rewards for trajectory in self.trajectories])
