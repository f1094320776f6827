"""Backward induction: optimal policies, and exact values of any policy."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import FloatArray, instance_of

compiled = Lazy("omg_cmdp.mdp.compiled")


class ValueBounds(NamedTuple):
    """Lower and upper bounds on values, step by step."""

    lows: FloatArray
    """(H + 1,), 0 at the end."""
    highs: FloatArray
    """(H + 1,), 0 at the end."""

    @property
    def span(self) -> float:
        """The most that two values of the same step can differ by: the largest highs[h] - lows[h]."""
        return float((self.highs - self.lows).max())


def value_bounds(horizon: int, returns: tuple[float, float] = (0.0, math.inf)) -> ValueBounds:
    """Return what can be earned from step h on, if rewards lie in [0, 1] and whole episodes earn `returns`.

    Before step h an episode has earned something in [0, h], and from there on it earns something in [0, H - h]. So for
    (least, most) = `returns`, and every state that can be reached at step h, whatever is played,

        max(0, least - h) <= V_h(s) <= min(H - h, most).

    >>> value_bounds(4, (2.0, 3.0))
    ValueBounds(lows=array([2., 1., 0., 0., 0.]), highs=array([3., 3., 2., 1., 0.]))
    """
    steps, (least, most) = np.arange(horizon + 1.0), returns
    return ValueBounds(np.maximum(least - steps, 0.0), np.minimum(horizon - steps, most))


def scaled_returns(
    return_range: tuple[float, float] | None, horizon: int, reward_range: tuple[float, float]
) -> tuple[float, float]:
    """Return (least, most), what an episode can earn when rewards are scaled from `reward_range` to [0, 1].

    Every reward r becomes (r - low)/(high - low), so a return R becomes (R - H·low)/(high - low). None stands for H
    times the range of rewards.

    >>> scaled_returns((-13.0, 0.0), 20, (-1.0, 0.0)), scaled_returns(None, 20, (-1.0, 0.0))
    ((7.0, 20.0), (0.0, 20.0))
    """
    if return_range is None:
        return 0.0, float(horizon)
    low, high = reward_range
    least, most = (min((bound - horizon * low) / (high - low), float(horizon)) for bound in return_range)
    return least, most


def optimal_policy(
    mdp: TabularMDP,
    *,
    bounds: ValueBounds | None = None,
    costs: ArrayLike | None = None,
    budgets: ArrayLike | None = None,
) -> tuple[FloatArray, float]:
    """Return a deterministic optimal policy (H, S, A), one-hot, and its value; ties go to the lowest action.

    Q_h(s, a) = r_h(s, a) + Σ_s' P_h(s'|s, a)·V_{h+1}(s'),  V_h(s) = max_a Q_h(s, a) over admissible a,  V_H = 0.

    With budgets it is the best policy whose expected costs ⟨q, c_j⟩ are at most b_j, from a linear program; it may have
    to be random.

    Parameters
    ----------
    mdp : TabularMDP
        The MDP.
    bounds : ValueBounds, optional
        Every V_h is moved into them: the policy then is optimal for an agent that knows them.
    costs : array (J, S, A) or (J, H, S, A), optional
        What decisions cost, any numbers; without `bounds`.
    budgets : array (J,), optional
        What an episode may cost in expectation. If no policy costs so little, the error says what is possible.

    Examples
    --------
    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[0.25, 0.75]]), horizon=4)
    >>> optimal_policy(mdp)[1], optimal_policy(mdp, bounds=value_bounds(4, (0.0, 2.0)))[1]
    (3.0, 2.0)
    >>> round(optimal_policy(mdp, costs=[[[0.0, 1.0]]], budgets=[2.0])[1], 9)  # the better action, half of the time
    2.0
    """
    instance_of("mdp", mdp, TabularMDP)
    if costs is not None or budgets is not None:
        from omg_cmdp.mdp.budgets import optimum_within  # which builds on this module

        if bounds is not None:
            raise ValueError("`bounds` and `budgets` exclude each other; give one of them")
        policy = optimum_within(mdp, costs, budgets)
        return policy, policy_value(mdp, policy)
    if bounds is not None:
        instance_of("bounds", bounds, ValueBounds)
        if bounds.lows.shape != (mdp.horizon + 1,) or bounds.highs.shape != (mdp.horizon + 1,):
            got = f"{bounds.lows.shape} and {bounds.highs.shape}"
            raise ValueError(f"`bounds` must have lows and highs of shape ({mdp.horizon + 1},), got {got}")
    policy, values = best_response(mdp, mdp.raw[1], bounds=bounds)
    return policy, float(mdp.space.start @ values[0])


def best_response(
    mdp: TabularMDP, rewards: FloatArray, *, bounds: ValueBounds | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return an optimal policy of `mdp` for other `rewards` (K, S, A), K = 1 or H, and its values (H + 1, S).

    The rewards may be any numbers, such as bonuses. Values are clipped to `bounds`, if there are any.
    """
    space = mdp.space
    policy = np.zeros((space.horizon, space.states, space.actions))
    values = np.zeros((space.horizon + 1, space.states))
    transitions, _, _, admissible = mdp.raw
    lows, highs = bounds or _no_bounds(space.horizon)
    own = np.array(rewards, order="C")  # read-only rewards would be compiled for once more
    compiled.best_response(transitions, own, admissible, lows, highs, policy, values)
    return policy, values


