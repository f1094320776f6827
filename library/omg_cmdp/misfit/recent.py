"""The last episodes of an agent, by which its oracles are judged: two blocks, the older of which is full.

A verdict on a block holds at every time while it grows. Block b has the level α/(b·(b+1)); the level of all is α.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.misfit.judgement import LEVEL, Finding, Misfit, MisfitStatus, Seen, find
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.validation import FloatArray

BLOCK = 2048
"""Episodes of a block."""
MOST_STEPS = 20_000
"""Steps of a block, which long episodes fill sooner."""
FEWEST_EPISODES = 50
"""Episodes of a block from which on it is judged."""


class _Taught(NamedTuple):
    trajectory: Trajectory
    rewards: FloatArray
    """Scaled to [0, 1], nan where they are not known."""
    is_late: bool
    """Whether the states were told before, and only rewards are new."""


class Recent:
    """The episodes that an agent was taught, as far as they are kept. Nothing is computed until `judge` is called."""

    def __init__(self) -> None:
        self._full: list[_Taught] = []
        self._block: list[_Taught] = []
        self._number, self._steps = 1, 0

    def add(self, trajectory: Trajectory, rewards: FloatArray, *, is_late: bool = False) -> None:
        """Keep an episode, or rewards of one that came late."""
        if len(self._block) >= BLOCK or self._steps >= MOST_STEPS:
            self._full, self._block, self._steps = self._block, [], 0
            self._number += 1
        self._block.append(_Taught(trajectory, rewards, is_late))
        self._steps += len(rewards)

    def judge(self, rewards: RewardOracle, dynamics: DynamicsOracle) -> Misfit:
        """Return whether the episodes contradict the class of one of the two oracles."""
        blocks = [(max(self._number - 1, 1), list(self._full)), (self._number, list(self._block))]
        kept = [(number, block) for number, block in blocks if len(block) >= FEWEST_EPISODES]
        episodes = sum(not each.is_late for _, block in kept for each in block)
        if not kept:
            return Misfit(status=MisfitStatus.TOO_EARLY, episodes=len(self._block))
        findings = []
        for name, oracle in (("rewards", rewards), ("dynamics", dynamics)):
            found = [self._found(name, oracle, number, block) for number, block in kept]
            strongest = max(
                (each for each in found if each is not None), key=lambda each: each.log_evidence, default=None
            )
            findings += [] if strongest is None else [strongest]
        status = MisfitStatus.FOUND if findings else MisfitStatus.NONE_FOUND
        return Misfit(status=status, episodes=episodes, findings=tuple(findings))

    def _found(
        self, name: str, oracle: RewardOracle | DynamicsOracle, number: int, block: list[_Taught]
    ) -> Finding | None:
        """Return the finding of one block, if it exceeds its level."""
        seen = [_seen(each, name == "rewards") for each in block]
        found = find(name, oracle, [each for each in seen if each is not None])
        level = LEVEL / (number * (number + 1))
        return found if found is not None and found.log_evidence > -math.log(level) else None


def _seen(taught: _Taught, is_reward: bool) -> Seen | None:
    """Return what the oracle of rewards, or of dynamics, learned of an episode; None if it was nothing."""
    trajectory, rewards, is_late = taught
    states, actions, _ = trajectory.raw
    steps = np.arange(len(actions))
    if not is_reward:
        return None if is_late else Seen(trajectory.known, steps, states[:-1], actions, states[1:])
    told = np.flatnonzero(~np.isnan(rewards))
    return Seen(trajectory.known, told, states[told], actions[told], rewards[told]) if len(told) else None
