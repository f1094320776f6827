"""The compiled entry point of the planner: tables in, policy and values out."""

from __future__ import annotations

import numpy as np

from omg_cmdp.jit import compiled
from omg_cmdp.mdp.thresholds import UNREACHABLE_BELOW
from omg_cmdp.planning.solver.interior_point import LOST, SOLVED, STALLED, interior_point, new_newton, product_floor
from omg_cmdp.planning.solver.program import Program, copy_pair, duality_gap, new_pair
from omg_cmdp.planning.solver.safety_net import centre_dual
from omg_cmdp.planning.solver.starts import cold_start, warm_start
from omg_cmdp.planning.solver.tuples import Transitions, expect, gather, outer_products, reachable_tuples

LIMIT = 60
"""Iterations before the loop is given up for the safety net; 99 in 100 problems take fewer than 20."""
CENTRING_LIMIT = 100
"""Iterations of one centring by the dual."""
ROUNDING = 1e-14
"""Relative slack that `keep_slacks` leaves: a few hundred roundings of a sum over states."""
STAGES = 15
"""How often the safety net lowers θ, by a factor of ten each time, before it gives up."""


@compiled
def optimise(program, earlier, tolerance, pair):
    """Solve the program into `pair`, from an `earlier` policy if that is a better start; return the iterations."""
    newton, work = new_newton(program), new_pair(program)
    floor = product_floor(program, tolerance)
    theta = cold_start(program, floor, pair)
    warm = earlier.size > 0 and warm_start(program, floor, earlier, pair)
    centring = 0
    if theta > 0.0 and not warm:
        centring = centre_dual(program, pair, theta, CENTRING_LIMIT, newton, work)
    status, iterations = interior_point(program, pair, tolerance, LIMIT, newton, work)
    if status == LOST or (status == STALLED and warm):
        iterations += with_safety_net(program, floor, tolerance, pair, newton, work)
    return iterations + centring


@compiled
def with_safety_net(program, floor, tolerance, pair, newton, work):
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
        status, more = interior_point(program, pair, tolerance, LIMIT, newton, work)
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
def keep_slacks(program, pair):
    """Raise values by a few units in the last place where a slack, summed in another order, might not be positive."""
    tuples, values = program.tuples, pair.values
    for h in range(values.shape[0] - 1, -1, -1):
        if h + 1 < values.shape[0]:
            expect(program.transitions, tuples, h, values, pair.z)
        for node in range(tuples.layer[h], tuples.layer[h + 1]):
            needed = 0.0
            for i in range(tuples.first[node], tuples.first[node + 1]):
                needed = max(needed, program.rewards[i] + (pair.z[i] if h + 1 < values.shape[0] else 0.0))
            needed += ROUNDING * (1.0 + needed)
            values[h, tuples.state[node]] = max(values[h, tuples.state[node]], needed)


@compiled
def expand(program, admissible, pair):
    """Return the policy (H, S, A), uniform where a state is not reached, and the reached states (H, S)."""
    tuples = program.tuples
    horizon, states = pair.values.shape
    actions = admissible.shape[1]
    policy, reached = np.zeros((horizon, states, actions)), np.zeros((horizon, states), np.uint8)
    for h in range(horizon):
        for node in range(tuples.layer[h], tuples.layer[h + 1]):
            s, mass = tuples.state[node], 0.0
            reached[h, s] = 1
            for i in range(tuples.first[node], tuples.first[node + 1]):
                mass += pair.q[i]
            for i in range(tuples.first[node], tuples.first[node + 1]):
                policy[h, s, tuples.action[i]] = pair.q[i] / mass
        for s in range(states):
            if not reached[h, s]:
                allowed = 0
                for a in range(actions):
                    allowed += admissible[s, a]
                for a in range(actions):
                    policy[h, s, a] = admissible[s, a] / allowed
    return policy, reached


@compiled
def solve(dense, row, indptr, indices, data, rewards, start, admissible, horizon, roots, barrier, tolerance, earlier):
    """Return policy (H, S, A), values (H, S), the reachable states (H, S) and the number of iterations.

    Rewards, roots u and barrier m are (K, S, A), `earlier` is a policy to start from or empty. The tolerance is on the
    gap.
    """
    transitions = Transitions(dense, outer_products(dense), row, indptr, indices, data)
    tuples = reachable_tuples(transitions, start, admissible, horizon, UNREACHABLE_BELOW)
    terms = gather(tuples, rewards), gather(tuples, roots), gather(tuples, barrier)
    program = Program(transitions, tuples, start, terms[0], terms[1], terms[2])
    pair = new_pair(program)
    iterations = optimise(program, gather(tuples, earlier) if earlier.size else np.empty(0), tolerance, pair)
    keep_slacks(program, pair)
    policy, reached = expand(program, admissible, pair)
    return policy, pair.values, reached, iterations
