"""The compiled entry points for plans within budgets: the loop of `solver`, with the rows of `border`."""

from __future__ import annotations

import numpy as np

from omg_cmdp.jit import compiled, inner
from omg_cmdp.planning.compiled.certify import certified_within
from omg_cmdp.planning.compiled.prices import begin
from omg_cmdp.planning.solver.border import new_border
from omg_cmdp.planning.solver.interior_point import interior_point, new_newton
from omg_cmdp.planning.solver.program import Program, make_occupancy, new_pair
from omg_cmdp.planning.solver.set_up import expand, set_up
from omg_cmdp.planning.solver.solve import HARD, finish, optimise
from omg_cmdp.planning.solver.tuples import gather

LIMIT = 80
"""Iterations before the loop gives up."""
CLEARLY = 1e-9
"""An excess over a budget, relative to the horizon, that rounding cannot explain."""


@inner
def extended(array, count, value):
    """Return `array` with `count` entries more, all `value`."""
    out = np.full(array.size + count, value)
    out[: array.size] = array
    return out


@inner
def optimise_within(
    free, q, guess, costs, budgets, raised, tolerance, allowed, dense, rewards, admissible, roots, barrier
):
    """Return what `resume` returns, from an occupancy of the program `free`."""
    n, count, tuples, start = free.rewards.size, budgets.size, free.tuples, free.start
    paid, root = extended(free.rewards, count, 0.0), extended(free.roots, count, 0.0)
    wanted = extended(free.barrier, count, tolerance / (8 * count))
    program = Program(free.transitions, tuples, start, paid, root, wanted)
    rows, iterations = np.empty((count, n)), 0
    for j in range(count):
        gather(tuples, costs[j], rows[j])
    border = new_border(program, free.rewards, rows, budgets + raised)
    pair, best, newton = new_pair(program), new_pair(program), new_newton(program)
    pair.q[:n] = q
    make_occupancy(program, pair.q, newton.dvalues)
    if begin(program, border, pair, guess, tolerance, newton, best):
        _, iterations = interior_point(program, border, pair, tolerance, LIMIT, newton, best)
    policy, reached = expand(program, admissible, pair)
    tables, prices = (dense, rewards, start, admissible, reached, roots, barrier), pair.z[n:].copy()
    occupancy, slacks, gap = certified_within(*tables, policy, pair.values, costs, budgets, prices, allowed)
    return policy, pair.values, occupancy, gap, iterations, prices, slacks


@inner
def are_exceeded(tuples, q, costs, budgets):
    """Return whether an occupancy costs clearly more than a budget."""
    row, exceeded = np.empty(q.size), False
    for j in range(budgets.size):
        gather(tuples, costs[j], row)
        exceeded |= (row * q).sum() > budgets[j] + CLEARLY * (tuples.layer.size - 1)
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
    policy, values, occupancy, gap, more, prices, slacks = optimise_within(
        program, pair.q, none, costs, budgets, 0.0, tolerance, allowed, dense, rewards, admissible, roots, barrier
    )
    return policy, values, occupancy, gap, iterations + more, prices, slacks


@compiled
def resume(
    dense, row, indptr, indices, data, rewards, start, admissible, horizon, roots, barrier, tolerance, earlier,
    guess, costs, budgets, allowed, easier, raised,
):  # fmt: skip
    """Return what `solve` returns, from the policy `earlier` and a `guess` of the prices (J,), which may be empty.

    The loop adds `easier` to the barrier and
    `raised` to the budgets; the certificate, with `allowed` as the excess over budgets that it accepts, does not.
    """
    program = set_up(dense, row, indptr, indices, data, rewards, start, admissible, horizon, roots, barrier + easier)
    q = np.empty(program.rewards.size)
    gather(program.tuples, earlier, q)
    return optimise_within(
        program, q, guess, costs, budgets, raised, tolerance, allowed, dense, rewards, admissible, roots, barrier
    )
