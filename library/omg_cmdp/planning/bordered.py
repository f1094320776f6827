"""The planner's loop with budgets, compiled: the interior-point method of `solver`, with one more row for each budget.

Budgets ⟨q, c_j⟩ <= b_j have slacks s_j and prices λ_j, and the product s·λ is wanted as small as the tolerance asks.
The pair of the program without budgets gets them as further entries, s among the q and λ among the z, and

    z = Bᵀ·V - r + λ·c,     dz = Bᵀ·dV + c·dλ,     B·dq = 0,     c·dq + ds = b - c·q - s.

With X_j = M⁻¹·B·D·c_j and ĉ_j = c_j - Bᵀ·X_j, Newton's equation for the prices is (ĉ·D·ĉᵀ + diag(s/λ))·dλ = right, one
more solve with the factor of M for each budget. The occupancy is always one; the budgets may begin violated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omg_cmdp.jit import compiled, inner, leaf
from omg_cmdp.mdp.thresholds import NEGLIGIBLE
from omg_cmdp.planning.rounding import EPSILON, OF_TERM, TINY
from omg_cmdp.planning.solver import blocks
from omg_cmdp.planning.solver.certify import difference, fused, of_slack, of_sum
from omg_cmdp.planning.solver.interior_point import (
    NEAR,
    aim,
    longest_step,
    mean_excess,
    move,
    new_newton,
    product_floor,
    stay_central,
)
from omg_cmdp.planning.solver.program import (
    Program,
    copy_pair,
    make_dual,
    make_occupancy,
    make_slacks,
    new_pair,
    node_masses,
)
from omg_cmdp.planning.solver.set_up import expand, set_up
from omg_cmdp.planning.solver.terms import gap_term, root_part
from omg_cmdp.planning.solver.tuples import gather

LIMIT = 80
"""Iterations before the loop gives up."""
WITHIN = 2e-13
"""How closely the loop meets the budgets, relative to the horizon; less than what counts as met."""
FIRST_SLACK = 1e-3
"""The slack of a budget is at least this large at the start."""


class Border(NamedTuple):
    """The rows of the budgets, over the tuples; scaled, so that the largest cost is about 1."""

    costs: np.ndarray  # (J, tuples)
    budgets: np.ndarray  # (J,)
    rewards: np.ndarray  # (tuples,), r without prices
    projected: np.ndarray  # (J, tuples), ĉ
    columns: np.ndarray  # (J, H, S), X
    system: np.ndarray  # (J, J)
    missed: np.ndarray  # (J,), b - c·q - s
    dprices: np.ndarray  # (J,)


@inner
def extended(array, count, value):
    """Return `array` with `count` entries more, all `value`."""
    out = np.full(array.size + count, value)
    out[: array.size] = array
    return out


@leaf
def set_prices(program, border, pair):
    """Set the program's rewards ← r - λ·c; return Σ λ·|missed| and the largest |missed|."""
    n, rewards = border.rewards.size, program.rewards
    for i in range(n):
        rewards[i] = border.rewards[i]
    worth = most = 0.0
    for j in range(border.budgets.size):
        price, total = pair.z[n + j], 0.0
        for i in range(n):
            rewards[i] -= price * border.costs[j, i]
            total += border.costs[j, i] * pair.q[i]
        border.missed[j] = border.budgets[j] - total - pair.q[n + j]
        worth += price * abs(border.missed[j])
        most = max(most, abs(border.missed[j]))
    return worth, most


