"""The certificate in plain numpy: a proof for readers that do not trust the planner."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.mdp.budgets import Budgets, checked_budgets, checked_prices
from omg_cmdp.mdp.occupancy import reachable_states
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.thresholds import NEGLIGIBLE
from omg_cmdp.planning import rounding
from omg_cmdp.planning.budgets import ALLOWED
from omg_cmdp.planning.regularisers import regulariser
from omg_cmdp.validation import BoolArray, FloatArray, float_table, instance_of, one_of_shapes


def certificate(
    mdp: TabularMDP,
    policy: ArrayLike,
    values: ArrayLike,
    *,
    gamma: float | None = None,
    weights: ArrayLike | None = None,
    uncertainty: ArrayLike | None = None,
    floor: float = 0.0,
    costs: ArrayLike | None = None,
    budgets: ArrayLike | None = None,
    prices: ArrayLike | None = None,
) -> float:
    """Return an upper bound on γ·(L(q*) - L(q)), or with uncertainty on L(q*) - L(q), q the occupancy of `policy`.

    For any values V (H, S) with slacks z = V_h(s) - r_h(s, a) - Σ P_h(s'|s, a)·V_{h+1}(s') > 0, weak duality gives

        γ·(L(q*) - L(q)) <= Σ w·(x - 1 - ln x), x = γ·q·z/w,     or     L(q*) - L(q) <= Σ (√(z·q) - ½·√(u/z))²,

    over the reachable, admissible (h, s, a); with uncertainty and a floor m, and x = q·z/(½·√(u·q) + m),

        L(q*) - L(q) <= Σ ½·√(u·q)·(x - 1)²/x + m·(x - 1 - ln x),

    which also bounds the gap of the barrier with weights ½·√(u·q) + m. A tuple without a regulariser, w = 0, adds
    γ·q·z; there z may be 0, and also less, at the price of γ·|z| for the least z of each step. With budgets the bound
    is that of the rewards r - λ·c, plus λ·max(b - ⟨q, c⟩, 0), for any prices λ >= 0. What rounding may have done is
    added to it (`planning/rounding.py` says how): the bound holds in exact arithmetic. Other values without positive
    slacks prove nothing, nor does a policy that is likely in a state that counts as unreachable, or that exceeds a
    budget by more than 1e-7 of the horizon times the largest cost: the answer is then inf.

    Parameters
    ----------
    mdp : TabularMDP
        The model.
    policy : array (H, S, A)
        The plan.
    values : array (H, S)
        The dual values V, any numbers.
    gamma, weights, uncertainty, floor
        The regulariser, as `plan` takes it; weights may also be 0, as in decisions of the default rule.
    costs, budgets
        The budgets, as `plan` takes them.
    prices : array (J,), optional
        Any λ >= 0, with budgets.

    Examples
    --------
    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[0.5, 0.5]]), horizon=1)
    >>> certificate(mdp, [[[0.5, 0.5]]], [[0.7]], gamma=10.0) < 1e-14  # V = r + A/γ is optimal here
    True
    """
    instance_of("mdp", mdp, TabularMDP)
    roots, barrier, scale = regulariser(mdp, gamma, weights, uncertainty, floor, least=0.0)
    given = checked_budgets(mdp, costs, budgets)
    if (given is None) != (prices is None):
        raise ValueError(f"`prices` come with `budgets`, got {'prices' if given is None else 'budgets'} alone")
    table = float_table("values", values)
    one_of_shapes("values", table, (mdp.horizon, mdp.states))
    reached = reachable_states(mdp)
    counts = reached[:, :, None] & mdp.admissible
    plan = mdp.space.checked_policy(policy)
    occupancy, of_occupancy, left_out = _occupancy(mdp, plan, reached)
    table = table * reached
    charges: list[tuple[float, FloatArray]] = []
    size, unspent = table[:, :, None], 0.0
    if given is not None and prices is not None:
        scaled, spare = checked_prices(given, prices), _spare(mdp, plan, reached, given)
        if not (spare >= -ALLOWED * mdp.horizon).all():
            return float("inf")
        lost = rounding.of_slacks(*plan.shape) * (np.abs(given.limits) + mdp.horizon)
        charges, unspent = (
            list(zip(scaled.tolist(), given.costs, strict=True)),
            rounding.of_sum(spare.size) * scale * float(scaled @ (np.maximum(spare, 0.0) + lost)),
        )
    free = counts & (roots + barrier == 0.0)
    if charges or free.any():  # slacks may not be positive, or are not those of V, r and P alone
        after = np.abs(np.concatenate([table[1:], np.zeros((1, mdp.states))]))
        size = np.abs(size) + (mdp.transition_steps @ after[:, None, :, None])[..., 0] + mdp.reward_steps
        size = sum((price * np.abs(c) for price, c in charges), start=size)
    of_slack = rounding.of_slack(mdp.states + len(charges)) * size + rounding.TINY
    slack, counts = slacks(mdp, table, charges), counts & ~free
    unspent += scale * rounding.of_sum(free.size) * _unregularised(occupancy, of_occupancy, slack, of_slack, free)
    q, z, known, lost, u, m = (
        np.broadcast_to(each, counts.shape)[counts]
        for each in (occupancy, slack, of_occupancy, of_slack, roots, barrier)
    )
    if not (q * z > 0.0).all() or left_out > NEGLIGIBLE:
        return float("inf")
    error = 2.0 * known + lost / z + rounding.OF_TERM
    if not (error <= rounding.KNOWN_WITHIN).all():
        return float("inf")
    return rounding.of_sum(q.size) * scale * float(_terms(u, m, q, z, error).sum()) + unspent


def _spare(mdp: TabularMDP, policy: FloatArray, reached: BoolArray, given: Budgets) -> FloatArray:
    """Return b - ⟨q, c⟩ (J,) with twice the digits, q the occupancy of the policy with rows that sum to 1."""
    marginal, below = mdp.start, np.zeros(mdp.states)
    terms = [[limit] for limit in given.limits.tolist()]
    for h in range(mdp.horizon):
        total = policy[h].sum(axis=1)
        rest = np.array([math.fsum([*row, -one]) for row, one in zip(policy[h], total, strict=True)])
        share = marginal / total * reached[h]
        product, lost = _product(share, total)
        share_below = ((marginal - product) - lost + below - share * rest) / total * reached[h]
        q, q_below = _product(share[:, None], policy[h])
        q_below = q_below + share_below[:, None] * policy[h]
        for j, costs in enumerate(given.costs):
            product, lost = _product(q, costs[h % len(costs)])
            terms[j] += [*-product.ravel(), *-(lost + q_below * costs[h % len(costs)]).ravel()]
        marginal, below = np.empty(mdp.states), np.empty(mdp.states)
        for j in range(mdp.states):
            rows = mdp.transition_steps[h % len(mdp.transition_steps)][:, :, j]
            product, lost = _product(q, rows)
            summands = [*product.ravel(), *(lost + q_below * rows).ravel()]
            marginal[j] = math.fsum(summands)
            below[j] = math.fsum([*summands, -marginal[j]])
    return np.array([math.fsum(each) for each in terms])


def _occupancy(mdp: TabularMDP, policy: FloatArray, reached: BoolArray) -> tuple[FloatArray, FloatArray, float]:
    """Return the occupancy (H, S, A) over reached states, its relative error (H, 1, 1), and the most on any other."""
    occupancy, left_out, marginal = np.empty(policy.shape), 0.0, mdp.start
    for h in range(mdp.horizon):
        left_out = max(left_out, float(marginal[~reached[h]].max(initial=0.0)))
        occupancy[h] = (marginal * reached[h])[:, None] * policy[h]
        marginal = np.tensordot(occupancy[h], mdp.transition_steps[h % len(mdp.transition_steps)], 2)
    drift = np.abs(policy.sum(axis=2) - 1.0).max(axis=1)
    error = np.cumsum(rounding.of_occupancy(mdp.states, mdp.actions) + drift)
    return occupancy, error[:, None, None], left_out


def _unregularised(q: FloatArray, known: FloatArray, z: FloatArray, lost: FloatArray, free: BoolArray) -> float:
    """Return Σ q·z₊ over the tuples without a regulariser, and in every step the largest of their -z₊."""
    of_plan = np.where(free, q * (1.0 + 2.0 * known) * (np.maximum(z, 0.0) + lost), 0.0)
    of_others = np.where(free, np.maximum(lost - z, 0.0), 0.0).max(axis=(1, 2))
    return float(of_plan.sum() + of_others.sum())


def _terms(u: FloatArray, m: FloatArray, q: FloatArray, z: FloatArray, error: FloatArray) -> FloatArray:
    """Return the summands, each the largest for any x within the relative `error`."""
    product, root = q * z, 0.5 * np.sqrt(u * q)
    if not m.any():
        distance = np.abs(product - root) + error * (product + root)
        return np.asarray(distance * (distance / (product * (1.0 - error))))
    x = product / (root + m)
    excess = x - 1.0
    distance = np.abs(excess) + error * x
    of_roots = root * distance * (distance / (x * (1.0 - error)))
    logarithm = np.log1p(excess, out=np.log(x), where=x >= 0.5)  # below ½, x - 1 is rounded
    return np.asarray(of_roots + m * (excess - logarithm + error * (np.abs(excess) + error)))


def slacks(mdp: TabularMDP, values: FloatArray, charges: Sequence[tuple[float, FloatArray]] = ()) -> FloatArray:
    """Return z_h(s, a) = V_h(s) - r_h(s, a) - Σ P_h(s'|s, a)·V_{h+1}(s') for values (H, S), V_H = 0.

    `charges` are prices λ and costs c (K, S, A) whose products are added. The sum is taken with twice the digits;
    `rounding` bounds its error.
    """
    after = np.concatenate([values[1:], np.zeros((1, mdp.states))])
    shape = (mdp.horizon, mdp.states, mdp.actions)
    slack, lost = rounding.difference(np.broadcast_to(values[:, :, None], shape), mdp.reward_steps)
    for price, costs in charges:
        product, of_product = _product(np.asarray(-price), costs)
        slack, of_sum = rounding.difference(slack, product)
        lost = lost + (of_sum - of_product)
    for j in range(mdp.states):
        product, of_product = _product(mdp.transition_steps[..., j], after[:, j, None, None])
        slack, of_sum = rounding.difference(slack, product)
        lost = lost + (of_sum - of_product)
    return np.asarray(slack + lost)


def _product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a·b, rounded, and what rounding took from it (Dekker)."""
    rounded, (high, low), (other, rest) = a * b, _halves(a), _halves(b)
    return rounded, low * rest - (((rounded - high * other) - low * other) - high * rest)


def _halves(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return two numbers of half the digits whose sum is a (Veltkamp)."""
    shifted = 134217729.0 * a
    high = shifted - (shifted - a)
    return high, a - high
