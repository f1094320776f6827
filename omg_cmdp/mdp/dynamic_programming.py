"""Backward induction: the best policy, and the exact value of any policy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import FloatArray, policy_table


def optimal_policy(mdp: TabularMDP) -> tuple[FloatArray, float]:
    """Return a deterministic optimal policy (H, S, A), one-hot, and its value; ties go to the lowest action.

    Q_h(s, a) = r_h(s, a) + Σ_s' P_h(s'|s, a)·V_{h+1}(s'),  V_h(s) = max_a Q_h(s, a) over admissible a,  V_H = 0.

    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[0.25, 0.75]]), horizon=4)
    >>> optimal_policy(mdp)[1]
    3.0
    """
    policy = np.zeros((mdp.horizon, mdp.states, mdp.actions))
    every_state = np.arange(mdp.states)
    values = np.zeros(mdp.states)
    for h in reversed(range(mdp.horizon)):
        action_values = np.where(mdp.admissible, _action_values(mdp, h, values), -np.inf)
        best = action_values.argmax(axis=1)
        policy[h, every_state, best] = 1.0
        values = action_values[every_state, best]
    return policy, float(mdp.start @ values)


def policy_value(mdp: TabularMDP, policy: ArrayLike) -> float:
    """Return the exact expected total reward of the (stochastic) `policy` (H, S, A).

    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[0.0, 1.0]]), horizon=4)
    >>> policy_value(mdp, np.full((4, 1, 2), 0.5))
    2.0
    """
    table = policy_table(policy, (mdp.horizon, mdp.states, mdp.actions), mdp.admissible)
    values = np.zeros(mdp.states)
    for h in reversed(range(mdp.horizon)):
        values = (table[h] * _action_values(mdp, h, values)).sum(axis=1)
    return float(mdp.start @ values)


def _action_values(mdp: TabularMDP, step: int, next_values: FloatArray) -> FloatArray:
    """Return Q_h (S, A) given V_{h+1} (S,)."""
    kernel, rewards = mdp.kernel, mdp.reward_steps
    # Not a matrix product: BLAS rounds equal rows differently by their place in the table, and would break ties.
    expected = np.einsum("saj,j->sa", kernel[step % len(kernel)], next_values)
    return np.asarray(rewards[step % len(rewards)] + expected)
