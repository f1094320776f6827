"""The compiled loops of the oracles. One file that calls nothing outside itself, so that numba's cache is never stale.

Scratch space is passed in, and all arrays are contiguous: a call costs about a microsecond.
"""

import math

import numpy as np

from omg_cmdp.jit import compiled, reduction


@compiled
def exponential_weights(losses, rate, weights):
    """Fill w ∝ exp(-rate·losses), none below e⁻⁷⁰⁰ of the largest: who was wrong is never quite forgotten."""
    total = 0.0
    smallest, least = losses.min(), math.exp(-700.0)
    for i in range(len(losses)):
        exponent = -rate * (losses[i] - smallest)
        weights[i] = math.exp(exponent) if exponent > -700.0 else least
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
    """Fill the substitution (...) of `forecasts` (K, ...), weighted by their losses so far."""
    weights = np.empty(len(losses))
    exponential_weights(losses, rate, weights)
    tables, filled = forecasts.reshape(len(losses), -1), aggregate.reshape(-1)
    for cell in range(len(filled)):
        filled[cell] = substitution(weights, tables, cell)


@compiled
def aggregate_log(losses, rate, forecasts, aggregate):
    """Fill the mean (...) of `forecasts` (K, ...), weighted by their losses so far."""
    weights = np.empty(len(losses))
    exponential_weights(losses, rate, weights)
    tables, filled = forecasts.reshape(len(losses), -1), aggregate.reshape(-1)
    for cell in range(len(filled)):
        filled[cell] = mean(weights, tables, cell)


@compiled
def charge_square(losses, rate, forecasts, cells, rewards):
    """Add the square loss of each of `forecasts` (K, ...) at `cells` to `losses`; return that of their aggregate."""
    weights, tables = np.empty(len(losses)), forecasts.reshape(len(losses), -1)
    exponential_weights(losses, rate, weights)
    own = 0.0
    for h in range(len(cells)):
        own += (substitution(weights, tables, cells[h]) - rewards[h]) ** 2
        for i in range(len(losses)):
            losses[i] += (tables[i, cells[h]] - rewards[h]) ** 2
    return own


@compiled
def charge_log(losses, rate, forecasts, cells, smallest):
    """Add the log loss of each of `forecasts` (K, ...) at `cells` to `losses`; return that of their aggregate."""
    weights, tables = np.empty(len(losses)), forecasts.reshape(len(losses), -1)
    exponential_weights(losses, rate, weights)
    own = 0.0
    for h in range(len(cells)):
        own -= math.log(max(mean(weights, tables, cells[h]), smallest))
        for i in range(len(losses)):
            losses[i] -= math.log(max(tables[i, cells[h]], smallest))
    return own


@reduction
def mix(weights, columns, mixed):
    """Fill the product of `weights` (K, N), K <= 2, and `columns` (cells, N), in one pass over memory."""
    first, last = weights[0], weights[-1]
    for cell in range(len(columns)):
        one = two = 0.0
        for n in range(columns.shape[1]):
            one += first[n] * columns[cell, n]
            two += last[n] * columns[cell, n]
        mixed[0, cell], mixed[-1, cell] = one, two


@compiled
def mix_class(losses, rates, columns, mixed):
    """Fill the means (K, ...) of a class's `columns` (cells, N) under its posterior at each of `rates`."""
    weights = np.empty((len(rates), len(losses)))
    for k in range(len(rates)):
        exponential_weights(losses, rates[k], weights[k])
    mix(weights, columns, mixed.reshape(len(rates), -1))


@compiled
def substitute_class(losses, rates, exponentials, forecasts):
    """Fill the substitution of a class at each of `rates`, from exp(-2f²) and then exp(-2(1-f)²), (2·cells, N)."""
    mixed = np.empty((len(rates), len(exponentials)))
    mix_class(losses, rates, exponentials, mixed)
    tables, cells = forecasts.reshape(len(rates), -1), len(exponentials) // 2
    for k in range(len(rates)):
        for cell in range(cells):
            forecast = 0.5 + 0.25 * math.log(mixed[k, cells + cell] / mixed[k, cell])
            tables[k, cell] = min(max(forecast, 0.0), 1.0)


@reduction
def mean_square(weights, columns, centres, means):
    """Fill Σ w·(f - centre)² of every row f of `columns` (cells, N)."""
    for cell in range(len(columns)):
        total = 0.0
        for n in range(len(weights)):
            total += weights[n] * (columns[cell, n] - centres[cell]) ** 2
        means[cell] = total


@compiled
def expected_square(losses, rate, columns, prediction, divergence):
    """Fill E(f - f̂)² under the posterior of a class at `rate`; `columns` (cells, N) hold its functions f."""
    weights = np.empty(len(losses))
    exponential_weights(losses, rate, weights)
    mean_square(weights, columns, prediction.reshape(-1), divergence.reshape(-1))


@compiled
def expected_hellinger(losses, rate, roots, prediction, divergence):
    """Fill 2 - 2·Σ √P̂·E√P over next states, for all pairs; `roots` (cells, N) hold the √P of a class."""
    mixed = np.empty((1, len(roots)))
    mix_class(losses, np.array([rate]), roots, mixed)
    predicted, filled, states = prediction.reshape(-1), divergence.reshape(-1), prediction.shape[-1]
    for pair in range(len(filled)):
        affinity = 0.0
        for cell in range(pair * states, (pair + 1) * states):
            affinity += math.sqrt(predicted[cell]) * mixed[0, cell]
        filled[pair] = 2.0 - 2.0 * affinity


@compiled
def charge_class_square(losses, columns, cells, rewards):
    """Add to each function's loss its square loss at `cells`."""
    for n in range(len(losses)):
        for h in range(len(cells)):
            losses[n] += (columns[cells[h], n] - rewards[h]) ** 2


@compiled
def charge_class_log(losses, columns, cells, kept, added, smallest):
    """Add to each function's loss its log loss at `cells`, of kept·P + added.

    Logarithms of products, not sums of logarithms; no product can underflow, since `smallest` is above 1e-151.
    """
    for n in range(len(losses)):
        product = 1.0
        for h in range(len(cells)):
            product *= max(kept * columns[cells[h], n] + added[h], smallest)
            if product < 1e-150:
                losses[n] -= math.log(product)
                product = 1.0
        losses[n] -= math.log(product)


@compiled
def locate(states, actions, steps, count_states, count_actions, pairs):
    """Fill the places of (state, action) in a flat table (steps, S, A); return whether all are in range."""
    for h in range(len(pairs)):
        if not (0 <= states[h] < count_states and 0 <= actions[h] < count_actions):
            return False
        pairs[h] = ((h if steps > 1 else 0) * count_states + states[h]) * count_actions + actions[h]
    return True


@compiled
def read_rewards(states, actions, rewards, steps, count_states, count_actions, pairs):
    """Fill the places of (state, action); return whether all are in range, and the rewards in [0, 1]."""
    for h in range(len(pairs)):
        if not 0.0 <= rewards[h] <= 1.0:  # NaN too
            return False
    return locate(states, actions, steps, count_states, count_actions, pairs)


@compiled
def read_transitions(states, actions, next_states, steps, count_states, count_actions, pairs, cells):
    """Fill the places of (state, action), and with the next state; return whether all are in range."""
    if not locate(states, actions, steps, count_states, count_actions, pairs):
        return False
    for h in range(len(pairs)):
        if not 0 <= next_states[h] < count_states:
            return False
        cells[h] = pairs[h] * count_states + next_states[h]
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
