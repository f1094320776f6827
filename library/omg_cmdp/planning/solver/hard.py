"""The entry point for hard problems: where the usual loop starts too far off, or loses its way."""

from __future__ import annotations

from omg_cmdp.jit import compiled, inner
from omg_cmdp.planning.solver.border import no_budgets
from omg_cmdp.planning.solver.interior_point import LOST, SOLVED, STALLED, interior_point, new_newton, product_floor
from omg_cmdp.planning.solver.program import copy_pair, duality_gap, new_pair
from omg_cmdp.planning.solver.safety_net import centre_dual
from omg_cmdp.planning.solver.set_up import set_up
from omg_cmdp.planning.solver.solve import LIMIT, finish
from omg_cmdp.planning.solver.starts import cold_start, warm_start

CENTRING_LIMIT = 100
"""Iterations of one centring by the dual."""
STAGES = 15
"""How often the safety net lowers θ, by a factor of ten each time, before it gives up."""


@inner
def with_safety_net(program, border, floor, tolerance, pair, newton, work):
    """Centre by the dual alone, try the loop from there, lower θ until it works; `pair` ends as the best found."""
    best, centred = new_pair(program), new_pair(program)
    copy_pair(pair, best)
    least, iterations = duality_gap(program, best), 0
    cold_start(program, floor, centred)
    theta = 0.0
    for i in range(centred.q.size):
        theta += centred.q[i] * centred.z[i] / centred.q.size
    for _ in range(STAGES):
        iterations += centre_dual(program, centred, theta, CENTRING_LIMIT, newton, work)
        copy_pair(centred, pair)
        status, more = interior_point(program, border, pair, tolerance, LIMIT, newton, work)
        iterations += more
        gap = duality_gap(program, pair)
        if gap < least:
            least = gap
            copy_pair(pair, best)
        if status == SOLVED:
            break
        theta *= 0.1
    copy_pair(best, pair)
    return iterations


@compiled
def solve_hard(
    dense, row, indptr, indices, data, rewards, start, admissible, horizon, roots, barrier, tolerance, earlier
):
    """Do what `solve` does, with the safety net."""
    program = set_up(dense, row, indptr, indices, data, rewards, start, admissible, horizon, roots, barrier)
    pair, work = new_pair(program), new_pair(program)
    newton, border = new_newton(program), no_budgets(program)
    floor = product_floor(program, tolerance)
    theta = cold_start(program, floor, pair)
    warm = warm_start(program, floor, earlier, pair)
    centring = 0
    if theta > 0.0 and not warm:
        centring = centre_dual(program, pair, theta, CENTRING_LIMIT, newton, work)
    status, iterations = interior_point(program, border, pair, tolerance, LIMIT, newton, work)
    if status == LOST or (status == STALLED and warm):
        iterations += with_safety_net(program, border, floor, tolerance, pair, newton, work)
    return finish(program, pair, iterations + centring, dense, rewards, start, admissible, roots, barrier)
