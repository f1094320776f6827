"""Where the loop begins: cold, or from an earlier policy."""

from __future__ import annotations

import numpy as np

from omg_cmdp.planning.compiled import compiled
from omg_cmdp.planning.program import (
    copy_pair,
    duality_gap,
    hopeful_masses,
    make_dual,
    make_occupancy,
    new_pair,
    node_masses,
)
from omg_cmdp.planning.regularisers import wanted_product

FIRST_CENTRE = 0.003
"""How central a cold start is made, as a part of the mean reward at stake (measured: less fails more, more is slower)."""


@compiled
def cold_start(program, floor, pair):
    """Start from the uniform policy and a dual that does not trust its small marginals."""
    for i in range(pair.q.size):
        pair.q[i] = 1.0
    make_occupancy(program, pair.q, pair.values)
    masses, products = np.empty(program.tuples.state.size), np.empty(pair.q.size)
    hopeful_masses(program, masses, np.empty(program.start.size), pair.values)
    low, high = program.rewards.min(), program.rewards.max()
    centre = FIRST_CENTRE * pair.values.shape[0] * (high - low) / pair.q.size
    for i in range(pair.q.size):
        products[i] = centre + floor + wanted_product(program.kind, program.coefficients[i], pair.q[i])
    make_dual(program, masses, products, 2, pair)


@compiled
def warm_start(program, floor, policy, pair):
    """Replace `pair` by one made from an earlier policy if that has the smaller gap."""
    warm = new_pair(program)
    for i in range(policy.size):
        warm.q[i] = policy[i]
    make_occupancy(program, warm.q, warm.values)
    masses, products = np.empty(program.tuples.state.size), np.empty(warm.q.size)
    node_masses(program.tuples, warm.q, masses)
    for i in range(warm.q.size):
        products[i] = floor + wanted_product(program.kind, program.coefficients[i], warm.q[i])
    make_dual(program, masses, products, 30, warm)
    if duality_gap(program, warm) < duality_gap(program, pair):
        copy_pair(warm, pair)
