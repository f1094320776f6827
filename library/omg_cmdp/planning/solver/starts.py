"""Where the loop begins: cold, or from an earlier policy."""

from __future__ import annotations

import numpy as np

from omg_cmdp.jit import inner
from omg_cmdp.planning.solver.program import (
    copy_pair,
    duality_gap,
    hopeful_masses,
    make_dual,
    make_occupancy,
    new_pair,
    node_masses,
)
from omg_cmdp.planning.solver.terms import root_part
from omg_cmdp.planning.solver.tuples import gather

FIRST_CENTRE = 0.003
"""How central a cold start is, as a fraction of the stake per tuple (smaller fails more often, larger is slower)."""
BALANCED = 1e-3
"""The uniform policy's marginals are trusted unless one is below this fraction of its hopeful mass."""
ROUNDS = 5
"""The most rounds of `alternate`; each takes a third of the time of a Newton step, or less."""
SETTLED, CLOSE = 1e-3, 0.1
"""`alternate` ends with a gap below the first share of the wanted products, and fails if it is not below the second."""
FULL_CENTRE = 0.3
"""`FIRST_CENTRE` for a start that is centred by Newton's method first."""


@inner
def cold_start(program, floor, pair):
    """Start from the uniform policy and a dual that does not trust its small marginals; return θ.

    θ > 0 says that these are far too small (the end of a combination lock): the dual should be centred at θ first.
    """
    n = pair.q.size
    for i in range(n):
        pair.q[i] = 1.0
    make_occupancy(program, pair.q, pair.values)
    masses, hopeful = np.empty(program.tuples.state.size), np.empty(program.tuples.state.size)
    products = np.empty(n)
    node_masses(program.tuples, pair.q, masses)
    hopeful_masses(program, hopeful, np.empty(program.start.size), pair.values)
    most, least = -np.inf, np.inf
    for i in range(n):
        most, least = max(most, program.rewards[i]), min(least, program.rewards[i])
    stake = pair.values.shape[0] * (most - least) / n
    for i in range(n):
        products[i] = root_part(program.roots[i], pair.q[i]) + program.barrier[i]
        stake += products[i] / n
    balance = np.inf
    for node in range(masses.size):
        balance = min(balance, masses[node] / hopeful[node])
    centre = floor + stake * (FIRST_CENTRE if balance > BALANCED else FULL_CENTRE)
    for i in range(n):
        products[i] += centre
    make_dual(program, hopeful, products, np.int64(2), pair)  # a literal would be compiled in, twice
    return centre if balance <= BALANCED else 0.0


@inner
def alternate(program, floor, pair, trial):
    """Improve `pair` by policies that answer to the dual, and duals that answer to their occupancy; return whether.

    For the optimal dual the optimal policy is in proportion to products/z, and for its occupancy `make_dual` returns
    the optimal dual. A state that is visited more is worth less, so that the marginals would swing: each round takes
    them a quarter of the way, in logarithms. Where they do not settle, `pair` stays as it is. `trial` is work space.
    """
    n = pair.q.size
    masses, fresh = np.empty(program.tuples.state.size), np.empty(program.tuples.state.size)
    products, least, settled = np.empty(n), duality_gap(program, pair), False
    copy_pair(pair, trial)
    for turn in range(ROUNDS):
        wanted = 0.0
        for i in range(n):
            products[i] = floor + root_part(program.roots[i], trial.q[i]) + program.barrier[i]
            trial.q[i] = products[i] / trial.z[i]
            wanted += products[i]
        if least < SETTLED * wanted:
            break
        make_occupancy(program, trial.q, trial.values)
        node_masses(program.tuples, trial.q, fresh)
        for node in range(masses.size):
            masses[node] = fresh[node] if turn == 0 else masses[node] * np.sqrt(np.sqrt(fresh[node] / masses[node]))
        make_dual(program, masses, products, np.int64(2), trial)
        gap = duality_gap(program, trial)
        if gap < min(least, CLOSE * wanted):
            least, settled = gap, True
            copy_pair(trial, pair)
    return settled


@inner
def warm_start(program, floor, earlier, pair):
    """Replace `pair` by one made from an earlier policy if there is one with a smaller gap; return whether."""
    if earlier.size == 0:
        return False
    warm = new_pair(program)
    gather(program.tuples, earlier, warm.q)
    make_occupancy(program, warm.q, warm.values)
    masses, products = np.empty(program.tuples.state.size), np.empty(warm.q.size)
    node_masses(program.tuples, warm.q, masses)
    for i in range(warm.q.size):
        products[i] = floor + root_part(program.roots[i], warm.q[i]) + program.barrier[i]
    make_dual(program, masses, products, np.int64(30), warm)
    if not duality_gap(program, warm) < duality_gap(program, pair):
        return False
    copy_pair(warm, pair)
    return True
