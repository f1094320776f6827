"""Occupancy measures q_h(s, a) = Pr(s_h = s, a_h = a), and which states can be reached at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.mdp.compiled import LOOPS_UP_TO, kernels
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import BoolArray, FloatArray, policy_table

UNREACHABLE_BELOW = 1e-30
"""A state whose probability at a step, under the uniform policy, is below this counts as unreachable there."""

NEGLIGIBLE = 1e-20
"""A plan that puts more than this on a state that counts as unreachable has nothing proven."""


def occupancy_measure(mdp: TabularMDP, policy: ArrayLike) -> FloatArray:
    """Return the occupancy measure (H, S, A) of `policy`, by the forward recursion

    q_h(s, a) = d_h(s)·π_h(a|s),  d_0 = start,  d_{h+1}(s') = Σ_{s,a} q_h(s, a)·P_h(s'|s, a).

    >>> mdp = TabularMDP(transitions=np.eye(2)[None].repeat(2, 0), rewards=np.zeros((2, 2)), horizon=2)
    >>> occupancy_measure(mdp, np.full((2, 2, 2), 0.5)).sum(axis=2)  # action a leads to state a
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    table = policy_table(policy, (mdp.horizon, mdp.states, mdp.actions), mdp.admissible)
    return flow(mdp, table)


def flow(mdp: TabularMDP, policy: FloatArray) -> FloatArray:
    """Return the occupancy measure (H, S, A) of a policy that is known to be valid."""
    occupancy = np.empty(policy.shape)
    if mdp.states <= LOOPS_UP_TO:
        kernel, _, start, _ = mdp.raw
        kernels().flow(kernel, start, np.ascontiguousarray(policy), occupancy)
        return occupancy
    kernel = mdp.kernel.reshape(-1, mdp.states * mdp.actions, mdp.states)
    marginal = mdp.start
    for h in range(mdp.horizon):
        np.multiply(marginal[:, None], policy[h], out=occupancy[h])
        marginal = occupancy[h].reshape(-1) @ kernel[h % len(kernel)]
    return occupancy


def reachable_states(mdp: TabularMDP) -> BoolArray:
    """Return the mask (H, S) of states that the uniform policy reaches with probability at least 1e-30.

    The threshold separates a small probability from the underflow of a product of small ones. What passes through a
    state below it does not count further on.
    """
    mean_kernel = mdp.kernel.sum(axis=2) / mdp.admissible.sum(axis=1, keepdims=True)
    reached = np.empty((mdp.horizon, mdp.states), dtype=np.bool_)
    marginal = mdp.start
    for h in range(mdp.horizon):
        reached[h] = marginal >= UNREACHABLE_BELOW
        marginal = (marginal * reached[h]) @ mean_kernel[h % len(mean_kernel)]
    return reached
