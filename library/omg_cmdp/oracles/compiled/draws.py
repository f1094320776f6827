"""The compiled loops of draws: systematic resampling, and rows of Dirichlet distributions."""

import math

from omg_cmdp.jit import compiled


@compiled
def systematic(weights, uniforms, drawn):
    """Fill `drawn` (G, K) with indices of `weights` (G, N), by K uniform numbers (G, K) for each group.

    The first one, U, finds where (k + U)/K of all weight is reached, for k < K; the others shuffle (Fisher and Yates).
    """
    groups, count = uniforms.shape
    for group in range(groups):
        weight, indices = weights[group], drawn[group]
        total, last = 0.0, 0
        for i in range(len(weight)):
            total += weight[i]
            if weight[i] > 0.0:
                last = i  # no rounding leads beyond it
        index, reached = 0, weight[0]
        for k in range(count):
            # One uniform number for the whole comb: each index comes ⌊·⌋ or ⌈·⌉ times.
            wanted = (k + uniforms[group, 0]) / count * total
            while reached <= wanted and index < last:
                index += 1
                reached += weight[index]
            indices[k] = index
        for k in range(count - 1, 0, -1):
            # The comb sorts the indices; shuffled, the k-th draws of two oracles are independent.
            other = int(uniforms[group, k] * (k + 1))
            indices[k], indices[other] = indices[other], indices[k]


@compiled
def dirichlet(gammas, exponentials, shapes, places, width, drawn):
    """Fill the `places` (n,), in order, of rows of `width` entries in each of `drawn` (K, cells).

    With `gammas` (K, n) of `shapes` + 1 and standard `exponentials` (K, n), a row is ∝ G·exp(-E/shape). In logarithms:
    if all shapes of a row are small, the numbers themselves are zero.
    """
    for k in range(len(drawn)):
        table = drawn[k]
        first = 0
        while first < len(places):
            row, end, largest = places[first] // width, first, -math.inf
            while end < len(places) and places[end] // width == row:
                # log of G·U^(1/a), which stays finite where the number itself is zero.
                logarithm = math.log(gammas[k, end]) - exponentials[k, end] / shapes[end]
                largest = max(largest, logarithm)
                table[places[end]] = logarithm
                end += 1
            total = 0.0
            for i in range(first, end):
                # The largest becomes 1: no row is all zeros.
                table[places[i]] = math.exp(table[places[i]] - largest)
                total += table[places[i]]
            for i in range(first, end):
                table[places[i]] /= total
            first = end
