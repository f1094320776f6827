"""Where the loop with budgets begins: prices, slacks, and a pair that answers to them."""

from __future__ import annotations

import numpy as np

from omg_cmdp.jit import inner, leaf
from omg_cmdp.planning.rounding import TINY
from omg_cmdp.planning.solver import blocks
from omg_cmdp.planning.solver.border import make_system, set_prices
from omg_cmdp.planning.solver.interior_point import product_floor
from omg_cmdp.planning.solver.program import copy_pair, make_dual, make_occupancy, node_masses
from omg_cmdp.planning.solver.terms import root_part

FIRST_SLACK = 1e-3
"""The slack of a budget that is not known to bind is at least this large at the start."""
TURNS = 16
"""The most prices that `find_prices` tries."""
CLOSE, ENOUGH = 0.1, 0.02
"""`find_prices` ends with an excess below the second share of that without prices; above the first share it failed."""


@inner
def begin(program, border, pair, guess, tolerance, newton, trial):
    """Set prices, slacks and a dual for the occupancy in `pair`; return False if rounding prevents it.

    Without a `guess` of the prices they come from `find_prices`, and the occupancy answers to them; where this finds
    none, from `first_prices`. `newton` and `trial` are work space.
    """
    n, floor = border.rewards.size, product_floor(program, tolerance)
    masses, products = np.empty(program.tuples.state.size), np.empty(n)
    found = guess.size > 0
    pair.q[n:], pair.z[n:] = 0.0, 0.0
    if found:
        pair.z[n:] = guess
    set_prices(program, border, pair)
    set_products(program, floor, pair, products)
    if not found:
        if not first_prices(program, border, pair, products, newton):
            return False
        copy_pair(pair, trial)
        found = find_prices(program, border, floor, trial, masses, products, newton)
        if found:
            copy_pair(trial, pair)
        else:
            set_products(program, floor, pair, products)
            node_masses(program.tuples, pair.q, masses)
            answer(program, border, pair, masses, products, newton)
    set_slacks(program, border, pair, found)
    set_prices(program, border, pair)
    node_masses(program.tuples, pair.q, masses)
    make_dual(program, masses, products, np.int64(30), pair)
    return True


@leaf
def set_slacks(program, border, pair, found):
    """Give budgets slacks: those that bind, if prices were found, what the price asks; others what is left of them."""
    n, most = border.rewards.size, 0.0
    for i in range(n, pair.q.size):
        pair.q[i] = program.barrier[i] / pair.z[i]
        if not (found and pair.q[i] < FIRST_SLACK):
            pair.q[i] = max(abs(border.missed[i - n]), FIRST_SLACK)  # the slack was 0: this is b - c·q
        most = max(most, pair.q[i] * pair.z[i])
    for i in range(n, pair.q.size):
        product = max(0.0 if found else 0.1 * most, program.barrier[i])
        pair.z[i] = max(pair.z[i], product / pair.q[i])


@leaf
def set_products(program, floor, pair, products):
    """Set the products q·z that are wanted of the tuples."""
    for i in range(products.size):
        products[i] = root_part(program.roots[i], pair.q[i]) + program.barrier[i] + floor


@leaf
def answer(program, border, pair, masses, products, newton):
    """Replace the pair by one that answers to its prices: the dual, and the policy in proportion to products/z."""
    set_prices(program, border, pair)
    make_dual(program, masses, products, np.int64(2), pair)
    for i in range(products.size):
        pair.q[i] = products[i] / pair.z[i]
    make_occupancy(program, pair.q, newton.dvalues)
    set_prices(program, border, pair)


@leaf
def first_prices(program, border, pair, products, newton):
    """Set the prices to those of one Newton step for each budget alone; return False if rounding prevents it."""
    n, weights = border.rewards.size, newton.weights
    for i in range(n):
        root = root_part(program.roots[i], pair.q[i])
        weights[i] = pair.q[i] * pair.q[i] / products[i] / (1.0 - 0.5 * root / products[i])
    for j in range(border.budgets.size):
        weights[n + j] = 1.0
    if not blocks.factorise(program.transitions, program.tuples, weights, newton.factor):
        return False
    if not make_system(program, border, newton):
        return False
    for j in range(border.budgets.size):
        stiffness = TINY
        for i in range(n):
            stiffness += weights[i] * border.projected[j, i] ** 2
        # No further than the rewards are worth: where the plan is almost deterministic, Newton's step is too long.
        pair.z[n + j] = min(max(-border.missed[j], 0.0) / stiffness, 1.0)
    return True


@leaf
def find_prices(program, border, floor, pair, masses, products, newton):
    """Find the multiple of the prices in `pair` at which what is spent beyond the budgets is worth nothing.

    That worth falls with the multiple, the slope of the dual along these prices, and its root is found by the Illinois
    rule. For every multiple the pair answers once, and the marginals follow a quarter of the way, as in `alternate`.
    Return whether the budgets with prices are nearly met.
    """
    n, count, prices = border.rewards.size, border.budgets.size, border.dprices
    low = most = 0.0
    for j in range(count):
        prices[j] = pair.z[n + j]
        most -= prices[j] * border.missed[j]
    times, high, at_low, at_high = 1.0, np.inf, most, 0.0
    node_masses(program.tuples, pair.q, masses)
    for _ in range(TURNS):
        for j in range(count):
            pair.z[n + j] = times * prices[j]
        answer(program, border, pair, masses, products, newton)
        set_products(program, floor, pair, products)
        for node in range(masses.size):
            mass = 0.0
            for i in range(program.tuples.first[node], program.tuples.first[node + 1]):
                mass += pair.q[i]
            masses[node] *= np.sqrt(np.sqrt(mass / masses[node]))
        worth = missed = 0.0
        for j in range(count):
            worth -= prices[j] * border.missed[j]
            missed += prices[j] * abs(border.missed[j])
        if missed <= ENOUGH * most:
            break
        if worth > 0.0:
            low, at_low, at_high = times, worth, 0.5 * at_high
        else:
            high, at_high, at_low = times, worth, 0.5 * at_low
        times = 3.0 * times if high == np.inf else (low * at_high - high * at_low) / (at_high - at_low)
    return missed <= CLOSE * most