@leaf
def make_system(program, border, newton):
    """Set X, ĉ and the matrix of Newton's equation for the prices, and factor it; return False if it is not definite."""
    n, count, weights = border.rewards.size, border.budgets.size, newton.weights
    for j in range(count):
        for i in range(n):
            newton.dq[i] = weights[i] * border.costs[j, i]
        blocks.flow(program.transitions, program.tuples, newton.dq, border.columns[j])
        blocks.solve(program.tuples, newton.factor, border.columns[j])
        blocks.flow_adjoint(program.transitions, program.tuples, border.columns[j], newton.dz)
        for i in range(n):
            border.projected[j, i] = border.costs[j, i] - newton.dz[i]
    system = border.system
    for j in range(count):
        for k in range(j + 1):
            total = weights[n + j] if j == k else 0.0
            for i in range(n):
                total += weights[i] * border.projected[j, i] * border.projected[k, i]
            for i in range(k):
                total -= system[j, i] * system[k, i]
            if j == k and not total > 0.0:
                return False
            system[j, k] = np.sqrt(total) if j == k else total / system[k, k]
    return True


@leaf
def direction(program, border, pair, newton):
    """Solve Newton's equation for `newton.residual`; return the longest steps on the two sides, at most 1."""
    n, count, system, dprices = border.rewards.size, border.budgets.size, border.system, border.dprices
    blocks.flow(program.transitions, program.tuples, newton.residual, newton.dvalues)
    blocks.solve(program.tuples, newton.factor, newton.dvalues)
    blocks.flow_adjoint(program.transitions, program.tuples, newton.dvalues, newton.dz)
    for j in range(count):
        total = newton.residual[n + j] - border.missed[j]
        for i in range(n):
            total += border.costs[j, i] * (newton.residual[i] - newton.weights[i] * newton.dz[i])
        for k in range(j):
            total -= system[j, k] * dprices[k]
        dprices[j] = total / system[j, j]
    for j in range(count - 1, -1, -1):
        for k in range(j + 1, count):
            dprices[j] -= system[k, j] * dprices[k]
        dprices[j] /= system[j, j]
    for j in range(count):
        newton.dz[n + j] = dprices[j]
        for i in range(n):
            newton.dz[i] += dprices[j] * border.projected[j, i]
        for h in range(newton.dvalues.shape[0]):
            for s in range(newton.dvalues.shape[1]):
                newton.dvalues[h, s] -= dprices[j] * border.columns[j, h, s]
    for i in range(n + count):
        newton.dq[i] = newton.residual[i] - newton.weights[i] * newton.dz[i]
    return longest_step(pair.q, newton.dq), longest_step(pair.z, newton.dz)


@leaf
def corrector(program, border, pair, newton, excess, primal, dual):
    """Replace the direction by one towards wanted + centre, with Mehrotra's second-order term; return its steps."""
    centre = excess * min(1.0, mean_excess(pair, newton, primal, dual) / excess) ** 3
    shortest = min(primal, dual)
    for attempt in range(3):
        for i in range(pair.q.size):
            goal = newton.wanted[i] + centre
            if attempt == 0:
                second_order = (2.0 - newton.power[i]) * newton.dq[i] * newton.dz[i]
                goal -= min(max(second_order, -goal), goal)
            newton.residual[i] = newton.power[i] * (goal / pair.z[i] - pair.q[i])
        primal, dual = direction(program, border, pair, newton)
        if attempt == 0 and min(primal, dual) < shortest:
            continue
        primal, dual = stay_central(pair, newton, primal, dual)
        if max(primal, dual) > 0.1:
            break
        centre = excess
    return primal, dual


