"""The planner's loop with budgets: the interior-point method of `solver`, with the rows of `border`."""

from __future__ import annotations

import numpy as np

from omg_cmdp.jit import compiled, inner, leaf
from omg_cmdp.planning.compiled.border import Border, corrector, direction, extended, make_system, refine, set_prices
from omg_cmdp.planning.compiled.certify import certified_within
from omg_cmdp.planning.compiled.prices import begin
from omg_cmdp.planning.solver import blocks
from omg_cmdp.planning.solver.interior_point import LONG, NEAR, aim, move, new_newton, product_floor
from omg_cmdp.planning.solver.program import Program, copy_pair, make_occupancy, make_slacks, new_pair
from omg_cmdp.planning.solver.set_up import expand, set_up
from omg_cmdp.planning.solver.solve import HARD, finish, optimise
from omg_cmdp.planning.solver.tuples import gather

LIMIT = 80
"""Iterations before the loop gives up."""
WITHIN = 2e-13
"""How closely the loop meets the budgets, relative to the horizon; less than what counts as met."""
CLEARLY = 1e-9
"""An excess over a budget, relative to the horizon, that rounding cannot explain."""


@leaf
def bordered(program, border, pair, tolerance, newton, best):
    """Improve `pair` in place until gap and budgets are within tolerance; return the iterations."""
    floor, least, slow = product_floor(program, tolerance), np.inf, 0
    horizon = pair.values.shape[0]
    copy_pair(pair, best)
    worth, most = set_prices(program, border, pair)
    for iteration in range(LIMIT):
        gap, excess, distance = aim(program, pair, floor, newton)
        if gap + worth <= tolerance and most <= WITHIN * horizon:
            return iteration
        total = gap + worth + most
        slow = 0 if total < 0.5 * least else slow + 1
        if total < least:
            least = total
            copy_pair(pair, best)
        if slow >= 4 and distance < NEAR:
            break
        if gap == np.inf or not blocks.factorise(program.transitions, program.tuples, newton.weights, newton.factor):
            break
        if not make_system(program, border, newton):
            break
        primal, dual = direction(program, border, pair, newton)
        if min(primal, dual) == 1.0:
            refine(program, border, pair, 0.5 * tolerance, newton)
        elif min(primal, dual) < LONG and distance > NEAR:
            primal, dual = corrector(program, border, pair, newton, excess, primal, dual)
        move(pair, newton, primal, dual)
        # Without this, costs drift by more than the budgets leave: M may be ill-conditioned.
        make_occupancy(program, pair.q, newton.dvalues)
        worth, most = set_prices(program, border, pair)
        make_slacks(program, pair)
    copy_pair(best, pair)
    return iteration


@inner
def optimise_within(free, q, values, guess, costs, budgets, tolerance):
    """Return the pair within budgets, and the iterations, from an occupancy and its values for the program `free`."""
    n, count, tuples = free.rewards.size, budgets.size, free.tuples
    paid, root = extended(free.rewards, count, 0.0), extended(free.roots, count, 0.0)
    wanted = extended(free.barrier, count, tolerance / (8 * count))
    program = Program(free.transitions, tuples, free.start, paid, root, wanted)
    rows, columns = np.empty((count, n)), np.empty((count, *values.shape))
    for j in range(count):
        rows[j] = gather(tuples, costs[j])
    matrices = rows, np.empty((count, n)), np.empty((count, count))
    border = Border(rows, budgets, free.rewards, matrices[1], columns, matrices[2], np.empty(count), np.empty(count))
    pair, best, newton = new_pair(program), new_pair(program), new_newton(program)
    pair.q[:n], pair.values[:] = q, values
    make_occupancy(program, pair.q, newton.dvalues)
    newton.wanted[0], iterations = product_floor(program, tolerance), 0
    if begin(program, border, pair, guess, np.empty(tuples.state.size), np.empty(n), newton, best):
        iterations = bordered(program, border, pair, tolerance, newton, best)
    return pair, iterations


@inner
def are_exceeded(tuples, q, costs, budgets):
    """Return whether an occupancy costs clearly more than a budget."""
    horizon, exceeded = tuples.layer.size - 1, False
    for j in range(budgets.size):
        exceeded |= (gather(tuples, costs[j]) * q).sum() > budgets[j] + CLEARLY * horizon
    return exceeded


@compiled
def solve(
    dense, row, indptr, indices, data, rewards, start, admissible, horizon, roots, barrier, tolerance, earlier,
    costs, budgets, allowed,
):  # fmt: skip
    """Return what the solver's `solve` returns, and prices and slacks (J,), both empty for a plan without budgets.

    The plan is without budgets unless it clearly exceeds one. Costs (J, K, S, A) and budgets (J,) are scaled.
    """
    program = set_up(dense, row, indptr, indices, data, rewards, start, admissible, horizon, roots, barrier)
    pair, none = new_pair(program), np.empty(0)
    iterations = optimise(program, pair, tolerance, earlier)
    if iterations == HARD or not are_exceeded(program.tuples, pair.q, costs, budgets):
        found = finish(program, pair, iterations, dense, rewards, start, admissible, roots, barrier)
        return *found, none, none
    pair, more = optimise_within(program, pair.q, pair.values, none, costs, budgets, tolerance)
    policy, reached = expand(program, admissible, pair)
    prices = pair.z[program.rewards.size :].copy()
    tables = dense, rewards, start, admissible, reached, roots, barrier
    occupancy, slacks, gap = certified_within(*tables, policy, pair.values, costs, budgets, prices, allowed)
    return policy, pair.values, occupancy, gap, iterations + more, prices, slacks


@compiled
def resume(
    dense, row, indptr, indices, data, rewards, start, admissible, horizon, roots, barrier, tolerance, earlier,
    values, guess, costs, budgets, allowed, easier, raised,
):  # fmt: skip
    """Return what `solve` returns, from the policy `earlier` and its values.

    `guess` are its prices (J,), or empty if it is the plan without budgets. The loop adds `easier` to the barrier and
    `raised` to the budgets; the certificate, with `allowed` as the excess over budgets that it accepts, does not.
    """
    program = set_up(dense, row, indptr, indices, data, rewards, start, admissible, horizon, roots, barrier + easier)
    q = gather(program.tuples, earlier)
    pair, iterations = optimise_within(program, q, values, guess, costs, budgets + raised, tolerance)
    policy, reached = expand(program, admissible, pair)
    prices = pair.z[program.rewards.size :].copy()
    tables = dense, rewards, start, admissible, reached, roots, barrier
    occupancy, slacks, gap = certified_within(*tables, policy, pair.values, costs, budgets, prices, allowed)
    return policy, pair.values, occupancy, gap, iterations, prices, slacks
