"""Plans within budgets: prices for what decisions cost, a certificate with prices, and what to say if none can be."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.budgets import MET, Blend, Budgets, best_mixture, certain_excess, least_costs
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.planning.solution import Solution, Status, as_solution
from omg_cmdp.validation import FloatArray

bordered = Lazy("omg_cmdp.planning.compiled.bordered")
hard = Lazy("omg_cmdp.planning.solver.hard")

RAISED = 5e-8
"""By how much budgets without an interior are raised, relative to the horizon and the largest cost."""
ALLOWED = 2.0 * RAISED
"""Beyond this excess, relative to the horizon and the largest cost, `certificate` proves nothing."""
NEAR = 1e-6
"""A budget counts as binding if less than this is left of it, relative to the horizon and the largest cost."""
_EASIER = tuple(10.0**-k for k in range(12))
"""What is added to barriers and budgets, one after the other, where the loop lost its way."""


def plan_within(
    mdp: TabularMDP,
    given: Budgets,
    program: tuple[Any, ...],
    scale: float,
    tolerance: float,
    earlier: FloatArray,
    start: Solution | None,
) -> Solution:
    """Return the plan within budgets.

    `program` are the solver's arguments up to the regulariser, `scale` turns a gap into the certificate. `earlier` is
    the policy of `start`, or empty.
    """
    horizon = mdp.horizon
    search = _Search(given, program, scale, tolerance)
    if start is not None and start.prices.shape == given.limits.shape and start.prices.any():
        found = search.resume(start.policy, start.prices * given.scales)
        # If no budget binds, the plan is that without budgets.
        if found.status is Status.SOLVED and (found.costs > given.given - NEAR * horizon * given.scales).any():
            return found
    found = search.begin(earlier)
    if not found.prices.size:
        spent = given.spent(found.occupancy)
        if (spent <= given.limits + MET * horizon).all():
            return dataclasses.replace(found, prices=np.zeros(spent.size), costs=spent * given.scales)
        found = search.resume(found.policy, found.prices)
    if found.status is Status.SOLVED:
        return found
    least = best_mixture(mdp, given)
    possible = least_costs(mdp, given)
    if least.worst > MET * horizon and certain_excess(mdp, given, least.prices) > 0.0:
        return _infeasible(mdp, given, least, possible, search.iterations)
    raised = least.worst > -RAISED * horizon
    *tables, roots, barrier = program
    policy, *_ = hard.solve_hard(*tables, roots, barrier + _EASIER[0], 1e-3, np.empty((0, 0, 0)))
    prices = np.empty(0)
    for extra in (*(each for each in _EASIER if raised or each > 0.1 * barrier.min()), 0.0):
        more = horizon * max(2.0 * extra, RAISED if raised else 0.0)
        nearer = search.resume(policy, prices, ALLOWED if raised else MET, extra, more)
        if nearer.status is Status.SOLVED:
            break
        policy, prices = nearer.policy, nearer.prices * given.scales
    found = min(found, nearer, key=lambda each: each.certificate)
    if raised and found.status is Status.SOLVED:
        return dataclasses.replace(found, status=Status.NO_INTERIOR, least_costs=possible)
    return found


@dataclasses.dataclass
class _Search:
    given: Budgets
    program: tuple[Any, ...]
    scale: float
    tolerance: float
    iterations: int = 0

    def begin(self, earlier: FloatArray) -> Solution:
        """Return the plan without budgets, without prices, if it exceeds none clearly; else the plan within."""
        aim, given = 0.5 * self.tolerance / self.scale, self.given
        *found, prices, slacks = bordered.solve(*self.program, aim, earlier, given.costs, given.limits, MET)
        if found[-1] == bordered.HARD:
            found = list(hard.solve_hard(*self.program, aim, earlier))
        return self._solution(found, prices, slacks)

    def resume(
        self, policy: FloatArray, prices: FloatArray, allowed: float = MET, easier: float = 0.0, raised: float = 0.0
    ) -> Solution:
        """Return what the loop finds from a plan and its prices, with more added to the barrier and to the budgets."""
        aim, given = max(0.5 * self.tolerance / self.scale, 1e-3 * easier), self.given
        *found, prices, slacks = bordered.resume(
            *self.program, aim, policy, prices, given.costs, given.limits, allowed, easier, raised
        )
        return self._solution(found, prices, slacks)

    def _solution(self, found: list[Any], prices: FloatArray, slacks: FloatArray) -> Solution:
        self.iterations += found[-1]
        found[-1] = self.iterations
        if not prices.size:
            return as_solution(found, self.scale, self.tolerance)
        costs = (self.given.limits - slacks) * self.given.scales
        return as_solution(found, self.scale, self.tolerance, prices / self.given.scales, costs)


def _infeasible(mdp: TabularMDP, given: Budgets, least: Blend, possible: FloatArray, iterations: int) -> Solution:
    occupancy = flow(mdp, least.policy)[0]
    return Solution(
        policy=least.policy,
        occupancy=occupancy,
        values=np.zeros(occupancy.shape[:2]),
        certificate=np.inf,
        status=Status.INFEASIBLE,
        iterations=iterations,
        prices=least.prices / given.scales,
        costs=given.spent(occupancy) * given.scales,
        least_costs=possible,
    )
