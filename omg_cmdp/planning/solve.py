"""The compiled entry point of the planner: tables in, policy and values out."""

from __future__ import annotations

import numpy as np
from numba import float64, int64, uint8

from omg_cmdp.mdp.occupancy import UNREACHABLE_BELOW
from omg_cmdp.planning.compiled import compiled, compiled_for, table
from omg_cmdp.planning.interior_point import LOST, SOLVED, STALLED, interior_point, new_newton, product_floor
from omg_cmdp.planning.program import Program, copy_pair, duality_gap, new_pair
from omg_cmdp.planning.safety_net import centre_dual
from omg_cmdp.planning.starts import cold_start, warm_start
from omg_cmdp.planning.tuples import Kernel, gather, outer_products, reachable_tuples

LIMIT = 60
"""Iterations before the loop is given up for the safety net; 99 in 100 problems take fewer than 20."""


@compiled
def with_safety_net(program, floor, pair, tolerance, newton, work):
    """Centre by the dual alone, try the loop from there, and come closer until it works; `pair` ends as the best found."""
    best = new_pair(program)
    copy_pair(pair, best)
    least, iterations = duality_gap(program, pair), LIMIT
    cold_start(program, floor, pair, newton, work)
    theta = 0.0
    for i in range(pair.q.size):
        theta += pair.q[i] * pair.z[i] / pair.q.size
    centred = new_pair(program)
    for _ in range(30):
        iterations += centre_dual(program, pair, theta, 200, newton, work)
        copy_pair(pair, centred)
        status, more = interior_point(program, pair, tolerance, LIMIT, newton, work)
        iterations += more
        if status == SOLVED:
            return SOLVED, iterations
        gap = duality_gap(program, pair)
        if gap < least:
            least = gap
            copy_pair(pair, best)
        copy_pair(centred, pair)
        theta *= 0.1
    copy_pair(best, pair)
    return STALLED, iterations


@compiled
def expand(program, admissible, rewards, pair):
    """Return the policy (H, S, A), uniform where a state is not reached; the values (H, S), max_a Q there; and where it is."""
    tuples, dense = program.tuples, program.kernel.dense
    horizon, states = pair.values.shape
    actions = admissible.shape[1]
    policy, values = np.zeros((horizon, states, actions)), pair.values
    reached = np.zeros((horizon, states), np.uint8)
    for h in range(horizon - 1, -1, -1):
        node = tuples.layer[h]
        for s in range(states):
            if node < tuples.layer[h + 1] and tuples.state[node] == s:
                first, last = tuples.first[node], tuples.first[node + 1]
                reached[h, s] = 1
                mass = 0.0
                for i in range(first, last):
                    mass += pair.q[i]
                for i in range(first, last):
                    policy[h, s, tuples.action[i]] = pair.q[i] / mass
                node += 1
            else:
                allowed = admissible[s].sum()
                best = -np.inf
                for a in range(actions):
                    if admissible[s, a]:
                        policy[h, s, a] = 1.0 / allowed
                        total = rewards[h % rewards.shape[0], s, a]
                        if h + 1 < horizon:
                            for j in range(states):
                                total += dense[h % dense.shape[0], s, a, j] * values[h + 1, j]
                        best = max(best, total)
                values[h, s] = best
    return policy, values, reached


@compiled_for(
    table(float64, 4),  # dense
    table(int64, 3),  # row
    table(int64, 1),  # indptr
    table(int64, 1),  # indices
    table(float64, 1),  # data
    table(float64, 3),  # rewards
    table(float64, 1),  # start
    table(uint8, 2),  # admissible
    int64,  # horizon
    int64,  # kind
    table(float64, 3),  # coefficients
    float64,  # tolerance
    table(float64, 3),  # earlier
)
def solve(dense, row, indptr, indices, data, rewards, start, admissible, horizon, kind, coefficients, tolerance, earlier):
    """Return policy (H, S, A), values (H, S), the reachable states (H, S) and the number of iterations.

    Rewards and coefficients are (K, S, A), `earlier` is a policy to start from or empty. The tolerance is on the gap.
    """
    kernel = Kernel(dense, outer_products(dense), row, indptr, indices, data)
    tuples = reachable_tuples(kernel, start, admissible, horizon, UNREACHABLE_BELOW)
    program = Program(
        kernel, tuples, start, gather(tuples, rewards), gather(tuples, coefficients), kind
    )
    pair, best, newton = new_pair(program), new_pair(program), new_newton(program)
    floor = product_floor(program, tolerance)
    centring = cold_start(program, floor, pair, newton, best)
    if earlier.size:
        warm_start(program, floor, gather(tuples, earlier), pair)
    status, iterations = interior_point(program, pair, tolerance, LIMIT, newton, best)
    if status == LOST:
        status, iterations = with_safety_net(program, floor, pair, tolerance, newton, best)
    iterations += centring
    policy, values, reached = expand(program, admissible, rewards, pair)
    return policy, values, reached, iterations
