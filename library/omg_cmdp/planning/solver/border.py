"""One row more of the Newton system for each budget.

Budgets ⟨q, c_j⟩ <= b_j have slacks s_j and prices λ_j, and the product s·λ is wanted as small as the tolerance asks.
The pair of the program without budgets gets them as further entries, s among the q and λ among the z, and

    z = Bᵀ·V - r + λ·c,     dz = Bᵀ·dV + c·dλ,     B·dq = 0,     c·dq + ds = b - c·q - s.

With X_j = M⁻¹·B·D·c_j and ĉ_j = c_j - Bᵀ·X_j, Newton's equation for the prices is (ĉ·D·ĉᵀ + diag(s/λ))·dλ = right, one
more solve with the factor of M for each budget. The occupancy is always one; the budgets may begin violated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omg_cmdp.jit import inner, leaf
from omg_cmdp.planning.solver import blocks


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
def new_border(program, rewards, costs, budgets):
    """Return the border of these rows, which `program` has room for."""
    count, columns = budgets.size, np.empty((budgets.size, program.tuples.layer.size - 1, program.start.size))
    rows, square = np.empty((2, count)), np.empty((count, count))
    return Border(costs, budgets, rewards, np.empty(costs.shape), columns, square, rows[0], rows[1])


@inner
def no_budgets(program):
    """Return the border of a program without budgets; empty arrays may be the same one."""
    none, rows = np.empty(0), np.empty((0, 0))
    return Border(rows, none, program.rewards, rows, np.empty((0, 0, 0)), rows, none, none)


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
    """Set X, ĉ and the factored matrix of Newton's equation for the prices; return False if it is not definite."""
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
def step_prices(border, newton):
    """Complete a direction without prices: solve for theirs, and let values and slacks follow."""
    n, count, system, dprices = border.rewards.size, border.budgets.size, border.system, border.dprices
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
