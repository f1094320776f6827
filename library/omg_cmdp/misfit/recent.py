"""The last episodes of an agent, by which its oracles are judged: two blocks, the older of which is full.

A verdict on a block holds at every time while it grows. Block b has the level α/(b·(b+1)); the level of all is α.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context, context_from_json, context_to_json
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.misfit.judgement import LEVEL, Contradiction, Misfit, MisfitStatus, Taught, find
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.persistence import State, numbers
from omg_cmdp.validation import FloatArray

BLOCK = 2048
"""The number of episodes in a block."""
MOST_STEPS = 20_000
"""The number of steps after which a block of long episodes is full."""
FEWEST_EPISODES = 50
"""The number of episodes from which on a block is judged."""


class _Kept(NamedTuple):
    trajectory: Trajectory
    rewards: FloatArray
    """Scaled to [0, 1], nan where they are not known."""
    is_late: bool
    """Whether the states were learned before, and only rewards are new."""


class Recent:
    """The last episodes that an agent has learned. Nothing is computed until `judge` is called."""

    def __init__(self, episodes: Iterable[tuple[Trajectory, FloatArray]] = ()) -> None:
        self.forget()
        for trajectory, rewards in episodes:
            self.add(trajectory, rewards)

    def forget(self) -> None:
        """Begin anew, as for an agent that has loaded another state."""
        self._full: list[_Kept] = []
        self._block: list[_Kept] = []
        self._number, self._steps = 1, 0
        self._verdict: Misfit | None = None  # since the last episode

    def add(self, trajectory: Trajectory, rewards: FloatArray, *, is_late: bool = False) -> None:
        """Keep an episode, or rewards of one that came late."""
        if len(self._block) >= BLOCK or self._steps >= MOST_STEPS:
            self._full, self._block, self._steps = self._block, [], 0
            self._number += 1
        self._block.append(_Kept(trajectory, rewards, is_late))
        self._steps += len(rewards)
        self._verdict = None

    def judge(self, rewards: RewardOracle, dynamics: DynamicsOracle) -> Misfit:
        """Return whether the episodes contradict the class of one of the two oracles, which have learned them."""
        if self._verdict is None:
            self._verdict = self._judge(rewards, dynamics)
        return self._verdict

    def _judge(self, rewards: RewardOracle, dynamics: DynamicsOracle) -> Misfit:
        blocks = [(max(self._number - 1, 1), list(self._full)), (self._number, list(self._block))]
        kept = [(number, block) for number, block in blocks if len(block) >= FEWEST_EPISODES]
        episodes = sum(not each.is_late for _, block in kept for each in block)
        if not kept:
            return Misfit(status=MisfitStatus.TOO_EARLY, episodes=len(self._block))
        findings: list[Contradiction] = []
        for name, oracle in (("rewards", rewards), ("dynamics", dynamics)):
            found = [each for number, block in kept if (each := self._found(name, oracle, number, block)) is not None]
            findings += sorted(found, key=lambda each: -each.log_evidence)[:1]
        status = MisfitStatus.FOUND if findings else MisfitStatus.NONE_FOUND
        return Misfit(status=status, episodes=episodes, findings=tuple(findings))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the episodes, for a run that is to be continued."""
        kept = [*self._full, *self._block]
        known = [each.trajectory for each in kept]
        return {
            "blocks": np.array([self._number, len(self._full)], dtype=np.float64),
            "contexts": np.array([context_to_json(each.known.context) for each in known], dtype=np.str_),
            "lengths": np.array([len(each.rewards) for each in kept], dtype=np.float64),
            "late": np.array([each.is_late for each in kept], dtype=np.float64),
            "states": _joined([np.append(each.states, [-1] * (not each.end_known)) for each in known]),  # -1: not known
            "actions": _joined([each.actions for each in known]),
            "rewards": _joined([np.nan_to_num(each.rewards, nan=-1.0) for each in kept]),
        }

    def load_state(self, state: State) -> None:
        """Load the episodes, or raise and change nothing."""
        contexts = [context_from_json(str(each)) for each in np.atleast_1d(state["contexts"])]
        number, full = map(int, numbers("blocks", state, (2,), whole=True))
        lengths, late = (
            numbers(name, state, (len(contexts),), whole=True).astype(np.int64) for name in ("lengths", "late")
        )
        visited = _parted(numbers("states", state, (lengths.sum() + len(lengths),)), lengths + 1)
        taken, earned = (_parted(numbers(name, state, (lengths.sum(),)), lengths) for name in ("actions", "rewards"))
        rows = zip(contexts, visited, taken, earned, late.tolist(), strict=True)
        kept = [_Kept(*_trajectory(*row), bool(is_late)) for *row, is_late in rows]
        self._full, self._block, self._number = kept[:full], kept[full:], number
        self._steps, self._verdict = int(lengths[full:].sum()), None

    def _found(
        self, name: str, oracle: RewardOracle | DynamicsOracle, number: int, block: list[_Kept]
    ) -> Contradiction | None:
        """Return the finding of one block, if it exceeds its level."""
        seen = [_taught(each, name == "rewards") for each in block]
        found = find(name, oracle, [each for each in seen if each is not None])
        level = LEVEL / (number * (number + 1))
        return found if found is not None and found.log_evidence > -math.log(level) else None


def _taught(kept: _Kept, is_reward: bool) -> Taught | None:
    """Return what the oracle of rewards, or of dynamics, learned from an episode; None if it was nothing."""
    trajectory, rewards, is_late = kept
    states, actions, _ = trajectory.raw
    if is_reward:
        told = np.flatnonzero(~np.isnan(rewards))
        return Taught(trajectory.known, told, states[told], actions[told], rewards[told]) if len(told) else None
    moves = 0 if is_late else len(states) - 1  # one less than actions, if the end is not known
    return Taught(trajectory.known, np.arange(moves), states[:-1], actions[:moves], states[1:]) if moves else None


def _joined(rows: list[NDArray[Any]]) -> FloatArray:
    return np.concatenate([np.zeros(0), *rows])


def _parted(joined: FloatArray, lengths: NDArray[np.int64]) -> list[FloatArray]:
    return np.split(joined, np.cumsum(lengths)[:-1]) if len(lengths) else []


def _trajectory(context: Context, *rows: FloatArray) -> tuple[Trajectory, FloatArray]:
    """Return an episode and its rewards of what `state` keeps."""
    states, actions = rows[0].astype(np.int64).tolist(), rows[1].astype(np.int64)
    states = states if states[-1] >= 0 else [*states[:-1], None]
    rewards = np.where(rows[2] < 0.0, np.nan, rows[2])
    return Trajectory(context=context, states=states, actions=actions, rewards=None), rewards
