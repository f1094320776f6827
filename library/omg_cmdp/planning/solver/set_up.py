"""From tables to the program that is solved, and from its solution back to tables."""

from __future__ import annotations

import numpy as np

from omg_cmdp.jit import inner
from omg_cmdp.mdp.thresholds import UNREACHABLE_BELOW
from omg_cmdp.planning.solver.program import Program
from omg_cmdp.planning.solver.tuples import Transitions, expect, gather, outer_products, reachable_tuples

ROUNDING = 1e-14
"""Relative slack that `keep_slacks` leaves: a few hundred roundings of a sum over states."""


@inner
def set_up(dense, row, indptr, indices, data, rewards, start, admissible, horizon, roots, barrier):
    """Return the program of these tables; rewards, roots u and barrier m are (K, S, A)."""
    rows = dense.reshape(-1, dense.shape[3])
    transitions = Transitions(rows, outer_products(rows), indptr, indices, data)
    tuples = reachable_tuples(transitions, row, start, admissible, horizon, UNREACHABLE_BELOW)
    terms = np.empty((3, tuples.action.size))
    gather(tuples, rewards, terms[0])
    gather(tuples, roots, terms[1])
    gather(tuples, barrier, terms[2])
    return Program(transitions, tuples, start, terms[0], terms[1], terms[2])


@inner
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


@inner
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
