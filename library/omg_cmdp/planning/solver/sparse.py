"""Sparse transition rows: the non-zeros, with equal rows of one state merged."""

from __future__ import annotations

import numpy as np

from omg_cmdp.jit import compiled


@compiled
def _equal_rows(dense, k, s, a, b):
    for j in range(dense.shape[3]):
        if dense[k, s, a, j] != dense[k, s, b, j]:
            return False
    return True


@compiled
def sparse_rows(dense, admissible):
    """Return row (K, S, A), indptr, indices and data of the non-zeros; equal rows of one state share a sparse row."""
    steps, states, actions = dense.shape[:3]
    row = np.zeros((steps, states, actions), np.int64)
    source = np.empty((steps * states * actions, 3), np.int64)
    indptr = np.zeros(steps * states * actions + 1, np.int64)
    rows = 0
    for k in range(steps):
        for s in range(states):
            known = rows
            for a in range(actions):
                if not admissible[s, a]:
                    continue
                twin = known
                while twin < rows and not _equal_rows(dense, k, s, a, source[twin, 2]):
                    twin += 1
                row[k, s, a] = twin
                if twin == rows:
                    source[rows, 0], source[rows, 1], source[rows, 2] = k, s, a
                    count = 0
                    for j in range(states):
                        count += dense[k, s, a, j] != 0.0
                    indptr[rows + 1] = indptr[rows] + count
                    rows += 1
    indices, data = np.empty(indptr[rows], np.int64), np.empty(indptr[rows])
    for r in range(rows):
        at = indptr[r]
        for j in range(states):
            p = dense[source[r, 0], source[r, 1], source[r, 2], j]
            if p != 0.0:
                indices[at] = j
                data[at] = p
                at += 1
    return row, indptr[: rows + 1].copy(), indices, data
