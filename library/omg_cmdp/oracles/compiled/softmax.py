"""The compiled loops of the softmax oracle, for one episode: all its examples share the features z.

Rows are compressed. Of n transitions (s, a, s') that can happen, in order, those of pair p are starts[p]:starts[p+1],
and `successors` (n,) are their next states.
"""

import math

import numpy as np

from omg_cmdp.jit import compiled


@compiled
def softmax(logits, probabilities):
    """Fill exp(u)/Σexp(u), never 0."""
    largest = logits.max()
    total = 0.0
    for i in range(len(logits)):
        # Cut at e⁻⁶⁰⁰, not at zero: what can happen must never cost an infinite loss.
        probabilities[i] = math.exp(max(logits[i] - largest, -600.0))
        total += probabilities[i]
    for i in range(len(logits)):
        probabilities[i] /= total


@compiled
def logits_at(weights, offsets, row, logits):
    """Fill offsets + W·z of one pair; weights (K, d), offsets and logits (K,)."""
    for i in range(len(offsets)):
        logits[i] = offsets[i]
        for j in range(len(row)):
            logits[i] += weights[i, j] * row[j]


@compiled
def softmax_tables(weights, offsets, row, moves, starts, successors, tables):
    """Fill softmax(offsets + weights·z + moves[k]) of every pair into table k of `tables` (count, pairs, S).

    `weights` (n, d), `offsets` (n,) and `moves` (count, n) have a row or number for each transition that can happen.
    """
    logits, moved, probabilities = np.empty((3, tables.shape[2]))
    for pair in range(tables.shape[1]):
        first, end = starts[pair], starts[pair + 1]
        logits_at(weights[first:end], offsets[first:end], row, logits)
        for k in range(len(tables)):
            for i in range(first, end):
                moved[i - first] = logits[i - first] + moves[k, i]
            softmax(moved[: end - first], probabilities)
            for i in range(first, end):
                tables[k, pair, successors[i]] = probabilities[i - first]


@compiled
def tally(pairs, outcomes, starts, successors, distinct, counts):
    """Fill the distinct pairs of an episode, and how often each led to its 1st, 2nd, ... successor; return how many."""
    found = 0
    for h in range(len(pairs)):
        k = 0
        # A linear search: an episode visits few distinct pairs, and a hash table would cost more.
        while k < found and distinct[k] != pairs[h]:
            k += 1
        if k == found:
            distinct[k] = pairs[h]
            counts[k] = 0.0
            found += 1
        first, end = starts[pairs[h]], starts[pairs[h] + 1]
        counts[k, np.searchsorted(successors[first:end], outcomes[h])] += 1.0
    return found


@compiled
def proximal_logits(start, variances, counts, logits, probabilities):
    """Fill the minimiser of Σ (u - start)²/(2·variance) + n·logsumexp(u) - counts·u.

    Newton's method; the Hessian is diagonal minus rank one. Damped by log(1 + β)/β, β the range of the step, which
    makes it converge from anywhere for this (generalised self-concordant) function.
    """
    visits = counts.sum()
    step = np.zeros(len(start))
    logits[:] = start
    for _ in range(100):
        softmax(logits, probabilities)
        along = shrink = 0.0
        for i in range(len(start)):
            # The diagonal part of the Hessian, in units of the prior variance.
            damped = 1.0 + visits * probabilities[i] * variances[i]
            gradient = logits[i] - start[i] + variances[i] * (visits * probabilities[i] - counts[i])
            step[i] = gradient / damped
            along += probabilities[i] * step[i]
            shrink += probabilities[i] / damped
        lowest, highest = math.inf, -math.inf
        for i in range(len(start)):
            # Sherman and Morrison: the rank-one part moves all logits along one direction.
            stiffness = visits * probabilities[i] * variances[i]
            step[i] += stiffness / (1.0 + stiffness) * along / shrink
            lowest, highest = min(lowest, step[i]), max(highest, step[i])
        span = highest - lowest
        length = math.log1p(span) / span if span > 1e-8 else 1.0
        for i in range(len(start)):
            logits[i] -= length * step[i]
        # In logits, whose errors are relative errors of probabilities.
        if max(abs(lowest), abs(highest)) < 1e-12:
            break
    softmax(logits, probabilities)


@compiled
def newton_fit(weights, covariances, offsets, row, starts, pairs, counts):
    """Fit the examples (counts of next states for each of `pairs`) against the quadratic summary of the past."""
    size = weights.shape[1]
    scratch, directions = np.empty((4, counts.shape[1])), np.empty((counts.shape[1], size))
    for k in range(len(pairs)):
        first, end = starts[pairs[k]], starts[pairs[k] + 1]
        weight, covariance, seen = weights[first:end], covariances[first:end], counts[k, : end - first]
        start, logits = scratch[0, : end - first], scratch[1, : end - first]
        probabilities, variances = scratch[2, : end - first], scratch[3, : end - first]
        logits_at(weight, offsets[first:end], row, start)
        for i in range(end - first):
            variances[i] = 0.0
            for j in range(size):
                directions[i, j] = 0.0
                for m in range(size):
                    directions[i, j] += covariance[i, j, m] * row[m]
                variances[i] += directions[i, j] * row[j]
        proximal_logits(start, variances, seen, logits, probabilities)
        visits = seen.sum()
        for i in range(end - first):
            # A context of zeros: there is nothing to learn from it.
            if variances[i] == 0.0:
                continue
            # The smallest change of the weights, measured by the covariance, that reaches the new logit at z.
            move = (logits[i] - start[i]) / variances[i]
            curvature = visits * probabilities[i] * (1.0 - probabilities[i])
            # The rank-one update of the inverse, without inverting anything.
            shrink = curvature / (1.0 + curvature * variances[i])
            for j in range(size):
                weight[i, j] += move * directions[i, j]
                for m in range(size):
                    covariance[i, j, m] -= shrink * directions[i, j] * directions[i, m]


@compiled
def newton_step(weights, inverses, offsets, row, starts, pairs, counts, curvature):
    """Take W ← W - G·A⁻¹ for each of `pairs`, after A += κ·n·zzᵀ, G the gradient of the frozen forecast's loss.

    Return the largest squared norm of the new weights.
    """
    largest, size = 0.0, weights.shape[1]
    scratch, direction = np.empty((2, counts.shape[1])), np.empty(size)
    for k in range(len(pairs)):
        first, end = starts[pairs[k]], starts[pairs[k] + 1]
        weight, inverse = weights[first:end], inverses[pairs[k]]
        logits, probabilities = scratch[0, : end - first], scratch[1, : end - first]
        visits = counts[k].sum()
        leverage = 0.0
        for j in range(size):
            direction[j] = 0.0
            for m in range(size):
                direction[j] += inverse[j, m] * row[m]
            leverage += direction[j] * row[j]
        # A⁻¹ after A += κ·n·zzᵀ, by Sherman and Morrison.
        damped = 1.0 + curvature * visits * leverage
        for j in range(size):
            for m in range(size):
                inverse[j, m] -= curvature * visits / damped * direction[j] * direction[m]
        logits_at(weight, offsets[first:end], row, logits)
        softmax(logits, probabilities)
        for i in range(end - first):
            gradient = visits * probabilities[i] - counts[k, i]
            for j in range(size):
                weight[i, j] -= gradient * direction[j] / damped
        largest = max(largest, (weight * weight).sum())
    return largest
