"""Occupancy measures q_h(s, a) = Pr(s_h = s, a_h = a), reachable states, and the uniform policy that reaches them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.thresholds import UNREACHABLE_BELOW
from omg_cmdp.validation import BoolArray, FloatArray, instance_of

compiled = Lazy("omg_cmdp.mdp.compiled")


def occupancy_measure(mdp: TabularMDP, policy: ArrayLike) -> FloatArray:
    """Return the occupancy measure (H, S, A) of `policy`, by the forward recursion

    q_h(s, a) = d_h(s)·π_h(a|s),  d_0 = start,  d_{h+1}(s') = Σ_{s,a} q_h(s, a)·P_h(s'|s, a).

    Parameters
    ----------
    mdp : TabularMDP
        The MDP.
    policy : array (H, S, A)
        Distributions over admissible actions.

    Examples
    --------
    >>> mdp = TabularMDP(transitions=np.eye(2)[None].repeat(2, 0), rewards=np.zeros((2, 2)), horizon=2)
    >>> occupancy_measure(mdp, np.full((2, 2, 2), 0.5)).sum(axis=2)  # action a leads to state a
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    instance_of("mdp", mdp, TabularMDP)
    return flow(mdp, mdp.space.checked_policy(policy))[0]


def flow(mdp: TabularMDP, policy: FloatArray) -> tuple[FloatArray, float]:
    """Return the occupancy measure (H, S, A) and the value of a valid policy."""
    transitions, rewards, start, _ = mdp.raw
    table, occupancy = np.ascontiguousarray(policy, dtype=np.float64), np.empty(policy.shape)
    return occupancy, compiled.flow(transitions, rewards, start, table, occupancy)


def reachable_states(mdp: TabularMDP) -> BoolArray:
    """Return the mask (H, S) of states that the uniform policy reaches with probability at least 1e-30.

    The threshold tells a small probability from the underflow of a product. What passes through a state below it counts
    for nothing afterwards.

    Parameters
    ----------
    mdp : TabularMDP
        The MDP.

    Examples
    --------
    >>> reachable_states(TabularMDP(transitions=np.eye(2)[:, None], rewards=np.zeros((2, 1)), horizon=2))
    array([[ True, False],
           [ True, False]])
    """
    instance_of("mdp", mdp, TabularMDP)
    mean_transitions = mdp.transition_steps.sum(axis=2) / mdp.admissible.sum(axis=1, keepdims=True)
    reached = np.empty((mdp.horizon, mdp.states), dtype=np.bool_)
    marginal = mdp.start
    for h in range(mdp.horizon):
        reached[h] = marginal >= UNREACHABLE_BELOW
        marginal = (marginal * reached[h]) @ mean_transitions[h % len(mean_transitions)]
    return reached


def uniform_policy(space: Space) -> FloatArray:
    """Return (H, S, A): in every state the admissible actions with equal probability."""
    rows = space.admissible / space.admissible.sum(axis=1, keepdims=True)
    return np.tile(rows, (space.horizon, 1, 1))
