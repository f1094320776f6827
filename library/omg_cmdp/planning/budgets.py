"""Plans within budgets: prices for what decisions cost, a certificate with prices, and what to say if none can be."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.budgets import MET, Budgets, best_mixture, certain_excess, least_costs
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.planning import rounding
from omg_cmdp.planning.solution import Solution, Status
from omg_cmdp.validation import FloatArray

bordered = Lazy("omg_cmdp.planning.bordered")

RAISED = 5e-10
"""By how much budgets without an interior are raised, relative to the horizon and the largest cost."""
ALLOWED = 2.0 * RAISED
"""Beyond this excess, relative to the horizon and the largest cost, `certificate` proves nothing."""
_EASIER = tuple(10.0**-k for k in range(10))
"""What is added to barriers and budgets, one after the other, where the loop lost its way."""
_NONE = np.empty(0)


def keep_within(
    mdp: TabularMDP, given: Budgets, program: tuple[Any, ...], scale: float, tolerance: float, free: Solution, start: Any
) -> Solution:
    """Return the plan within budgets, from `free`, the plan without.

    `program` are the solver's arguments up to the regulariser, `scale` turns a gap into the certificate.
    """
    horizon = mdp.horizon
    spent = given.spent(free.occupancy)
    if (spent <= given.limits + MET * horizon).all():
        return dataclasses.replace(free, prices=np.zeros(spent.size), costs=spent * given.scales)
    guess, policy = _NONE, free.policy
    if start is not None and start.prices.shape == spent.shape and start.prices.any():
        guess, policy = start.prices * given.scales, start.policy
    search = _Search(mdp, given, program, scale, tolerance, free.iterations)
    found = search.attempt(given.limits, policy, guess, MET)
    if found.status is Status.SOLVED:
        return found
    least = best_mixture(mdp, given)
    possible = least_costs(mdp, given)
    if least.worst > MET * horizon:
        if certain_excess(mdp, given, least.prices) > 0.0:
            return _infeasible(mdp, given, least.policy, least.prices / given.scales, possible, free)
    raised = least.worst > -RAISED * horizon
    policy, guess = mdp.admissible / mdp.admissible.sum(axis=1, keepdims=True) * np.ones((horizon, 1, 1)), _NONE
    for extra in (*_EASIER, 0.0):
        limits = given.limits + horizon * max(extra, RAISED if raised else 0.0)
        nearer = search.attempt(limits, policy, guess, ALLOWED if raised else MET, extra)
        if np.isfinite(nearer.policy).all() and nearer.prices.any() and np.isfinite(nearer.prices).all():
            policy, guess = nearer.policy, nearer.prices * given.scales
    found = min(found, nearer, key=lambda each: each.certificate)
    if raised and found.status is Status.SOLVED:
        return dataclasses.replace(found, status=Status.NO_INTERIOR, least_costs=possible)
    return found


@dataclasses.dataclass
class _Search:
    mdp: TabularMDP
    given: Budgets
    program: tuple[Any, ...]
    scale: float
    tolerance: float
    iterations: int

    def attempt(
        self, limits: FloatArray, policy: FloatArray, guess: FloatArray, within: float, extra: float = 0.0
    ) -> Solution:
        """Return what the loop finds for budgets `limits`, with `extra` added to the barrier."""
        *tables, roots, barrier = self.program
        aim = max(0.5 * self.tolerance / self.scale, 1e-3 * extra)
        costs = self.given.costs
        policy, values, prices, reached, iterations = bordered.solve(
            *tables, roots, barrier + extra, aim, policy, guess, costs, limits
        )
        self.iterations += iterations
        transitions, rewards, first, mask = self.mdp.raw
        occupancy, slacks, gap = bordered.certify(
            transitions, rewards, first, mask, reached, roots, barrier, policy, values, costs, self.given.limits, prices
        )
        lost = rounding.of_slacks(*policy.shape) * (np.abs(limits) + policy.shape[0])
        proven = self.scale * (gap + float(prices @ (np.maximum(slacks, 0.0) + lost)))
        if not (slacks >= -within * policy.shape[0]).all() or proven != proven:
            proven = np.inf
        return Solution(
            policy=policy,
            occupancy=occupancy,
            values=values,
            certificate=proven,
            status=Status.SOLVED if proven <= self.tolerance else Status.STALLED,
            iterations=self.iterations,
            prices=prices / self.given.scales,
            costs=(self.given.limits - slacks) * self.given.scales,
        )


def _infeasible(
    mdp: TabularMDP, given: Budgets, policy: FloatArray, ray: FloatArray, possible: FloatArray, free: Solution
) -> Solution:
    occupancy = flow(mdp, policy)[0]
    return Solution(
        policy=policy,
        occupancy=occupancy,
        values=np.zeros(free.values.shape),
        certificate=np.inf,
        status=Status.INFEASIBLE,
        iterations=free.iterations,
        prices=ray,
        costs=given.spent(occupancy) * given.scales,
        least_costs=possible,
    )
