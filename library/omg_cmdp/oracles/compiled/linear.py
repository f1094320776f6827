"""The compiled loops of linear rewards. They share no memory: several threads may ask at once."""

import math

import numpy as np

from omg_cmdp.jit import compiled


@compiled
def regressions(roots, rows, means, leverages, rest):
    """Fill zᵀA⁻¹b, zᵀA⁻¹z and R⁻ᵀz of all pairs, from the roots R (d+1, d+1, pairs) of [[A, b], [bᵀ, ·]] = RᵀR.

    `rows` holds the features, one row for all pairs or one each. Forward substitution for Rᵀx = (z, 0), all pairs at
    once, which vectorises: then zᵀA⁻¹z = Σx², and what is left of the zero is -zᵀA⁻¹b.
    """
    full, pairs = roots.shape[0], roots.shape[2]
    one_row = len(rows) == 1
    for i in range(full):
        for pair in range(pairs):
            # The last row carries the target: what is left of zero there is -zᵀA⁻¹b.
            rest[i, pair] = 0.0 if i == full - 1 else rows[0 if one_row else pair, i]
    for pair in range(pairs):
        leverages[pair] = 0.0
    for j in range(full - 1):
        for pair in range(pairs):
            solved = rest[j, pair] / roots[j, j, pair]
            rest[j, pair] = solved
            leverages[pair] += solved * solved
        for i in range(j + 1, full):
            for pair in range(pairs):
                rest[i, pair] -= roots[j, i, pair] * rest[j, pair]
    for pair in range(pairs):
        means[pair] = -rest[full - 1, pair]


@compiled
def vaw(roots, rows, tempers, forecasts):
    """Fill ½ + zᵀA⁻¹b/(1 + τ·zᵀA⁻¹z), clipped to [0, 1], for every temper (the last ones kept) and pair."""
    means, leverages = np.empty((2, roots.shape[3]))
    rest = np.empty((roots.shape[1], roots.shape[3]))
    # The roots without a ridge and of temper 1 are kept in any case, and come first.
    first = len(roots) - len(tempers)
    for k in range(len(tempers)):
        regressions(roots[first + k], rows, means, leverages, rest)
        for pair in range(roots.shape[3]):
            forecast = 0.5 + means[pair] / (1.0 + tempers[k] * leverages[pair])
            forecasts[k, pair] = min(max(forecast, 0.0), 1.0)


@compiled
def rotate_in(roots, rows, groups, targets):
    """Add (z, y)(z, y)ᵀ to what the roots of `groups` stand for: one plane rotation per row of the root."""
    tempers, full = roots.shape[0], roots.shape[1]
    one_row, carried = len(rows) == 1, np.empty(full)
    for k in range(tempers):
        for h in range(len(groups)):
            group = groups[h]
            for i in range(full - 1):
                carried[i] = rows[0 if one_row else h, i]
            carried[full - 1] = targets[h]
            for j in range(full):
                # Nothing to rotate away: features are often sparse, as one-hot ones are.
                if carried[j] == 0.0:
                    continue
                # A plane rotation: no difference of large numbers, and so no digits lost.
                radius = math.sqrt(roots[k, j, j, group] ** 2 + carried[j] ** 2)
                cosine, sine = roots[k, j, j, group] / radius, carried[j] / radius
                for i in range(j, full):
                    old = roots[k, j, i, group]
                    roots[k, j, i, group] = cosine * old + sine * carried[i]
                    carried[i] = cosine * carried[i] - sine * old
