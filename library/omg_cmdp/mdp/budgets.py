"""Budgets: what a policy may cost in expectation, the best policy within, and the proof that there is none.

A policy with occupancy q costs ⟨q, c_j⟩ and may cost b_j, j = 1..J. The best policy is a linear program over occupancy
measures. It is solved by columns: a small program mixes deterministic policies, its prices λ make the rewards r - λ·c,
and their optimal policy is the next to mix, until none is better than the mixture. Every step is exact but for the
mixing, and backward induction proves how far the mixture is from the optimum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp import validation
from omg_cmdp.mdp.bellman import best_response
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import FloatArray

MOST_BUDGETS = 8
MET = 1e-12
"""A budget counts as met if the cost exceeds it by at most this, relative to the horizon and the largest cost."""
_MOST_COLUMNS = 2000


class Budgets(NamedTuple):
    """Costs and budgets that have been checked, divided by a power of two near the largest cost."""

    costs: FloatArray
    """(J, K, S, A), K = 1 or H, zero where an action is not admissible."""
    limits: FloatArray
    """(J,)"""
    scales: FloatArray
    """(J,), what both were divided by."""

    def spent(self, occupancy: FloatArray) -> FloatArray:
        """Return ⟨q, c⟩ (J,)."""
        return np.asarray((occupancy * self.costs).sum(axis=(1, 2, 3)))

    def charged(self, occupancy: FloatArray) -> FloatArray:
        """Return ⟨q, c⟩ (J,) in the caller's units."""
        return self.spent(occupancy) * self.scales

    @property
    def given(self) -> FloatArray:
        """The budgets b (J,) in the caller's units."""
        return self.limits * self.scales


def checked_budgets(
    mdp: TabularMDP | Space, costs: ArrayLike | None, budgets: ArrayLike | Budgets | None
) -> Budgets | None:
    """Return the budgets, None if there are none; raise unless costs are (J, S, A) or (J, H, S, A), budgets (J,).

    Budgets that have been checked, which hold their costs, are returned as they are.
    """
    if isinstance(budgets, Budgets):
        return budgets
    if costs is None and budgets is None:
        return None
    if costs is None or budgets is None:
        raise ValueError(f"`costs` and `budgets` come together, got {'costs' if budgets is None else 'budgets'} alone")
    limits = validation.float_table("budgets", budgets)
    if limits.ndim != 1 or not 1 <= limits.size <= MOST_BUDGETS:
        raise ValueError(f"`budgets` must have shape (J,) with J in 1..{MOST_BUDGETS}, got {limits.shape}")
    table = validation.float_table("costs", costs)
    step = mdp.admissible.shape
    validation.one_of_shapes("costs", table, (limits.size, *step), (limits.size, mdp.horizon, *step))
    table[..., ~mdp.admissible] = 0.0
    validation.in_range("costs", table, -np.inf, np.inf)
    validation.in_range("budgets", limits, -np.inf, np.inf)
    table = table.reshape(limits.size, -1, *step)
    largest = np.abs(table).max(axis=(1, 2, 3))
    scales = np.ldexp(1.0, np.clip(np.frexp(largest)[1] - 1, -1000, 1000)) * (largest > 0.0) + (largest == 0.0)
    with np.errstate(over="ignore"):
        return Budgets(table / scales[:, None, None, None], limits / scales, scales)


class Blend(NamedTuple):
    """The best mixture of policies, and the prices that prove it."""

    policy: FloatArray
    """(H, S, A)"""
    prices: FloatArray
    """(J,), for scaled costs."""
    worst: float
    """The largest ⟨q, c_j⟩ - b_j, scaled."""


def best_mixture(mdp: TabularMDP, given: Budgets, rewards: FloatArray | None = None) -> Blend:
    """Return the best policy within the budgets; without `rewards`, or if there is none, that of least worst excess."""
    least = None if rewards is None else best_mixture(mdp, given)
    if least is not None and least.worst > MET * mdp.horizon:
        return least
    paid = np.zeros(mdp.raw[1].shape) if rewards is None else rewards
    mixed = [flow(mdp, best_response(mdp, paid)[0] if least is None else least.policy)[0]]
    while True:
        spent = np.array([given.spent(q) - given.limits for q in mixed]).T
        earned = np.array([(q * paid).sum() for q in mixed])
        shares, prices = _mix(earned, spent, None if least is None else max(least.worst, 0.0))
        policy, _ = best_response(mdp, paid - np.tensordot(prices, given.costs, 1))
        occupancy = flow(mdp, policy)[0]
        gain = (occupancy * paid).sum() - prices @ (given.spent(occupancy) - given.limits)
        size = 1.0 + np.abs(earned).max() + prices @ np.abs(spent).max(axis=1)
        if gain <= (earned - prices @ spent).max() + 1e-13 * size or len(mixed) >= _MOST_COLUMNS:
            break
        mixed.append(occupancy)
    if least is not None and least.worst < 0.0:
        # The program is solved to a tolerance of its own; a little of the first column keeps the budgets exactly.
        excess = max(float((spent @ shares).max()), 0.0)
        shares = shares * (least.worst / (least.worst - excess)) + np.eye(1, len(mixed))[0] * excess / (
            excess - least.worst
        )
    total = np.tensordot(shares, np.array(mixed), 1)
    mass = total.sum(axis=2, keepdims=True)
    policy = np.divide(total, mass, out=policy, where=mass > 0.0)
    return Blend(policy, prices, float((given.spent(flow(mdp, policy)[0]) - given.limits).max()))


