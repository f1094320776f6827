"""Backward induction: optimal policies, and exact values of any policy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import FloatArray

kernels = Lazy("omg_cmdp.mdp.kernels")

LOOPS_UP_TO = 32
"""Compiled loops are faster than numpy up to this many states."""


def optimal_policy(mdp: TabularMDP) -> tuple[FloatArray, float]:
    """Return a deterministic optimal policy (H, S, A), one-hot, and its value; ties go to the lowest action.

    Q_h(s, a) = r_h(s, a) + Σ_s' P_h(s'|s, a)·V_{h+1}(s'),  V_h(s) = max_a Q_h(s, a) over admissible a,  V_H = 0.

    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[0.25, 0.75]]), horizon=4)
    >>> optimal_policy(mdp)[1]
    3.0
    """
    policy, values = best_response(mdp, mdp.raw[1])
    return policy, float(mdp.start @ values[0])


def best_response(mdp: TabularMDP, rewards: FloatArray, *, cap: float = math.inf) -> tuple[FloatArray, FloatArray]:
    """Return an optimal policy of `mdp` for other `rewards` (K, S, A), K = 1 or H, and its values (H + 1, S).

    The rewards may be any numbers, such as bonuses. Values with m steps to go are clipped at `cap`·m.
    """
    policy = np.zeros((mdp.horizon, mdp.states, mdp.actions))
    values = np.zeros((mdp.horizon + 1, mdp.states))
    kernel, _, _, admissible = mdp.raw
    if mdp.states <= LOOPS_UP_TO:
        kernels.best_response(kernel, rewards, admissible, cap, policy, values)
        return policy, values
    every_state = np.arange(mdp.states)
    for h in reversed(range(mdp.horizon)):
        action_values = np.where(mdp.admissible, _action_values(mdp, rewards, h, values[h + 1]), -np.inf)
        best = action_values.argmax(axis=1)
        policy[h, every_state, best] = 1.0
        values[h] = np.minimum(action_values[every_state, best], cap * (mdp.horizon - h))
    return policy, values


def value_ranges(mdp: TabularMDP) -> FloatArray:
    """Return by how much V_{h+1} can differ between two states, under any two policies, (H,).

    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[0.25, 0.75]]), horizon=3)
    >>> value_ranges(mdp)
    array([1. , 0.5, 0. ])
    """
    ranges = np.empty(mdp.horizon)
    kernel, rewards, _, admissible = mdp.raw
    kernels.value_ranges(kernel, rewards, admissible, ranges)
    return ranges


def policy_value(mdp: TabularMDP, policy: ArrayLike) -> float:
    """Return the exact expected total reward of the (stochastic) `policy` (H, S, A).

    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[0.0, 1.0]]), horizon=4)
    >>> policy_value(mdp, np.full((4, 1, 2), 0.5))
    2.0
    """
    values, _ = policy_values(mdp, mdp.space.checked_policy(policy), mdp.reward_steps)
    return float(mdp.start @ values[0])


def policy_values(mdp: TabularMDP, policy: FloatArray, rewards: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return V (H + 1, S) and Q (H, S, A) of a valid `policy` in `mdp`, for any `rewards` (K, S, A), K = 1 or H.

    Q_h(s, a) = r_h(s, a) + Σ_s' P_h(s'|s, a)·V_{h+1}(s'),  V_h(s) = Σ_a π_h(a|s)·Q_h(s, a),  V_H = 0.
    """
    values, action_values = np.zeros((mdp.horizon + 1, mdp.states)), np.empty(policy.shape)
    for h in reversed(range(mdp.horizon)):
        action_values[h] = _action_values(mdp, rewards, h, values[h + 1])
        values[h] = (policy[h] * action_values[h]).sum(axis=1)
    return values, action_values


def _action_values(mdp: TabularMDP, rewards: FloatArray, step: int, next_values: FloatArray) -> FloatArray:
    """Return Q_h (S, A) given V_{h+1} (S,)."""
    kernel = mdp.kernel
    # Not a matrix product: BLAS may round equal rows differently, depending on their place, and so break ties.
    expected = np.einsum("saj,j->sa", kernel[step % len(kernel)], next_values)
    return np.asarray(rewards[step % len(rewards)] + expected)
