"""The planner's loop: a feasible primal-dual interior-point method over occupancy measures.

Both sides of the pair stay feasible, so the duality gap is exact at every iteration. One iteration is a Newton step
towards the products q·z of the optimum; if that step is short, Mehrotra's corrector aims at these products plus a
centring term. The *sum* matters: with the larger of the two instead, weights of different size make the method cycle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omg_cmdp.jit import inner, leaf
from omg_cmdp.planning.solver import blocks
from omg_cmdp.planning.solver.blocks import Factor
from omg_cmdp.planning.solver.border import make_system, set_prices, step_prices
from omg_cmdp.planning.solver.program import Pair, copy_pair, make_occupancy, make_slacks, new_pair
from omg_cmdp.planning.solver.terms import gap_bound, root_part

SOLVED, STALLED, LOST = 0, 1, 2

TO_BOUNDARY = 0.99
"""How far a step may go, as a fraction of the way to the boundary."""
NEAR = 0.9
"""Plain Newton once every product is within this relative distance of the wanted one."""
GAINFUL = 0.1
"""The factor of a step is used again while each use divides the gap by at least ten: a use costs a third of a step."""
LONG = 0.7
"""A Newton step at least this long is taken without a corrector (which, with roots, can hold the pair in place)."""
SHORT = 0.1
"""If both steps are shorter than this, the corrector tries again with more centring."""
WITHIN = 2e-13
"""How closely budgets are met, relative to the horizon; less than what counts as met."""
CENTRAL = 1e-3
"""No product may fall below this fraction of the wanted product, or of the mean excess."""


class Newton(NamedTuple):
    """Work space of one iteration; everything is per tuple but `dvalues`."""

    factor: Factor
    wanted: np.ndarray  # the product q·z to aim at
    power: np.ndarray  # 1 for a barrier, between 1 and 2 with roots
    weights: np.ndarray  # D = power·q/z
    residual: np.ndarray
    dq: np.ndarray
    dz: np.ndarray
    dvalues: np.ndarray  # (H, S)
    kept: Pair  # dq, dvalues and dz of an earlier direction


@inner
def new_newton(program):
    factor = blocks.allocate(program.transitions, program.tuples)
    dvalues = np.empty((program.tuples.layer.size - 1, program.start.size))
    rows = np.empty((6, program.rewards.size))  # at once: an array takes as long to make as fifty entries to fill
    return Newton(factor, rows[0], rows[1], rows[2], rows[3], rows[4], rows[5], dvalues, new_pair(program))


@leaf
def product_floor(program, tolerance):
    """Return the product asked of each tuple on top of its own: without a barrier it keeps q away from 0."""
    for i in range(program.barrier.size):
        if program.barrier[i] == 0.0:
            return tolerance / (8 * program.rewards.size)
    return 0.0


@leaf
def interior_point(program, border, pair, tolerance, limit, newton, best):
    """Improve `pair` in place until gap and budgets are within tolerance; return why it stopped, and the iterations.

    `newton` and `best` are work space.
    """
    floor, least, slow, count = product_floor(program, tolerance), np.inf, 0, border.budgets.size
    worth, most = set_prices(program, border, pair)
    make_slacks(program, pair)
    copy_pair(pair, best)
    for iteration in range(limit):
        gap, excess, distance = aim(program, pair, floor, newton)
        if gap + worth <= tolerance and most <= WITHIN * pair.values.shape[0]:
            return SOLVED, iteration
        # Newton's method doubles the digits here; when it no longer does, double precision is exhausted.
        total = gap + worth + most
        slow = 0 if total < 0.5 * least else slow + 1
        if total < least:
            least = total
            copy_pair(pair, best)
        if slow >= 3 + (count > 0) and distance < NEAR:
            copy_pair(best, pair)
            return STALLED, iteration
        if gap == np.inf or not blocks.factorise(program.transitions, program.tuples, newton.weights, newton.factor):
            break
        if count > 0 and not make_system(program, border, newton):
            break
        newton_step(program, border, newton)
        primal, dual = longest_step(pair.q, newton.dq), longest_step(pair.z, newton.dz)
        if min(primal, dual) == 1.0:
            refine(program, border, pair, 0.5 * tolerance, newton)
        elif distance > NEAR and min(primal, dual) < LONG:
            primal, dual = corrector(program, border, pair, newton, excess, primal, dual)
        move(pair, newton, primal, dual)
        # With budgets always: costs would drift by more than these leave.
        if distance <= NEAR or count > 0:
            make_occupancy(program, pair.q, newton.dvalues)
            worth, most = set_prices(program, border, pair)
            make_slacks(program, pair)
    copy_pair(best, pair)
    return LOST, limit


@leaf
def aim(program, pair, floor, newton):
    """Set the wanted products, the weights D and the residual of Newton's equation.

    Return a bound on the gap, the mean excess of the products over the wanted ones, and the largest relative distance
    between the two; all are inf if rounding has taken the pair out of the interior.
    """
    gap = excess = distance = 0.0
    n = pair.q.size
    for i in range(n):
        product = pair.q[i] * pair.z[i]
        if not (pair.q[i] > 0.0 and pair.z[i] > 0.0):
            return np.inf, np.inf, np.inf
        root, inverse, power = root_part(program.roots[i], pair.q[i]), 1.0 / pair.z[i], 1.0
        if root > 0.0:
            # From q·z - ½√(u·q) = constant, linearised; between the plain condition (1) and the root's own (2).
            power = 1.0 / (1.0 - 0.5 * min(1.0, root / product))
        wanted = root + program.barrier[i] + floor
        newton.wanted[i] = wanted
        newton.power[i] = power
        newton.weights[i] = power * pair.q[i] * inverse
        newton.residual[i] = power * (wanted * inverse - pair.q[i])
        gap += gap_bound(root, program.barrier[i], product)
        excess += max(product - wanted, 0.0)
        distance = max(distance, abs(wanted / product - 1.0))
    return gap, excess / n, distance


@leaf
def newton_step(program, border, newton):
    """Solve B·dq = 0, dz = Bᵀ·dV, dq + D·dz = residual, with the rows of the border."""
    blocks.flow(program.transitions, program.tuples, newton.residual, newton.dvalues)
    blocks.solve(program.tuples, newton.factor, newton.dvalues)
    blocks.flow_adjoint(program.transitions, program.tuples, newton.dvalues, newton.dz)
    if border.budgets.size > 0:
        step_prices(border, newton)
    for i in range(newton.dq.size):
        newton.dq[i] = newton.residual[i] - newton.weights[i] * newton.dz[i]


@leaf
def longest_step(x, dx):
    """Return the largest step in [0, 1] that keeps x + step·dx at or above (1 - TO_BOUNDARY)·x."""
    # Four minima side by side: one alone is a chain of dependent comparisons.
    a = b = c = d = -TO_BOUNDARY
    whole = x.size // 4 * 4
    for i in range(0, whole, 4):
        a, b = min(a, dx[i] / x[i]), min(b, dx[i + 1] / x[i + 1])
        c, d = min(c, dx[i + 2] / x[i + 2]), min(d, dx[i + 3] / x[i + 3])
    for i in range(whole, x.size):
        a = min(a, dx[i] / x[i])
    return -TO_BOUNDARY / min(a, b, c, d)


@leaf
def refine(program, border, pair, tolerance, newton):
    """Improve a whole Newton step by its second-order term, again and again with the same factor while that pays."""
    direction, gap = Pair(newton.dq, newton.dvalues, newton.dz), gap_after(program, pair, newton)
    while gap > tolerance:
        copy_pair(direction, newton.kept)
        add_second_order(program, pair, newton)
        newton_step(program, border, newton)
        before, gap = gap, gap_after(program, pair, newton)
        if not gap < before:
            copy_pair(newton.kept, direction)
        if not gap < GAINFUL * before:
            break


@leaf
def gap_after(program, pair, newton):
    """Return a bound on the gap after a whole step; inf if the step leaves the interior."""
    total = 0.0
    for i in range(pair.q.size):
        q, z = pair.q[i] + newton.dq[i], pair.z[i] + newton.dz[i]
        if not (q > 0.0 and z > 0.0):
            return np.inf
        total += gap_bound(root_part(program.roots[i], q), program.barrier[i], q * z)
    return total


@leaf
def add_second_order(program, pair, newton):
    """Set the residual of Newton's equation with the second-order term of the direction that there is.

    q·z - ½√(u·q) expands to second order with dq·dz + ⅛·½√(u·q)·(dq/q)².
    """
    for i in range(pair.q.size):
        goal = newton.wanted[i] - newton.dq[i] * newton.dz[i]
        if program.roots[i] > 0.0:
            goal -= 0.125 * root_part(program.roots[i], pair.q[i]) * (newton.dq[i] / pair.q[i]) ** 2
        newton.residual[i] = newton.power[i] * (goal / pair.z[i] - pair.q[i])


@leaf
def corrector(program, border, pair, newton, excess, primal, dual):
    """Replace the direction by one towards wanted + centre; return its steps.

    The centre is Mehrotra's, and the first attempt has his second-order term. If that shortens the step, it is dropped;
    if the step is still short, the last attempt aims at the mean excess.
    """
    predicted = mean_excess(pair, newton, primal, dual)
    centre = excess * min(1.0, predicted / excess) ** 3
    shortest = min(primal, dual)
    for attempt in range(3):
        aim_above(pair, newton, centre, attempt == 0)
        newton_step(program, border, newton)
        primal, dual = longest_step(pair.q, newton.dq), longest_step(pair.z, newton.dz)
        if attempt == 0 and min(primal, dual) < shortest:
            continue
        primal, dual = stay_central(pair, newton, primal, dual)
        if max(primal, dual) > SHORT:
            break
        centre = excess
    return primal, dual


@leaf
def aim_above(pair, newton, centre, with_second_order):
    """Set the residual towards the products wanted + centre."""
    for i in range(pair.q.size):
        goal = newton.wanted[i] + centre
        if with_second_order:
            second_order = (2.0 - newton.power[i]) * newton.dq[i] * newton.dz[i]
            goal -= min(max(second_order, -goal), goal)
        newton.residual[i] = newton.power[i] * (goal / pair.z[i] - pair.q[i])


@leaf
def mean_excess(pair, newton, primal, dual):
    """Return the mean excess of the products over the wanted ones after a step."""
    total = 0.0
    for i in range(pair.q.size):
        product = (pair.q[i] + primal * newton.dq[i]) * (pair.z[i] + dual * newton.dz[i])
        total += max(product - newton.wanted[i], 0.0)
    return total / pair.q.size


@leaf
def stay_central(pair, newton, primal, dual):
    """Shorten the steps until no shrinking product falls far below the others."""
    for _ in range(20):
        level = mean_excess(pair, newton, primal, dual)
        central = True
        for i in range(pair.q.size):
            product = (pair.q[i] + primal * newton.dq[i]) * (pair.z[i] + dual * newton.dz[i])
            if product < CENTRAL * max(newton.wanted[i], level) and product < pair.q[i] * pair.z[i]:
                central = False
                break
        if central:
            break
        primal *= 0.8
        dual *= 0.8
    return primal, dual


@leaf
def move(pair, newton, primal, dual):
    """Take the step. Both sides stay feasible, up to rounding."""
    for h in range(pair.values.shape[0]):
        for s in range(pair.values.shape[1]):
            pair.values[h, s] += dual * newton.dvalues[h, s]
    for i in range(pair.q.size):
        pair.q[i] += primal * newton.dq[i]
        pair.z[i] += dual * newton.dz[i]
