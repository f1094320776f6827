"""The compiled loops of the oracles. One file that calls nothing outside itself, so that numba's cache is never stale.

Scratch space is passed in, and all arrays are contiguous: a call costs about a microsecond.
"""

import math

import numba
import numpy as np

compiled = numba.njit(cache=True)


@compiled
def exponential_weights(losses, rate, weights):
    """Fill w ∝ exp(-rate·losses), none below e⁻⁷⁰⁰ of the largest: who was wrong is never quite forgotten."""
    total = 0.0
    smallest = losses.min()
    for i in range(len(losses)):
        weights[i] = math.exp(max(-rate * (losses[i] - smallest), -700.0))
        total += weights[i]
    for i in range(len(losses)):
        weights[i] /= total


@compiled
def substitution(weights, forecasts, cell):
    """Return ½ + (g(0) - g(1))/2 with g(y) = -½·log Σ w·exp(-2(f - y)²), f the forecasts at `cell`."""
    if len(weights) == 1:  # where the formula would round
        return forecasts[0, cell]
    at_zero = at_one = 0.0
    for i in range(len(weights)):
        f = forecasts[i, cell]
        at_zero += weights[i] * math.exp(-2.0 * f * f)
        at_one += weights[i] * math.exp(-2.0 * (1.0 - f) * (1.0 - f))
    return min(max(0.5 + 0.25 * math.log(at_one / at_zero), 0.0), 1.0)


@compiled
def mean(weights, forecasts, cell):
    """Return Σ w·P at `cell`."""
    total = 0.0
    for i in range(len(weights)):
        total += weights[i] * forecasts[i, cell]
    return total


@compiled
def aggregate_square(losses, rate, forecasts, aggregate):
    """Fill the substitution of `forecasts` (K, cells), weighted by their losses so far."""
    weights = np.empty(len(losses))
    exponential_weights(losses, rate, weights)
    for cell in range(len(aggregate)):
        aggregate[cell] = substitution(weights, forecasts, cell)


@compiled
def aggregate_log(losses, rate, forecasts, aggregate):
    """Fill the mean of `forecasts` (K, cells), weighted by their losses so far."""
    weights = np.empty(len(losses))
    exponential_weights(losses, rate, weights)
    for cell in range(len(aggregate)):
        aggregate[cell] = mean(weights, forecasts, cell)


@compiled
def charge_square(losses, rate, forecasts, cells, rewards):
    """Add each forecaster's square loss at `cells` to `losses`; return the loss of their aggregate."""
    weights = np.empty(len(losses))
    exponential_weights(losses, rate, weights)
    own = 0.0
    for h in range(len(cells)):
        own += (substitution(weights, forecasts, cells[h]) - rewards[h]) ** 2
        for i in range(len(losses)):
            losses[i] += (forecasts[i, cells[h]] - rewards[h]) ** 2
    return own


@compiled
def charge_log(losses, rate, forecasts, cells, smallest):
    """Add each forecaster's log loss at `cells` to `losses`; return the loss of their aggregate."""
    weights = np.empty(len(losses))
    exponential_weights(losses, rate, weights)
    own = 0.0
    for h in range(len(cells)):
        own -= math.log(max(mean(weights, forecasts, cells[h]), smallest))
        for i in range(len(losses)):
            losses[i] -= math.log(max(forecasts[i, cells[h]], smallest))
    return own


@compiled
def locate(states, actions, shape, pairs):
    """Fill the places of (state, action) in a flat table of `shape` (steps, S, A); return whether all are in range."""
    steps, count_states, count_actions = shape
    for h in range(len(pairs)):
        if not (0 <= states[h] < count_states and 0 <= actions[h] < count_actions):
            return False
        pairs[h] = ((h if steps > 1 else 0) * count_states + states[h]) * count_actions + actions[h]
    return True


@compiled
def regressions(roots, rows, means, leverages, rest):
    """Fill zᵀA⁻¹b and zᵀA⁻¹z of all pairs, from the roots R (d+1, d+1, pairs) of [[A, b], [bᵀ, ·]] = RᵀR.

    `rows` holds the features, one row for all pairs or one each. Forward substitution for Rᵀx = (z, 0), all pairs at
    once, which vectorises: then zᵀA⁻¹z = Σx², and what is left of the zero is -zᵀA⁻¹b.
    """
    full, pairs = roots.shape[0], roots.shape[2]
    one_row = len(rows) == 1
    for i in range(full):
        for pair in range(pairs):
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
def vaw(roots, rows, tempers, forecasts, rest):
    """Fill ½ + zᵀA⁻¹b/(1 + τ·zᵀA⁻¹z), clipped to [0, 1], for every temper (the last ones kept) and pair."""
    means, leverages = np.empty(roots.shape[3]), np.empty(roots.shape[3])
    first = len(roots) - len(tempers)
    for k in range(len(tempers)):
        regressions(roots[first + k], rows, means, leverages, rest)
        for pair in range(roots.shape[3]):
            forecast = 0.5 + means[pair] / (1.0 + tempers[k] * leverages[pair])
            forecasts[k, pair] = min(max(forecast, 0.0), 1.0)


