"""What agents share that compete with policies: those of a finite class, and how likely an action was when played."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.agent import Agent
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.finite.aggregating import FiniteRewards
from omg_cmdp.validation import BoolArray, FloatArray


def greedy_actions(oracle: FiniteRewards, contexts: Iterable[Context], admissible: BoolArray) -> NDArray[np.int64]:
    """Return the best action of every function in every context and state, (N, C, S); the lowest of equals."""
    tables = np.stack([oracle.functions(each).reshape(-1, *admissible.shape) for each in contexts], axis=1)
    return np.asarray(np.where(admissible, tables, -np.inf).argmax(axis=3))


def playing_chance(agent: Agent, trajectory: Trajectory) -> float:
    """Return the probability with which the first action was played: the recorded propensity, else what it is now."""
    if isinstance(trajectory, Episode) and trajectory.propensities is not None:
        return float(trajectory.propensities[0])
    return float(agent.policy(trajectory.context)[0, trajectory.states[0], trajectory.actions[0]])


def smoothed(shares: FloatArray, least: float, admissible: BoolArray) -> FloatArray:
    """Return (1 - Kμ)·shares + Kμ/k for shares (..., A), k the number of admissible actions there, K the most of them.

    >>> smoothed(np.array([[1.0, 0.0, 0.0]]), 0.1, np.array([[True, True, False]]))
    array([[0.9, 0.1, 0. ]])
    """
    counts = admissible.sum(axis=-1, keepdims=True)
    spread = least * counts.max()
    return np.asarray((1.0 - spread) * shares + spread * admissible / counts)
