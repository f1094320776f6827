"""The concave program of one plan, flat over its tuples, and the operations on a primal-dual pair (q, V) of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omg_cmdp.jit import inner, leaf
from omg_cmdp.planning.solver import blocks
from omg_cmdp.planning.solver.terms import gap_bound, root_part
from omg_cmdp.planning.solver.tuples import Transitions, Tuples, best_case, expect, push


class Program(NamedTuple):
    """max ⟨q, r⟩ + Σ φ(q) over the occupancy measures q of `transitions` that begin in `start`; see `terms` for φ."""

    transitions: Transitions
    tuples: Tuples
    start: np.ndarray  # (S,)
    rewards: np.ndarray  # (tuples,)
    roots: np.ndarray  # (tuples,), u of √(u·q)
    barrier: np.ndarray  # (tuples,), m of m·log q


class Pair(NamedTuple):
    """A primal q and a dual V, both feasible: q > 0 is an occupancy measure, the slacks z = Bᵀ·V - r are positive."""

    q: np.ndarray  # (tuples,)
    values: np.ndarray  # (H, S)
    z: np.ndarray  # (tuples,)


@inner
def new_pair(program):
    """Return uninitialised storage for a pair of `program`; values are 0 outside the nodes."""
    rows = np.empty((2, program.rewards.size))
    return Pair(rows[0], np.zeros((program.tuples.layer.size - 1, program.start.size)), rows[1])


@leaf
def copy_pair(source, target):
    """Set target ← source."""
    for i in range(source.q.size):
        target.q[i] = source.q[i]
        target.z[i] = source.z[i]
    for h in range(source.values.shape[0]):
        for s in range(source.values.shape[1]):
            target.values[h, s] = source.values[h, s]


@leaf
def make_occupancy(program, q, marginal):
    """Make `q` > 0 an exact occupancy measure: keep its policy q/Σ_a q, recompute the state marginals from the start.

    `marginal` (H, S) is scratch.
    """
    tuples, start = program.tuples, program.start
    horizon = tuples.layer.size - 1
    for s in range(start.size):
        marginal[0, s] = start[s]
    for h in range(horizon):
        for node in range(tuples.layer[h], tuples.layer[h + 1]):
            total = 0.0
            for i in range(tuples.first[node], tuples.first[node + 1]):
                total += q[i]
            scale = marginal[h, tuples.state[node]] / total
            for i in range(tuples.first[node], tuples.first[node + 1]):
                q[i] *= scale
        if h + 1 < horizon:
            for s in range(start.size):
                marginal[h + 1, s] = 0.0
            push(program.transitions, tuples, h, q, marginal)


@leaf
def make_slacks(program, pair):
    """Recompute z = Bᵀ·V - r from the values."""
    blocks.flow_adjoint(program.transitions, program.tuples, pair.values, pair.z)
    for i in range(pair.z.size):
        pair.z[i] -= program.rewards[i]


@leaf
def duality_gap(program, pair):
    """Return a bound on the pair's duality gap, tight near the optimum; +∞ if the pair is not interior."""
    total = 0.0
    for i in range(pair.q.size):
        if not (pair.q[i] > 0.0 and pair.z[i] > 0.0):
            return np.inf
        root = root_part(program.roots[i], pair.q[i])
        total += gap_bound(root, program.barrier[i], pair.q[i] * pair.z[i])
    return total


@leaf
def node_masses(tuples, q, masses):
    """Set masses ← Σ_a q, the state marginals."""
    for node in range(masses.size):
        masses[node] = 0.0
        for i in range(tuples.first[node], tuples.first[node + 1]):
            masses[node] += q[i]


@leaf
def hopeful_masses(program, masses, best, bound):
    """Set the masses of each step in proportion to an upper bound on what any policy gives the state:

    b_0 = start, b_{h+1}(s') = min(1, Σ_s b_h(s)·max_a P_h(s'|s, a)).

    The uniform policy reaches the end of a combination lock with probability A^-H; a dual made from such marginals is
    exponentially large. One made from these is at most linear in the number of tuples. `best` (S,) and `bound` (H, S)
    are scratch.
    """
    tuples, start = program.tuples, program.start
    horizon = tuples.layer.size - 1
    for s in range(start.size):
        bound[0, s] = start[s]
    for h in range(horizon):
        total = 0.0
        for node in range(tuples.layer[h], tuples.layer[h + 1]):
            masses[node] = min(1.0, bound[h, tuples.state[node]])
            total += masses[node]
        if h + 1 < horizon:
            for s in range(start.size):
                bound[h + 1, s] = 0.0
            best_case(program.transitions, tuples, h, masses, best, bound)
        for node in range(tuples.layer[h], tuples.layer[h + 1]):
            masses[node] /= total


@leaf
def make_dual(program, masses, products, sweeps, pair):
    """Choose V backward from the last step so that Σ_a products/z equals the node's mass; fill in the slacks too.

    With the masses and products of an optimal q this is its optimal dual. The sums match after enough Newton `sweeps`
    (4 give a few digits, 30 all of them); before that they are too large.
    """
    tuples, rewards, values, z = program.tuples, program.rewards, pair.values, pair.z
    horizon = values.shape[0]
    for h in range(horizon - 1, -1, -1):
        if h + 1 < horizon:
            expect(program.transitions, tuples, h, values, z)
        for s in range(values.shape[1]):
            values[h, s] = 0.0
        for node in range(tuples.layer[h], tuples.layer[h + 1]):
            first, last = tuples.first[node], tuples.first[node + 1]
            best = -np.inf
            for i in range(first, last):
                z[i] = rewards[i] + (z[i] if h + 1 < horizon else 0.0)
                best = max(best, z[i])
            shift = 0.0
            for i in range(first, last):
                z[i] = best - z[i]
                shift = max(shift, products[i] / masses[node] - z[i])
            # 1/Σ products/(shift + gap) is concave and increasing: Newton's method climbs to the root from below.
            for _ in range(sweeps):
                total = slope = 0.0
                for i in range(first, last):
                    share = products[i] / (shift + z[i])
                    total += share
                    slope += share / (shift + z[i])
                shift += total * (total / masses[node] - 1.0) / slope
                if total <= masses[node] * (1.0 + 1e-10):
                    break
            values[h, tuples.state[node]] = best + shift
            for i in range(first, last):
                z[i] += shift