def best_within(mdp: TabularMDP, given: Budgets) -> Blend:
    """Return the best policy within the budgets, or, if there is none, that of least worst excess.

    It is the optimum without budgets, to the bit, if that meets them.
    """
    policy, _ = best_response(mdp, mdp.raw[1])
    excess = given.spent(flow(mdp, policy)[0]) - given.limits
    if (excess <= MET * mdp.horizon).all():
        return Blend(policy, np.zeros(excess.size), float(excess.max()))
    return best_mixture(mdp, given, mdp.reward_steps)


def optimum_within(mdp: TabularMDP, costs: ArrayLike | None, budgets: ArrayLike | None) -> FloatArray:
    """Return the best policy (H, S, A) within the budgets; raise if there is none."""
    given = checked_budgets(mdp, costs, budgets)
    assert given is not None
    best = best_within(mdp, given)
    if best.worst > MET * mdp.horizon:
        possible = least_costs(mdp, given)
        raise ValueError(f"no policy meets the `budgets`; alone, each cost can be as low as {possible.tolist()}")
    return best.policy


def least_costs(mdp: TabularMDP, given: Budgets) -> FloatArray:
    """Return the least that each cost can be, alone, (J,), in the caller's units."""
    return np.array([-(mdp.start @ best_response(mdp, -costs)[1][0]) for costs in given.costs]) * given.scales


def _mix(earned: FloatArray, spent: FloatArray, allowed: float | None) -> tuple[FloatArray, FloatArray]:
    """Return shares (n,) and prices (J,) of the best mixture of n columns, or of that with the least worst excess."""
    budgets, count = spent.shape
    if budgets == 1:
        return _mix_two(earned, spent[0], allowed)
    from scipy.optimize import linprog  # not before it is needed: importing it takes longer than all of this package

    solved = linprog(
        np.append(-earned, 1.0),
        A_ub=np.column_stack([spent, -np.ones(budgets)]),
        b_ub=np.zeros(budgets),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * count + [(None, None) if allowed is None else (allowed, allowed)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    shares = np.maximum(solved.x[:-1], 0.0)
    return shares / shares.sum(), np.maximum(-solved.ineqlin.marginals, 0.0)


def _mix_two(earned: FloatArray, spent: FloatArray, allowed: float | None) -> tuple[FloatArray, FloatArray]:
    """Return what `_mix` does for one budget: a share of one column that keeps it, and of one that does not."""
    if allowed is None:
        return np.eye(1, len(spent), int(spent.argmin()))[0], np.ones(1)
    below, above = np.flatnonzero(spent <= allowed), np.flatnonzero(spent > allowed)
    first = below[earned[below].argmax()]
    above = above[earned[above] > earned[first]]
    shares = np.zeros(len(spent))
    if not above.size:
        shares[first] = 1.0
        return shares, np.zeros(1)
    width = spent[above] - spent[below][:, None]
    gain = earned[above] - earned[below][:, None]
    worth = earned[below][:, None] + gain * ((allowed - spent[below])[:, None] / width)
    i, j = np.unravel_index(worth.argmax(), worth.shape)
    shares[above[j]] = (allowed - spent[below[i]]) / width[i, j]
    shares[below[i]] = 1.0 - shares[above[j]]
    return shares, np.maximum(gain[i, j] / width[i, j], 0.0)[None]


def least_excess(mdp: TabularMDP, costs: ArrayLike, budgets: ArrayLike, prices: ArrayLike) -> float:
    """Return a lower bound on Σ λ_j·(⟨q, c_j⟩ - b_j) over all policies; if it is positive, none meets the budgets.

    The bound is the optimal value for the rewards -λ·c, by backward induction, less what rounding may have added.

    Parameters
    ----------
    mdp : TabularMDP
        The model.
    costs : array (J, S, A) or (J, H, S, A)
        The costs c.
    budgets : array (J,)
        The budgets b.
    prices : array (J,)
        Any λ >= 0, such as the `prices` of a plan that is `INFEASIBLE`.

    Returns
    -------
    float
        The bound.

    Examples
    --------
    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=[[0.0, 1.0]], horizon=3)
    >>> round(least_excess(mdp, costs=[[[0.5, 1.0]]], budgets=[1.2], prices=[1.0]), 6)  # every policy costs 1.5
    0.3
    """
    validation.instance_of("mdp", mdp, TabularMDP)
    given = checked_budgets(mdp, costs, budgets)
    assert given is not None
    return certain_excess(mdp, given, checked_prices(given, prices))


def certain_excess(mdp: TabularMDP, given: Budgets, scaled: FloatArray) -> float:
    """Return `least_excess` for scaled prices."""
    _, values = best_response(mdp, -np.tensordot(scaled, given.costs, 1))
    size = scaled @ (mdp.horizon * np.abs(given.costs).max(axis=(1, 2, 3)) + np.abs(given.limits))
    rounded = (mdp.horizon + 2) * (mdp.states + given.limits.size + 4) * 2.0**-52 * size
    return float(-(mdp.start @ values[0]) - scaled @ given.limits - rounded)


def checked_prices(given: Budgets, prices: ArrayLike) -> FloatArray:
    """Return the prices (J,) of scaled costs; raise unless they are finite and at least 0."""
    table = validation.float_table("prices", prices)
    validation.one_of_shapes("prices", table, given.limits.shape)
    validation.in_range("prices", table, 0.0, np.inf)
    return np.asarray(table * given.scales)
