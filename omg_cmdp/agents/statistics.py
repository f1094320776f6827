"""Agents without oracles: they keep statistics of their own."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.base import Agent, Decision, _interval
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.tabular import Space
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.base import State, fingerprint, read_state, restored
from omg_cmdp.validation import FloatArray


class StatisticsAgent(Agent):
    """An agent that learns by itself; what it learned is kept in arrays, and saved with them."""

    make: ClassVar[tuple[str, ...]] = ()
    """The attributes that must be equal between an agent that is saved and one that is restored."""

    def __init__(self, space: Space, *, reward_range: tuple[float, float]) -> None:
        if not isinstance(space, Space):
            raise ValueError(f"`space` must be a Space, got {type(space).__name__}")
        self.space = space
        self.reward_range = _interval(reward_range)
        self.episodes_seen = 0

    @abc.abstractmethod
    def decide(self, context: Context) -> Decision:
        """Return the policy, and how it came about."""

    @abc.abstractmethod
    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        """Learn from a checked episode with `rewards` in [0, 1]; refuse its context before anything changes."""

    @abc.abstractmethod
    def _statistics(self) -> dict[str, NDArray[Any]]:
        """Return what was learned."""

    @abc.abstractmethod
    def _load_statistics(self, state: State) -> None:
        """Continue with what was learned; refuse it before anything changes."""

    @final
    def policy(self, context: Context) -> FloatArray:
        """Return the policy (H, S, A) for the next episode."""
        return self.decide(context).policy

    @final
    def update(self, trajectory: Trajectory) -> None:
        """Learn from an episode."""
        if not isinstance(trajectory, Trajectory):
            raise ValueError(f"`trajectory` must be a Trajectory, got {type(trajectory).__name__}")
        trajectory.check(self.space, self.reward_range)
        low, high = self.reward_range
        self._learn(trajectory, np.clip((trajectory.rewards - low) / (high - low), 0.0, 1.0))
        self.episodes_seen += 1

    def _make(self) -> str:
        parts = [f"{name} {getattr(self, name)}" for name in ("reward_range", *self.make)]
        sizes = f"{self.space.states} states, {self.space.actions} actions, horizon {self.space.horizon}"
        tables = f"start {fingerprint(self.space.start)}, admissible {fingerprint(self.space.admissible)}"
        return ", ".join([type(self).__name__, sizes, tables, *parts])

    @final
    def state(self) -> dict[str, NDArray[Any]]:
        """Return what was learned, and how many episodes there were."""
        account = {"make": np.array(self._make()), "episodes_seen": np.array(float(self.episodes_seen))}
        return {**account, **self._statistics()}

    @final
    def load(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue, to the bit, where the agent of equal make was whose `state()` this is."""
        if str(state.get("make")) != self._make():
            raise ValueError(f"`state` must come from {self._make()!r}, got {str(state.get('make'))!r}")
        state = read_state(state)
        episodes = restored("episodes_seen", state, ())
        if episodes < 0 or episodes != int(episodes):
            raise ValueError(f"`state` must hold a number of episodes, got {episodes}")
        self._load_statistics(state)
        self.episodes_seen = int(episodes)
