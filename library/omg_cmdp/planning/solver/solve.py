"""The compiled entry point of the planner: tables in, policy and values out.

What is rare has an entry point of its own, `hard`, which is compiled when it is first needed: every level of calls
makes the compiler link and optimise all that is below it once more.
"""

from __future__ import annotations

import numpy as np

from omg_cmdp.jit import compiled, inner
from omg_cmdp.planning.solver.border import no_budgets
from omg_cmdp.planning.solver.certify import certified
from omg_cmdp.planning.solver.interior_point import LOST, STALLED, interior_point, new_newton, product_floor
from omg_cmdp.planning.solver.program import new_pair
from omg_cmdp.planning.solver.set_up import expand, keep_slacks, set_up
from omg_cmdp.planning.solver.starts import alternate, cold_start, warm_start

LIMIT = 60
"""Iterations before the loop is given up for the safety net; 99 in 100 problems take fewer than 20."""
HARD = -1
"""In the place of the number of iterations: the problem is left to `solve_hard`."""


@inner
def optimise(program, pair, tolerance, earlier):
    """Set `pair` to the optimum; return the iterations, or `HARD`."""
    work, newton, border = new_pair(program), new_newton(program), no_budgets(program)
    floor = product_floor(program, tolerance)
    theta = cold_start(program, floor, pair)
    warm = warm_start(program, floor, earlier, pair)
    status, iterations, settled = LOST, 0, False
    if warm or theta == 0.0:
        settled = alternate(program, floor, pair, work)
        status, iterations = interior_point(program, border, pair, tolerance, LIMIT, newton, work)
    return HARD if status == LOST or (status == STALLED and (warm or settled)) else iterations


@inner
def finish(program, pair, iterations, dense, rewards, start, admissible, roots, barrier):
    """Return what `solve` returns."""
    if iterations == HARD:
        nothing = np.empty((0, 0, 0))
        return nothing, pair.values, nothing, np.inf, iterations
    keep_slacks(program, pair)
    policy, reached = expand(program, admissible, pair)
    occupancy, gap = certified(dense, rewards, start, admissible, reached, roots, barrier, policy, pair.values)
    return policy, pair.values, occupancy, gap, iterations


@compiled
def solve(dense, row, indptr, indices, data, rewards, start, admissible, horizon, roots, barrier, tolerance, earlier):
    """Return policy (H, S, A), values (H, S), occupancy (H, S, A), the certified gap, and the iterations, or `HARD`.

    Rewards, roots u and barrier m are (K, S, A), `earlier` is a policy to start from or empty. The tolerance is on the
    gap.
    """
    program = set_up(dense, row, indptr, indices, data, rewards, start, admissible, horizon, roots, barrier)
    pair = new_pair(program)
    iterations = optimise(program, pair, tolerance, earlier)
    return finish(program, pair, iterations, dense, rewards, start, admissible, roots, barrier)