def value_ranges(mdp: TabularMDP, *, bounds: ValueBounds | None = None) -> FloatArray:
    """Return by how much V_{h+1}, clipped to `bounds`, can differ between two states, under any two policies, (H,).

    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[0.25, 0.75]]), horizon=3)
    >>> value_ranges(mdp)
    array([1. , 0.5, 0. ])
    """
    rewards, (lows, highs) = mdp.raw[1], bounds or _no_bounds(mdp.horizon)
    _, most = best_response(mdp, rewards, bounds=ValueBounds(lows, highs))
    _, least = best_response(mdp, -rewards, bounds=ValueBounds(-highs, -lows))  # the worst policy, with signs changed
    return np.asarray(most[1:].max(axis=1) + least[1:].max(axis=1))


@functools.cache
def _no_bounds(horizon: int) -> ValueBounds:
    return ValueBounds(np.full(horizon + 1, -np.inf), np.full(horizon + 1, np.inf))


def policy_value(mdp: TabularMDP, policy: ArrayLike) -> float:
    """Return the exact expected total reward of a policy.

    Parameters
    ----------
    mdp : TabularMDP
        The MDP.
    policy : array (H, S, A)
        Distributions over admissible actions.

    Examples
    --------
    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[0.0, 1.0]]), horizon=4)
    >>> policy_value(mdp, np.full((4, 1, 2), 0.5))
    2.0
    """
    instance_of("mdp", mdp, TabularMDP)
    values, _ = policy_values(mdp, mdp.space.checked_policy(policy), mdp.reward_steps)
    return float(mdp.start @ values[0])


def policy_values(mdp: TabularMDP, policy: FloatArray, rewards: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return V (H + 1, S) and Q (H, S, A) of a valid `policy` in `mdp`, for any `rewards` (K, S, A), K = 1 or H.

    Q_h(s, a) = r_h(s, a) + Σ_s' P_h(s'|s, a)·V_{h+1}(s'),  V_h(s) = Σ_a π_h(a|s)·Q_h(s, a),  V_H = 0.
    """
    values, action_values = np.zeros((mdp.horizon + 1, mdp.states)), np.empty(policy.shape)
    transitions = mdp.transition_steps
    for h in reversed(range(mdp.horizon)):
        # Not a matrix product: BLAS may round equal rows differently, depending on their place, and so break ties.
        expected = np.einsum("saj,j->sa", transitions[h % len(transitions)], values[h + 1])
        action_values[h] = rewards[h % len(rewards)] + expected
        values[h] = (policy[h] * action_values[h]).sum(axis=1)
    return values, action_values
