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

bordered = Lazy("omg_cmdp.planning.compiled.bordered")
certifier = Lazy("omg_cmdp.planning.compiled.certify")
hard = Lazy("omg_cmdp.planning.solver.hard")

RAISED = 5e-8
"""By how much budgets without an interior are raised, relative to the horizon and the largest cost."""
ALLOWED = 2.0 * RAISED
"""Beyond this excess, relative to the horizon and the largest cost, `certificate` proves nothing."""
_EASIER = tuple(10.0**-k for k in range(12))
"""What is added to barriers and budgets, one after the other, where the loop lost its way."""


def keep_within(
    mdp: TabularMDP,
    given: Budgets,
    program: tuple[Any, ...],
    scale: float,
    tolerance: float,
    free: Solution,
    start: Any,
) -> Solution:
    """Return the plan within budgets, from `free`, the plan without.

    `program` are the solver's arguments up to the regulariser, `scale` turns a gap into the certificate.
    """
    horizon = mdp.horizon
    spent = given.spent(free.occupancy)
    if given.are_met(free.occupancy):
        return dataclasses.replace(free, prices=np.zeros(spent.size), costs=spent * given.scales)
    earlier = free
    if start is not None and start.prices.shape == spent.shape and start.values.shape == free.values.shape:
        earlier = start
    search = _Search(mdp, given, program, scale, tolerance, free.iterations)
    found = search.attempt(given.limits, earlier, MET)
    if found.status is Status.SOLVED:
        return found
    least = best_mixture(mdp, given)
    possible = least_costs(mdp, given)
    if least.worst > MET * horizon and certain_excess(mdp, given, least.prices) > 0.0:
        return _infeasible(mdp, given, least.policy, least.prices / given.scales, possible, free)
    raised = least.worst > -RAISED * horizon
    *tables, roots, barrier = program
    eased = hard.solve_hard(*tables, roots, barrier + _EASIER[0], 1e-3, np.empty((0, 0, 0)))
    nearer = dataclasses.replace(free, policy=eased[0], values=eased[1])
    for extra in (*(each for each in _EASIER if raised or each > 0.1 * barrier.min()), 0.0):
        limits = given.limits + horizon * max(2.0 * extra, RAISED if raised else 0.0)
        nearer = search.attempt(limits, nearer, ALLOWED if raised else MET, extra)
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

    def attempt(self, limits: FloatArray, start: Solution, within: float, extra: float = 0.0) -> Solution:
        """Return what the loop finds for budgets `limits`, with `extra` added to the barrier."""
        *tables, roots, barrier = self.program
        aim = max(0.5 * self.tolerance / self.scale, 1e-3 * extra)
        costs = self.given.costs
        guess = start.prices * self.given.scales if start.prices.any() else start.prices[:0]
        policy, values, prices, reached, iterations = bordered.solve(
            *tables, roots, barrier + extra, aim, start.policy, start.values, guess, costs, limits
        )
        self.iterations += iterations
        transitions, rewards, first, mask = self.mdp.raw
        occupancy, slacks, gap = certifier.certify(
            transitions, rewards, first, mask, reached, roots, barrier, policy, values, costs, self.given.limits, prices
        )
        lost = rounding.of_slacks(*policy.shape) * (np.abs(limits) + policy.shape[0])
        unspent = rounding.of_sum(slacks.size) * float(prices @ (np.maximum(slacks, 0.0) + lost))
        proven = self.scale * (gap + unspent)
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
