"""The tuples (h, s, a) that a plan is about, and the transition operator over them.

Only reachable states and admissible actions carry a variable: over the others the barrier would be -∞ (the program
as printed in the paper sums over all of them, and is -∞ everywhere). A *node* is a reachable (h, s); its tuples are
consecutive, so are the nodes of a step, and every quantity per tuple is one flat vector.

The operator comes in three forms, behind the same four functions: compiled loops for few states, BLAS for many, sparse
rows where most transitions are impossible. (Loops index whole arrays: a slice costs more than a row of five states.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omg_cmdp.jit import inner, leaf
from omg_cmdp.planning.solver import blas

BLAS_FROM = 16
"""With at least this many states, blocks go to BLAS and LAPACK; with fewer, to compiled loops (measured)."""


class Tuples(NamedTuple):
    """Indices of the reachable, admissible tuples, in the order h, s, a."""

    layer: np.ndarray  # (H + 1,) first node of each step
    state: np.ndarray  # (nodes,)
    first: np.ndarray  # (nodes + 1,) first tuple of each node
    action: np.ndarray  # (tuples,)
    row: np.ndarray  # (tuples,) where P(·|s, a) of the tuple is among the transition rows


class Transitions(NamedTuple):
    """The transition rows p = P(·|s, a) of all steps that differ. Empty arrays mark the forms that are not in use."""

    dense: np.ndarray  # (rows, S)
    outer: np.ndarray  # (rows, S(S+1)/2), for loops: the lower triangle of p·pᵀ
    indptr: np.ndarray  # for sparse rows, with the following two
    indices: np.ndarray
    data: np.ndarray


@inner
def outer_products(dense):
    """Return the lower triangles of p·pᵀ for all rows: with few states, sums of these are the quickest moments."""
    rows, states = dense.shape
    if states >= BLAS_FROM:
        return np.empty((0, 0))
    outer = np.empty((rows, states * (states + 1) // 2))
    for r in range(rows):
        at = 0
        for i in range(states):
            for j in range(i + 1):
                outer[r, at] = dense[r, i] * dense[r, j]
                at += 1
    return outer


@inner
def reachable_tuples(transitions, sparse, start, admissible, horizon, threshold):
    """Return the tuples whose state has at least `threshold` probability under the uniform policy.

    `sparse` is the sparse row of each (k, s, a), or empty.
    """
    states, actions = admissible.shape
    steps = len(sparse) if sparse.size else transitions.dense.shape[0] // (states * actions)
    layer = np.zeros(horizon + 1, np.int64)
    state = np.empty(horizon * states, np.int64)
    first = np.zeros(horizon * states + 1, np.int64)
    action, row = np.empty(horizon * states * actions, np.int64), np.empty(horizon * states * actions, np.int64)
    tuples = Tuples(layer, state, first, action, row)
    marginal = np.zeros((horizon, states))
    uniform = np.empty(horizon * states * actions)
    nodes = count = 0
    for s in range(states):
        marginal[0, s] = start[s]
    for h in range(horizon):
        k = h % steps
        for s in range(states):
            if marginal[h, s] >= threshold:
                begin = count
                for a in range(actions):
                    if admissible[s, a]:
                        action[count] = a
                        row[count] = sparse[k, s, a] if sparse.size else (k * states + s) * actions + a
                        count += 1
                for i in range(begin, count):
                    uniform[i] = marginal[h, s] / (count - begin)
                state[nodes] = s
                nodes += 1
                first[nodes] = count
        layer[h + 1] = nodes
        if h + 1 < horizon:
            push(transitions, tuples, h, uniform, marginal)
    return Tuples(layer, state[:nodes], first[: nodes + 1], action[:count], row[:count])


@leaf
def gather(tuples, array, out):
    """Set out ← the entries of `array` (K, S, A) for every tuple."""
    for h in range(tuples.layer.size - 1):
        k = h % array.shape[0]
        for node in range(tuples.layer[h], tuples.layer[h + 1]):
            for i in range(tuples.first[node], tuples.first[node + 1]):
                out[i] = array[k, tuples.state[node], tuples.action[i]]


@leaf
def expect(transitions, tuples, h, values, out):
    """Set out_i ← Σ_s' P_h(s'|s, a)·values(h + 1, s') for the tuples i of step h."""
    dense, indptr, row = transitions.dense, transitions.indptr, tuples.row
    states = dense.shape[1]
    begin, end = tuples.first[tuples.layer[h]], tuples.first[tuples.layer[h + 1]]
    if indptr.size:
        for i in range(begin, end):
            total = 0.0
            for j in range(indptr[row[i]], indptr[row[i] + 1]):
                total += transitions.data[j] * values[h + 1, transitions.indices[j]]
            out[i] = total
        return
    # Four sums side by side: one alone waits for each of its additions.
    fours = begin + (end - begin) // 4 * 4
    for i in range(begin, fours, 4):
        a, b, c, d = row[i], row[i + 1], row[i + 2], row[i + 3]
        w = x = y = z = 0.0
        for j in range(states):
            value = values[h + 1, j]
            w += dense[a, j] * value
            x += dense[b, j] * value
            y += dense[c, j] * value
            z += dense[d, j] * value
        out[i], out[i + 1], out[i + 2], out[i + 3] = w, x, y, z
    for i in range(fours, end):
        r, total = row[i], 0.0
        for j in range(states):
            total += dense[r, j] * values[h + 1, j]
        out[i] = total


@leaf
def push(transitions, tuples, h, weights, out):
    """Add Σ_i weights_i·P_h(s'|s, a), over the tuples i of step h, to out(h + 1, s')."""
    dense, indptr, row = transitions.dense, transitions.indptr, tuples.row
    states = dense.shape[1]
    begin, end = tuples.first[tuples.layer[h]], tuples.first[tuples.layer[h + 1]]
    if indptr.size:
        for i in range(begin, end):
            weight = weights[i]
            for j in range(indptr[row[i]], indptr[row[i] + 1]):
                out[h + 1, transitions.indices[j]] += weight * transitions.data[j]
        return
    fours = begin + (end - begin) // 4 * 4
    for i in range(begin, fours, 4):
        a, b, c, d = row[i], row[i + 1], row[i + 2], row[i + 3]
        w, x, y, z = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for j in range(states):
            total = out[h + 1, j] + w * dense[a, j]
            total += x * dense[b, j]
            total += y * dense[c, j]
            total += z * dense[d, j]
            out[h + 1, j] = total
    for i in range(fours, end):
        r, weight = row[i], weights[i]
        for j in range(states):
            out[h + 1, j] += weight * dense[r, j]


@leaf
def best_case(transitions, tuples, h, masses, best, out):
    """Add Σ_s masses(s)·max_a P_h(s'|s, a), over the nodes s of step h, to out(h + 1, s'); `best` (S,) is scratch."""
    dense, indptr = transitions.dense, transitions.indptr
    states = dense.shape[1]
    for node in range(tuples.layer[h], tuples.layer[h + 1]):
        for j in range(states):
            best[j] = 0.0
        for i in range(tuples.first[node], tuples.first[node + 1]):
            row = tuples.row[i]
            if indptr.size:
                for j in range(indptr[row], indptr[row + 1]):
                    best[transitions.indices[j]] = max(best[transitions.indices[j]], transitions.data[j])
            else:
                for j in range(states):
                    best[j] = max(best[j], dense[row, j])
        for j in range(states):
            out[h + 1, j] += masses[node] * best[j]


@leaf
def second_moments(transitions, tuples, h, weights, scratch, sizes, mean, gram):
    """Sum the rows p of step h with weights D: mean(node, ·) ← Σ_a D·p, and gram ← Σ_{s,a} D·p·pᵀ (lower triangle).

    mean is (nodes, S), gram (S, S), scratch as large as `scratch_size` says, sizes as for `blas`.
    """
    if transitions.indptr.size:
        _sparse_moments(transitions, tuples, h, weights, scratch, mean, gram)
    else:
        _blas_moments(transitions, tuples, h, weights, scratch, sizes, mean, gram)


@inner
def scratch_size(transitions, tuples):
    """Return how many floats `second_moments` needs to work in."""
    states = transitions.dense.shape[1]
    if transitions.indptr.size:
        return transitions.indptr.size
    if states < BLAS_FROM:
        return states * (states + 1) // 2
    widest = 0
    for h in range(tuples.layer.size - 1):
        widest = max(widest, tuples.first[tuples.layer[h + 1]] - tuples.first[tuples.layer[h]])
    return widest * states


@leaf
def loop_moments(transitions, tuples, h, weights, scratch, mean, gram):
    """Do what `second_moments` does, for few states."""
    dense, outer = transitions.dense, transitions.outer
    states = dense.shape[1]
    for t in range(scratch.size):
        scratch[t] = 0.0
    for node in range(tuples.layer[h], tuples.layer[h + 1]):
        for j in range(states):
            mean[node, j] = 0.0
        for i in range(tuples.first[node], tuples.first[node + 1]):
            row, weight = tuples.row[i], weights[i]
            for j in range(states):
                mean[node, j] += weight * dense[row, j]
            for t in range(scratch.size):
                scratch[t] += weight * outer[row, t]
    at = 0
    for i in range(states):
        for j in range(i + 1):
            gram[i, j] = scratch[at]
            at += 1


@leaf
def _blas_moments(transitions, tuples, h, weights, scratch, sizes, mean, gram):
    dense = transitions.dense
    states = dense.shape[1]
    offset, count = tuples.first[tuples.layer[h]], tuples.first[tuples.layer[h + 1]]
    rows = scratch[: (count - offset) * states].reshape(count - offset, states)
    for node in range(tuples.layer[h], tuples.layer[h + 1]):
        for j in range(states):
            mean[node, j] = 0.0
        for i in range(tuples.first[node], tuples.first[node + 1]):
            row, weight, root = tuples.row[i], weights[i], np.sqrt(weights[i])
            for j in range(states):
                p = dense[row, j]
                mean[node, j] += weight * p
                rows[i - offset, j] = root * p
    blas.gram(rows, gram, sizes)


@leaf
def _sparse_moments(transitions, tuples, h, weights, scratch, mean, gram):
    states = transitions.dense.shape[1]
    indptr, indices, data = transitions.indptr, transitions.indices, transitions.data
    for i in range(states):
        for j in range(states):
            gram[i, j] = 0.0
    for node in range(tuples.layer[h], tuples.layer[h + 1]):
        for j in range(states):
            mean[node, j] = 0.0
        for i in range(tuples.first[node], tuples.first[node + 1]):
            scratch[tuples.row[i]] = 0.0
        for i in range(tuples.first[node], tuples.first[node + 1]):
            scratch[tuples.row[i]] += weights[i]
        for i in range(tuples.first[node], tuples.first[node + 1]):
            row = tuples.row[i]
            weight, scratch[row] = scratch[row], 0.0
            if weight > 0.0:
                for x in range(indptr[row], indptr[row + 1]):
                    scaled = weight * data[x]
                    target = gram[indices[x]]
                    mean[node, indices[x]] += scaled
                    for y in range(indptr[row], x + 1):
                        target[indices[y]] += scaled * data[y]
