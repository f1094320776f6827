"""The compiled loops of the softmax oracle, for one episode: all its examples share the features z."""

import math

import numpy as np

from omg_cmdp.jit import compiled


@compiled
def softmax(logits, probabilities):
    """Fill exp(u)/Σexp(u): 0 where the logit is -inf, and never 0 elsewhere."""
    largest = logits.max()
    total = 0.0
    for i in range(len(logits)):
        # Cut at e⁻⁶⁰⁰, not at zero: what can happen must never cost an infinite loss.
        possible = logits[i] > -math.inf
        probabilities[i] = math.exp(max(logits[i] - largest, -600.0)) if possible else 0.0
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
def softmax_table(weights, offsets, row, table):
    """Fill softmax(offsets + weights·z) for every pair; weights (pairs, K, d), offsets and table (pairs, K)."""
    logits = np.empty(weights.shape[1])
    for pair in range(len(weights)):
        logits_at(weights[pair], offsets[pair], row, logits)
        softmax(logits, table[pair])


@compiled
def softmax_draws(weights, offsets, row, deviations, normals, drawn):
    """Fill softmax(offsets + weights·z + deviations·normal) for every pair of every table of `drawn` (count, pairs, K).

    `normals` (count, n) has a number for each of the n logits that are possible, in order.
    """
    pairs, successors, _ = weights.shape
    logits, shifted = np.empty((2, successors))
    used = 0
    for pair in range(pairs):
        logits_at(weights[pair], offsets[pair], row, logits)
        # Every table of draws reads its own row of normals from the same place on.
        before = used
        for k in range(len(drawn)):
            used = before
            for i in range(successors):
                shifted[i] = logits[i]
                if logits[i] > -math.inf:
                    shifted[i] += deviations[pair, i] * normals[k, used]
                    used += 1
            softmax(shifted, drawn[k, pair])


@compiled
def tally(pairs, outcomes, possible, distinct, counts):
    """Fill the distinct pairs of an episode and how often each led where, (H, K); return how many they are.

    What cannot happen teaches nothing about what can, and is left out.
    """
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
        counts[k, outcomes[h]] += possible[pairs[h], outcomes[h]]
    return found


@compiled
def proximal_logits(start, variances, counts, logits, probabilities):
    """Fill the minimiser of Σ (u - start)²/(2·variance) + n·logsumexp(u) - counts·u over the possible logits.

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
            if probabilities[i] > 0.0:
                # The diagonal part of the Hessian, in units of the prior variance.
                damped = 1.0 + visits * probabilities[i] * variances[i]
                gradient = logits[i] - start[i] + variances[i] * (visits * probabilities[i] - counts[i])
                step[i] = gradient / damped
                along += probabilities[i] * step[i]
                shrink += probabilities[i] / damped
        lowest, highest = math.inf, -math.inf
        for i in range(len(start)):
            if probabilities[i] > 0.0:
                # Sherman and Morrison: the rank-one part moves all logits along one direction.
                stiffness = visits * probabilities[i] * variances[i]
                step[i] += stiffness / (1.0 + stiffness) * along / shrink
                lowest, highest = min(lowest, step[i]), max(highest, step[i])
        span = highest - lowest
        length = math.log1p(span) / span if span > 1e-8 else 1.0
        for i in range(len(start)):
            if probabilities[i] > 0.0:
                logits[i] -= length * step[i]
        # In logits, whose errors are relative errors of probabilities.
        if max(abs(lowest), abs(highest)) < 1e-12:
            break
    softmax(logits, probabilities)


@compiled
def newton_fit(weights, covariances, offsets, row, pairs, counts):
    """Fit the examples (counts of next states for each of `pairs`) against the quadratic summary of the past."""
    successors, size = weights.shape[1], weights.shape[2]
    start, logits, probabilities, variances = np.empty((4, successors))
    directions = np.empty((successors, size))
    for k in range(len(pairs)):
        weight, covariance = weights[pairs[k]], covariances[pairs[k]]
        logits_at(weight, offsets[pairs[k]], row, start)
        for i in range(successors):
            variances[i] = 0.0
            for j in range(size):
                directions[i, j] = 0.0
                for m in range(size):
                    directions[i, j] += covariance[i, j, m] * row[m]
                variances[i] += directions[i, j] * row[j]
        proximal_logits(start, variances, counts[k], logits, probabilities)
        visits = counts[k].sum()
        for i in range(successors):
            # Impossible, or a context of zeros: there is nothing to learn from it.
            if probabilities[i] == 0.0 or variances[i] == 0.0:
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
def newton_step(weights, inverses, offsets, row, pairs, counts, curvature):
    """Take W ← W - G·A⁻¹ for each of `pairs`, after A += κ·n·zzᵀ, G the gradient of the frozen forecast's loss.

    Return the largest squared norm of the new weights.
    """
    largest = 0.0
    successors, size = weights.shape[1], weights.shape[2]
    logits, probabilities = np.empty((2, successors))
    direction = np.empty(size)
    for k in range(len(pairs)):
        weight, inverse = weights[pairs[k]], inverses[pairs[k]]
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
        logits_at(weight, offsets[pairs[k]], row, logits)
        softmax(logits, probabilities)
        for i in range(successors):
            gradient = visits * probabilities[i] - counts[k, i]
            for j in range(size):
                weight[i, j] -= gradient * direction[j] / damped
        largest = max(largest, (weight * weight).sum())
    return largest
