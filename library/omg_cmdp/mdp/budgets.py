"""Budgets: what a policy may cost in expectation, the best policy within, and the proof that there is none.

A policy with occupancy q costs ⟨q, c_j⟩ and may cost b_j, j = 1..J. The best policy is a linear program over occupancy
measures. It is solved by columns: the revised simplex method mixes at most J + 1 deterministic policies, its prices λ
make the rewards r - λ·c, and their optimal policy is the next to enter, until none is better than the mixture. Backward
induction finds that policy, and proves how far the mixture is from the optimum.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

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

    def are_met(self, occupancy: FloatArray) -> bool:
        """Return whether ⟨q, c_j⟩ <= b_j for all j, up to rounding."""
        return bool((self.spent(occupancy) <= self.limits + MET * len(occupancy)).all())

    def charged(self, occupancy: FloatArray) -> FloatArray:
        """Return ⟨q, c⟩ (J,) in the caller's units."""
        return self.spent(occupancy) * self.scales

    def charges(self, prices: FloatArray) -> FloatArray | None:
        """Return λ·c (K, S, A) for prices λ (J,) in the caller's units; None if all are 0."""
        return np.tensordot(prices * self.scales, self.costs, 1) if prices.any() else None

    def means(self, states: NDArray[np.int64], actions: NDArray[np.int64]) -> FloatArray:
        """Return the mean costs (J, L) of the steps of an episode, in the caller's units."""
        steps = np.arange(len(actions)) % self.costs.shape[1]
        return np.asarray(self.costs[:, steps, states[: len(actions)], actions] * self.scales[:, None])

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
    largest = np.abs(table).reshape(limits.size, -1).max(axis=1)
    if not (largest.max() < np.inf and np.abs(limits).max() < np.inf):
        validation.in_range("costs", table, -np.inf, np.inf)
        validation.in_range("budgets", limits, -np.inf, np.inf)
    table = table.reshape(limits.size, -1, *step)
    scales = np.array([_power_of_two(size) for size in largest.tolist()])
    with np.errstate(over="ignore"):
        return Budgets(table / scales[:, None, None, None], limits / scales, scales)


def _power_of_two(size: float) -> float:
    """Return the largest power of two that is at most `size`, in the range where its reciprocal is finite; 1 for 0."""
    return math.ldexp(1.0, min(max(math.frexp(size)[1] - 1, -1000), 1000)) if size > 0.0 else 1.0


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
    first = flow(mdp, best_response(mdp, paid)[0] if least is None else least.policy)[0]
    basis = _Basis(first, given, paid, None if least is None else max(least.worst, 0.0))
    for _ in range(_MOST_COLUMNS):
        prices = basis.prices()
        policy, _ = best_response(mdp, paid - np.tensordot(prices, given.costs, 1))
        if not basis.enter(flow(mdp, policy)[0], prices):
            break
    total = basis.mixed()
    if least is not None and least.worst < 0.0:
        # Rounding may have passed a budget by a little; a little of the first column keeps them exactly.
        excess = max(float((given.spent(total) - given.limits).max()), 0.0)
        total = (least.worst * total - excess * first) / (least.worst - excess)
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


class _Basis:
    """J + 1 columns of the program max ⟨x, e⟩ over mixtures x with Σ x·g <= allowed, by the revised simplex method.

    A column is a policy, with what it earns, e, and its excess g (J,) over the budgets; a slack of a budget; or, if
    nothing is `allowed`, the worst excess z, which is minimised and never leaves.
    """

    def __init__(self, first: FloatArray, given: Budgets, paid: FloatArray, allowed: float | None) -> None:
        self._given, self._paid, count = given, paid, given.limits.size
        entered, earned = self._column(first)
        self._table, self._gains = np.eye(count + 1), np.zeros(count + 1)
        self._table[:, -1], self._gains[-1] = entered, earned
        self._occupancies: list[FloatArray | None] = [*([None] * count), first]
        self._right = np.append(np.full(count, allowed or 0.0), 1.0)
        self._stays = -1
        self._size = 1.0
        if allowed is None:
            self._stays = int(entered[:-1].argmax())
            self._table[:, self._stays] = np.append(-np.ones(count), 0.0)
            self._gains[self._stays] = -1.0
        self._inverse = np.linalg.inv(self._table)

    def _column(self, occupancy: FloatArray) -> tuple[FloatArray, float]:
        return np.append(self._given.spent(occupancy) - self._given.limits, 1.0), float((occupancy * self._paid).sum())

    def prices(self) -> FloatArray:
        """Return the prices (J,) once no slack is worth entering."""
        while True:
            duals = self._gains @ self._inverse
            cheapest = int(duals[:-1].argmin())
            if duals[cheapest] >= -1e-13 * (1.0 + np.abs(duals).max()):
                return np.maximum(duals[:-1], 0.0)
            self._pivot(np.eye(len(duals))[cheapest], 0.0, None)

    def enter(self, occupancy: FloatArray, prices: FloatArray) -> bool:
        """Let a policy enter, and return True; False if, at these prices, it is no better than those that are mixed."""
        column, earned = self._column(occupancy)
        at = np.append(-prices, 0.0)
        policies = [place for place, each in enumerate(self._occupancies) if each is not None]
        own = (self._gains + at @ self._table)[policies]
        self._size = max(self._size, 1.0 + abs(earned) + float(prices @ np.abs(column[:-1])))
        if earned + at @ column <= own.max() + 1e-13 * self._size:
            return False
        self._pivot(column, earned, occupancy)
        return True

    def _pivot(self, column: FloatArray, earned: float, occupancy: FloatArray | None) -> None:
        """Let a column enter in the place of the first that runs out; ties by the lexicographic rule: no cycles."""
        direction = self._inverse @ column
        rows = np.column_stack([self._inverse @ self._right, self._inverse])
        leaving = min(
            (place for place in np.flatnonzero(direction > 1e-12 * np.abs(direction).max()) if place != self._stays),
            key=lambda place: tuple(rows[place] / direction[place]),
        )
        self._table[:, leaving], self._gains[leaving], self._occupancies[leaving] = column, earned, occupancy
        self._inverse = np.linalg.inv(self._table)

    def mixed(self) -> FloatArray:
        """Return the occupancy (H, S, A) of the mixture."""
        shares = np.maximum(self._inverse @ self._right, 0.0)
        mixed = [(share, each) for share, each in zip(shares, self._occupancies, strict=True) if each is not None]
        return np.asarray(sum(share * each for share, each in mixed) / sum(share for share, _ in mixed))


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
