"""Optimistic backward induction where a bonus depends on the values that follow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omg_cmdp.mdp.bellman import ValueBounds
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import FloatArray


def optimistic_plan(
    model: TabularMDP, rewards: FloatArray, bonus: Callable[[FloatArray], FloatArray], bounds: ValueBounds
) -> tuple[FloatArray, FloatArray]:
    """Return the policy (H, S, A), one-hot, and values (H + 1, S) of Q_h = r + P·V_{h+1} + bonus(V_{h+1}), each (S, A).

    V_h is clipped to `bounds`; ties go to the lowest action.
    """
    policy, values = np.zeros((model.horizon, *rewards.shape)), np.zeros((model.horizon + 1, model.states))
    transitions, admissible, rows = model.transitions, model.admissible, np.arange(model.states)
    for h in reversed(range(model.horizon)):
        gains = rewards + transitions @ values[h + 1] + bonus(values[h + 1])
        gains[~admissible] = -np.inf
        policy[h, rows, gains.argmax(axis=1)] = 1.0
        values[h] = np.clip(gains.max(axis=1), bounds.lows[h], bounds.highs[h])
    return policy, values
