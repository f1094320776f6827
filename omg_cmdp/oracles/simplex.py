"""Points of the simplex: by the log barrier, by least squares, and as contexts."""

from __future__ import annotations

import math

import numpy as np

from omg_cmdp.validation import FloatArray


def barrier_leader(gains: FloatArray, rate: FloatArray | float) -> FloatArray:
    """Return the maximiser of ⟨gains, w⟩ + (1/rate)·Σ log w over simplices along the last axis; 0 where a gain is -inf.

    w_i = 1/(rate·(μ - gain_i)), with μ such that they sum to one. Newton's method on 1/Σ(μ - gain)⁻¹ = 1/rate, which
    is concave and increasing: from the left it climbs to the root without overshooting. Each simplex stops by itself,
    so that its bits do not depend on the others.

    >>> barrier_leader(np.array([0.0, 0.0, -np.inf]), 0.5)
    array([0.5, 0.5, 0. ])
    """
    rate = np.asarray(rate)[..., None]
    behind = gains.max(axis=-1, keepdims=True) - gains
    lead = np.broadcast_to(1.0 / rate, (*gains.shape[:-1], 1))
    climbing = np.ones(lead.shape, dtype=np.bool_)
    for _ in range(60):
        terms = 1.0 / (lead + behind)
        total = terms.sum(axis=-1, keepdims=True)
        step = (total / rate - 1.0) * total / (terms**2).sum(axis=-1, keepdims=True)
        climbing = climbing & (step > 1e-14 * lead)
        if not climbing.any():
            break
        lead = np.where(climbing, lead + step, lead)
    weights = 1.0 / (lead + behind)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def barrier_bound(episodes: int, groups: int, coordinates: int) -> float:
    """Return G·[2DL + L·√(D(1 + T/G)) + 1.6·√(D·T/G)] + 1, L = log(T + 1): docs/oracles.md, Theorem 5."""
    growth, share = math.log1p(episodes), episodes / groups
    regulariser = 2.0 * coordinates * growth + growth * math.sqrt(coordinates * (1.0 + share))
    return groups * (regulariser + 1.6 * math.sqrt(coordinates * share)) + 1.0


def simplex_least_squares(information: FloatArray, scores: FloatArray) -> FloatArray:
    """Return roughly argmin ½wᵀMw - wᵀb over the simplex: drop negative coordinates and solve again for the rest.

    >>> simplex_least_squares(np.eye(3), np.array([0.8, 0.4, -0.9])).round(2)
    array([0.7, 0.3, 0. ])
    """
    kept = np.arange(len(scores))
    while True:
        block = information[np.ix_(kept, kept)]
        solved = np.linalg.solve(block, np.stack([scores[kept], np.ones(len(kept))], axis=1))
        free, slope = solved.T
        point = free + (1.0 - free.sum()) / slope.sum() * slope
        if point.min() >= 0.0:
            break
        kept = kept[point > 0.0]
    weights = np.zeros(len(scores))
    weights[kept] = point / point.sum()
    return weights