@compiled
def rotate_in(roots, rows, groups, targets, carried):
    """Add (z, y)(z, y)ᵀ to what the roots of `groups` stand for: one plane rotation per row of the root."""
    tempers, full = roots.shape[0], roots.shape[1]
    one_row = len(rows) == 1
    for k in range(tempers):
        for h in range(len(groups)):
            group = groups[h]
            for i in range(full - 1):
                carried[i] = rows[0 if one_row else h, i]
            carried[full - 1] = targets[h]
            for j in range(full):
                radius = math.sqrt(roots[k, j, j, group] ** 2 + carried[j] ** 2)
                if radius == 0.0:  # the residual, while every target was ½
                    continue
                cosine, sine = roots[k, j, j, group] / radius, carried[j] / radius
                for i in range(j, full):
                    old = roots[k, j, i, group]
                    roots[k, j, i, group] = cosine * old + sine * carried[i]
                    carried[i] = cosine * carried[i] - sine * old


@compiled
def softmax(logits, probabilities):
    """Fill exp(u)/Σexp(u): 0 where the logit is -inf, and never 0 elsewhere."""
    largest = logits.max()
    total = 0.0
    for i in range(len(logits)):
        possible = logits[i] > -math.inf
        probabilities[i] = math.exp(max(logits[i] - largest, -600.0)) if possible else 0.0
        total += probabilities[i]
    for i in range(len(logits)):
        probabilities[i] /= total


@compiled
def softmax_table(weights, offsets, row, table):
    """Fill softmax(offsets + weights·z) for every pair; weights (pairs, K, d), offsets and table (pairs, K)."""
    pairs, successors, size = weights.shape
    logits = np.empty(successors)
    for pair in range(pairs):
        for i in range(successors):
            logit = offsets[pair, i]
            for j in range(size):
                logit += weights[pair, i, j] * row[j]
            logits[i] = logit
        softmax(logits, table[pair])


@compiled
def tally(pairs, outcomes, possible, distinct, counts):
    """Fill the distinct pairs of an episode and how often each led where, (H, K); return how many they are.

    What cannot happen teaches nothing about what can, and is left out.
    """
    found = 0
    for h in range(len(pairs)):
        k = 0
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
                damped = 1.0 + visits * probabilities[i] * variances[i]
                gradient = logits[i] - start[i] + variances[i] * (visits * probabilities[i] - counts[i])
                step[i] = gradient / damped
                along += probabilities[i] * step[i]
                shrink += probabilities[i] / damped
        lowest, highest = math.inf, -math.inf
        for i in range(len(start)):
            if probabilities[i] > 0.0:
                stiffness = visits * probabilities[i] * variances[i]
                step[i] += stiffness / (1.0 + stiffness) * along / shrink
                lowest, highest = min(lowest, step[i]), max(highest, step[i])
        span = highest - lowest
        length = math.log1p(span) / span if span > 1e-8 else 1.0
        for i in range(len(start)):
            if probabilities[i] > 0.0:
                logits[i] -= length * step[i]
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
        for i in range(successors):
            start[i] = offsets[pairs[k], i]
            variances[i] = 0.0
            for j in range(size):
                start[i] += weight[i, j] * row[j]
                directions[i, j] = 0.0
                for m in range(size):
                    directions[i, j] += covariance[i, j, m] * row[m]
                variances[i] += directions[i, j] * row[j]
        proximal_logits(start, variances, counts[k], logits, probabilities)
        visits = counts[k].sum()
        for i in range(successors):
            if probabilities[i] == 0.0 or variances[i] == 0.0:
                continue
            move = (logits[i] - start[i]) / variances[i]
            curvature = visits * probabilities[i] * (1.0 - probabilities[i])
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
        damped = 1.0 + curvature * visits * leverage
        for j in range(size):
            for m in range(size):
                inverse[j, m] -= curvature * visits / damped * direction[j] * direction[m]
        for i in range(successors):
            logits[i] = offsets[pairs[k], i]
            for j in range(size):
                logits[i] += weight[i, j] * row[j]
        softmax(logits, probabilities)
        for i in range(successors):
            gradient = visits * probabilities[i] - counts[k, i]
            for j in range(size):
                weight[i, j] -= gradient * direction[j] / damped
        largest = max(largest, (weight * weight).sum())
    return largest
