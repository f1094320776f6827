"""What an episode teaches an oracle: the steps as it takes them, and a call that teaches the rewards that are known."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.base import Oracle, RewardOracle
from omg_cmdp.validation import FloatArray, frozen


def reward_lesson(oracle: RewardOracle, trajectory: Trajectory, rewards: FloatArray) -> Callable[[], None]:
    """Return a call that teaches the oracle the `rewards` that are known, scaled to [0, 1]."""
    visited, actions = steps_for(trajectory, oracle)
    context, states = trajectory.known.to(oracle), visited[: len(actions)]
    if not math.isnan(rewards.sum()):
        rewards = rewards if oracle.takes_keyed else frozen(rewards.view())
        return functools.partial(oracle.update, context, states, actions, rewards)
    told = ~np.isnan(rewards)
    if not told.any():
        return nothing
    if oracle.predict(context).ndim == 3:
        rule = "be all known or all None, for a reward oracle with a table for each step"
        raise ValueError(f"`rewards` must {rule}, got {trajectory.rewards}")
    return functools.partial(oracle.update, context, states[told], actions[told], rewards[told])


def steps_for(trajectory: Trajectory, oracle: Oracle) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return states and actions for `oracle`: read-only, unless it is one of ours, which never writes to them."""
    return trajectory.raw[:2] if oracle.takes_keyed else (trajectory.states, trajectory.actions)


def nothing() -> None:
    """Teach nothing."""
