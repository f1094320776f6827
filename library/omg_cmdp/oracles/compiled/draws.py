"""The compiled loop of systematic resampling."""

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
