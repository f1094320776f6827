"""The Newton matrix M = B·D·Bᵀ of the planner: block tridiagonal, factored and solved step by step.

B is the flow operator: row (h, s) of B·q is Σ_a q_h(s, a) - Σ P_{h-1}(s|·)·q_{h-1}, so that B·q = start for an
occupancy measure, and Bᵀ·V = V_h(s) - P_h·V_{h+1}. With g = Σ_a D_h and the moments of `tuples.second_moments`,
elimination runs forward in h:

    S_0 = diag(g_0),   W_h = L_h⁻¹·mean_h  (S_h = L_h·L_hᵀ),   S_{h+1} = diag(g_{h+1}) + gram_h - W_hᵀ·W_h.

The subtraction is harmless: near the central path D = q²/m, so gram_h(s, s) <= (Σ q·P(s|·))²/m <= A·g_{h+1}(s), and
what rounding leaves of the difference stays small beside g. (For weights that differ by a factor ω: ω·A·g.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omg_cmdp.jit import inner, leaf
from omg_cmdp.planning.solver import blas
from omg_cmdp.planning.solver.tuples import BLAS_FROM, expect, loop_moments, push, scratch_size, second_moments


class Factor(NamedTuple):
    """Storage of the factor.

    The blocks L_h (nodes of h, nodes of h) are stored one after another in `lower`. Their diagonals hold reciprocals,
    so that solves multiply and do not divide.
    """

    lower: np.ndarray
    lower_at: np.ndarray  # (H + 1,) where L_h begins
    coupling: np.ndarray  # (nodes, S) the rows of all W_h
    gram: np.ndarray  # (S, S)
    scratch: np.ndarray
    sizes: np.ndarray  # (2,) int32, for calls of BLAS


@inner
def allocate(transitions, tuples):
    """Return a `Factor` of the right sizes."""
    horizon, states = tuples.layer.size - 1, transitions.dense.shape[1]
    at = np.zeros(horizon + 1, np.int64)
    for h in range(horizon):
        at[h + 1] = at[h] + (tuples.layer[h + 1] - tuples.layer[h]) ** 2
    coupling, gram = np.empty((tuples.state.size, states)), np.empty((states, states))
    scratch = np.empty(scratch_size(transitions, tuples))
    return Factor(np.empty(at[horizon]), at, coupling, gram, scratch, np.empty(2, np.int32))


@leaf
def factorise(transitions, tuples, weights, factor):
    """Factor M for the diagonal `weights` D (one per tuple); return False if M is not numerically definite."""
    if factor.gram.shape[0] < BLAS_FROM:
        return _factorise_by_loops(transitions, tuples, weights, factor)
    return _factorise_by_blas(transitions, tuples, weights, factor)


@leaf
def _factorise_by_blas(transitions, tuples, weights, factor):
    lower, coupling, gram = factor.lower, factor.coupling, factor.gram
    horizon = tuples.layer.size - 1
    for h in range(horizon):
        begin, end, at = tuples.layer[h], tuples.layer[h + 1], factor.lower_at[h]
        block = lower[at : factor.lower_at[h + 1]].reshape(end - begin, end - begin)
        _diagonal_block(tuples, h, weights, factor)
        if not blas.cholesky(block, factor.sizes):
            return False
        if h + 1 < horizon:
            second_moments(transitions, tuples, h, weights, factor.scratch, factor.sizes, coupling, gram)
            blas.solve_lower(block, coupling[begin:end], factor.sizes)
            blas.subtract_gram(coupling[begin:end], gram, factor.sizes)
        for i in range(end - begin):
            block[i, i] = 1.0 / block[i, i]
    return True


@leaf
def _factorise_by_loops(transitions, tuples, weights, factor):
    lower, coupling, gram = factor.lower, factor.coupling, factor.gram
    horizon = tuples.layer.size - 1
    for h in range(horizon):
        begin, size, at = tuples.layer[h], tuples.layer[h + 1] - tuples.layer[h], factor.lower_at[h]
        _diagonal_block(tuples, h, weights, factor)
        if not _loop_cholesky(lower, at, size):
            return False
        if h + 1 < horizon:
            loop_moments(transitions, tuples, h, weights, factor.scratch, coupling, gram)
            _loop_eliminate(lower, at, size, coupling, begin, gram)
    return True


@leaf
def _diagonal_block(tuples, h, weights, factor):
    """Set lower_h ← diag(Σ_a D_h) + the part of `gram` on the nodes of h, lower triangle."""
    lower, gram, state = factor.lower, factor.gram, tuples.state
    begin, size, at = tuples.layer[h], tuples.layer[h + 1] - tuples.layer[h], factor.lower_at[h]
    for i in range(size):
        for j in range(i + 1):
            lower[at + i * size + j] = gram[state[begin + i], state[begin + j]] if h > 0 else 0.0
        for t in range(tuples.first[begin + i], tuples.first[begin + i + 1]):
            lower[at + i * size + i] += weights[t]


@leaf
def _loop_cholesky(lower, at, size):
    for i in range(size):
        for j in range(i + 1):
            total = lower[at + i * size + j]
            for k in range(j):
                total -= lower[at + i * size + k] * lower[at + j * size + k]
            if i > j:
                lower[at + i * size + j] = total * lower[at + j * size + j]
            elif total > 0.0:
                lower[at + i * size + i] = 1.0 / np.sqrt(total)
            else:
                return False
    return True


@leaf
def _loop_eliminate(lower, at, size, coupling, begin, gram):
    states = gram.shape[0]
    for i in range(size):
        for k in range(i):
            factor = lower[at + i * size + k]
            for j in range(states):
                coupling[begin + i, j] -= factor * coupling[begin + k, j]
        scale = lower[at + i * size + i]
        for j in range(states):
            coupling[begin + i, j] *= scale
    # Whole rows of `gram`, with the upper triangle: equal loops of twice the work are faster than triangular ones.
    for j in range(states):
        for i in range(size):
            factor = coupling[begin + i, j]
            for k in range(states):
                gram[j, k] -= factor * coupling[begin + i, k]


@leaf
def flow(transitions, tuples, weights, out):
    """Set out (H, S) ← B·weights, on the nodes."""
    horizon, states = out.shape
    for s in range(states):
        out[0, s] = 0.0
    for h in range(horizon):
        if h + 1 < horizon:
            for s in range(states):
                out[h + 1, s] = 0.0
            push(transitions, tuples, h, weights, out)
            for s in range(states):
                out[h + 1, s] = -out[h + 1, s]
        for node in range(tuples.layer[h], tuples.layer[h + 1]):
            for i in range(tuples.first[node], tuples.first[node + 1]):
                out[h, tuples.state[node]] += weights[i]


@leaf
def flow_adjoint(transitions, tuples, values, out):
    """Set out_i ← V_h(s) - Σ_s' P_h(s'|s, a)·V_{h+1}(s') for every tuple i; values (H, S), V_H = 0."""
    horizon = values.shape[0]
    for h in range(horizon):
        if h + 1 < horizon:
            expect(transitions, tuples, h, values, out)
        for node in range(tuples.layer[h], tuples.layer[h + 1]):
            value = values[h, tuples.state[node]]
            for i in range(tuples.first[node], tuples.first[node + 1]):
                out[i] = value - out[i] if h + 1 < horizon else value


@leaf
def solve(tuples, factor, values):
    """Set values ← M⁻¹·values, values (H, S); entries outside the nodes become 0."""
    lower, coupling, layer, state = factor.lower, factor.coupling, tuples.layer, tuples.state
    horizon, states = values.shape
    for h in range(horizon):
        begin, size, at = layer[h], layer[h + 1] - layer[h], factor.lower_at[h]
        if h > 0:
            for i in range(begin - layer[h - 1]):
                carried = values[h - 1, i]
                for s in range(states):
                    values[h, s] += coupling[layer[h - 1] + i, s] * carried
        # From here until the backward pass, row h holds the solution compactly: entry i belongs to the i-th node.
        for i in range(size):
            total = values[h, state[begin + i]]
            for k in range(i):
                total -= lower[at + i * size + k] * values[h, k]
            values[h, i] = total * lower[at + i * size + i]
    for h in range(horizon - 1, -1, -1):
        begin, size, at = layer[h], layer[h + 1] - layer[h], factor.lower_at[h]
        if h + 1 < horizon:
            for i in range(size):
                total = 0.0
                for s in range(states):
                    total += coupling[begin + i, s] * values[h + 1, s]
                values[h, i] += total
        for i in range(size - 1, -1, -1):
            value = values[h, i] * lower[at + i * size + i]
            values[h, i] = value
            for k in range(i):
                values[h, k] -= lower[at + i * size + k] * value
        # Back to one entry per state. Node i belongs at index i or above, so going down overwrites nothing needed.
        for s in range(size, states):
            values[h, s] = 0.0
        for i in range(size - 1, -1, -1):
            s = state[begin + i]
            if s > i:
                values[h, s] = values[h, i]
                values[h, i] = 0.0