@leaf
def begin(program, border, pair, guess, masses, products, newton):
    """Set prices, slacks and a dual for the occupancy in `pair`; return False if rounding prevents it.

    With a guess of the prices, and values in `pair` that answer to them, little is changed. Otherwise prices come from
    one Newton step, and occupancy and values answer to them.
    """
    n, count, weights = border.rewards.size, border.budgets.size, newton.weights
    for i in range(n):
        root = root_part(program.roots[i], pair.q[i])
        products[i] = root + program.barrier[i] + newton.wanted[0]
        weights[i] = pair.q[i] * pair.q[i] / products[i] / (1.0 - 0.5 * root / products[i])
    for j in range(count):
        pair.q[n + j], pair.z[n + j], weights[n + j] = 0.0, guess[j] if guess.size else 0.0, 1.0
    set_prices(program, border, pair)
    known = guess.size > 0 and has_slacks(program, pair, n)
    if guess.size == 0:
        if not blocks.factorise(program.transitions, program.tuples, weights, newton.factor):
            return False
        if not make_system(program, border, newton):
            return False
        for j in range(count):
            stiffness = TINY
            for i in range(n):
                stiffness += weights[i] * border.projected[j, i] ** 2
            # No further than the rewards are worth: where the plan is almost deterministic, Newton's step is too long.
            pair.z[n + j] = min(max(-border.missed[j], 0.0) / stiffness, 1.0)
        set_prices(program, border, pair)
    if not known:
        node_masses(program.tuples, pair.q, masses)
        make_dual(program, masses, products, np.int64(8), pair)
        for i in range(n):
            pair.q[i] = products[i] / pair.z[i]
        make_occupancy(program, pair.q, newton.dvalues)
        set_prices(program, border, pair)
    most = 0.0
    for j in range(count):
        least = program.barrier[n + j] / pair.z[n + j] if known and pair.z[n + j] > 0.0 else FIRST_SLACK
        pair.q[n + j] = max(abs(border.missed[j]), min(least, FIRST_SLACK))  # s was 0: this is b - c·q
        most = max(most, pair.q[n + j] * pair.z[n + j])
    for j in range(count):
        product = max(0.0 if known else 0.1 * most, program.barrier[n + j])
        pair.z[n + j] = max(pair.z[n + j], product / pair.q[n + j])
    set_prices(program, border, pair)
    if not (known and has_slacks(program, pair, n)):
        node_masses(program.tuples, pair.q, masses)
        make_dual(program, masses, products, np.int64(8), pair)
    return True


@leaf
def has_slacks(program, pair, count):
    """Recompute the slacks; return whether the first `count` are positive."""
    make_slacks(program, pair)
    for i in range(count):
        if not pair.z[i] > 0.0:
            return False
    return True


@leaf
def bordered(program, border, pair, tolerance, newton, best):
    """Improve `pair` in place until gap and budgets are within tolerance; return the iterations."""
    floor, least, slow = product_floor(program, tolerance), np.inf, 0
    horizon = pair.values.shape[0]
    copy_pair(pair, best)
    for iteration in range(LIMIT):
        worth, most = set_prices(program, border, pair)
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
        if min(primal, dual) < 0.7 and distance > NEAR:
            primal, dual = corrector(program, border, pair, newton, excess, primal, dual)
        move(pair, newton, primal, dual)
        # Without this, costs drift by more than the budgets leave: M may be ill-conditioned.
        make_occupancy(program, pair.q, newton.dvalues)
        set_prices(program, border, pair)
        make_slacks(program, pair)
    copy_pair(best, pair)
    return iteration


@compiled
def solve(
    dense, row, indptr, indices, data, rewards, start, admissible, horizon, roots, barrier, tolerance, earlier,
    values, guess, costs, budgets,
):  # fmt: skip
    """Return policy (H, S, A), values (H, S), prices (J,), the reachable states (H, S) and the number of iterations.

    The first arguments are those of the solver, with a policy to start from, and its values; `guess` are its prices
    (J,), or empty if it is the plan without budgets. Costs (J, K, S, A) and budgets (J,) are scaled.
    """
    free = set_up(dense, row, indptr, indices, data, rewards, start, admissible, horizon, roots, barrier)
    n, count, tuples = free.rewards.size, budgets.size, free.tuples
    paid, root = extended(free.rewards, count, 0.0), extended(free.roots, count, 0.0)
    wanted = extended(free.barrier, count, tolerance / (8 * count))
    program = Program(free.transitions, tuples, start, paid, root, wanted)
    rows, columns = np.empty((count, n)), np.empty((count, horizon, start.size))
    for j in range(count):
        rows[j] = gather(tuples, costs[j])
    matrices = rows, np.empty((count, n)), np.empty((count, count))
    border = Border(rows, budgets, free.rewards, matrices[1], columns, matrices[2], np.empty(count), np.empty(count))
    pair, best, newton = new_pair(program), new_pair(program), new_newton(program)
    pair.q[:n] = gather(tuples, earlier)
    pair.values[:] = values
    make_occupancy(program, pair.q, newton.dvalues)
    newton.wanted[0], iterations = product_floor(program, tolerance), 0
    if begin(program, border, pair, guess, np.empty(tuples.state.size), np.empty(n), newton):
        iterations = bordered(program, border, pair, tolerance, newton, best)
    policy, reached = expand(program, admissible, pair)
    return policy, pair.values, pair.z[n:].copy(), reached, iterations


@compiled
def certify(transitions, rewards, start, admissible, reached, roots, barrier, policy, values, costs, budgets, prices):
    """Return the occupancy measure of `policy`, its slacks b - ⟨q, c⟩ (J,), and the gap that values and prices prove.

    As `certify` of the solver, with λ·(b - ⟨q, c⟩) added. That term is not flat in q, so that the occupancy has twice
    the digits too, and is that of the policy with rows that sum to 1.
    """
    horizon, states, actions = policy.shape
    occupancy, count = np.zeros((horizon, states, actions)), budgets.size
    marginal, lower, after, below = start.copy(), np.zeros(states), np.empty(states), np.empty(states)
    slacks, slacks_below = budgets.copy(), np.zeros(count)
    gap = 0.0
    for h in range(horizon):
        k, r, c = h % transitions.shape[0], h % rewards.shape[0], h % costs.shape[1]
        after[:], below[:] = 0.0, 0.0
        for s in range(states):
            if not reached[h, s]:
                if marginal[s] <= NEGLIGIBLE:
                    continue
                gap = np.inf
            total = rest = 0.0
            for a in range(actions):
                total, more = difference(total, -policy[h, s, a])
                rest += more
            share = marginal[s] / total
            share_below = (fused(-share, total, marginal[s]) + lower[s] - share * rest) / total
            for a in range(actions):
                if not admissible[s, a]:
                    continue
                q = share * policy[h, s, a]
                q_below = fused(share, policy[h, s, a], -q) + share_below * policy[h, s, a]
                slack, lost = difference(values[h, s], rewards[r, s, a])
                size = abs(values[h, s]) + rewards[r, s, a]
                for j in range(count):
                    cost, product = costs[j, c, s, a], prices[j] * costs[j, c, s, a]
                    slack, more = difference(slack, -product)
                    lost += more + fused(prices[j], cost, -product)
                    size += abs(product)
                    product = q * cost
                    slacks[j], more = difference(slacks[j], product)
                    slacks_below[j] += more - (fused(q, cost, -product) + q_below * cost)
                if h + 1 < horizon:
                    for j in range(states):
                        p = transitions[k, s, a, j]
                        if p > 0.0:
                            product = q * p
                            after[j], more = difference(after[j], -product)
                            below[j] += more + (fused(q, p, -product) + q_below * p)
                            product = p * values[h + 1, j]
                            slack, more = difference(slack, product)
                            lost += more - fused(p, values[h + 1, j], -product)
                            size += abs(product)
                slack += lost
                occupancy[h, s, a] = q
                if reached[h, s] and q > 0.0 and slack > 0.0:
                    error = 8.0 * EPSILON + (of_slack(states + count) * size + TINY) / slack + OF_TERM
                    u, m = roots[h % roots.shape[0], s, a], barrier[h % barrier.shape[0], s, a]
                    gap += gap_term(u, m, q, slack, error)
                else:
                    gap = np.inf
        marginal, after = after, marginal
        lower, below = below, lower
    slacks += slacks_below
    return occupancy, slacks, of_sum(occupancy.size) * gap
