"""The compiled loops of the losses: aggregates, the account, the places of an episode in a table."""

import math

import numpy as np

from omg_cmdp.jit import compiled


@compiled
def exponential_weights(losses, rate, weights):
    """Fill w ∝ exp(-rate·losses), none below e⁻⁷⁰⁰ of the largest, so that none is lost for good."""
    total = 0.0
    # Relative to the smallest loss: only differences matter, and the best function has weight 1.
    smallest, least = losses.min(), math.exp(-700.0)
    for i in range(len(losses)):
        exponent = -rate * (losses[i] - smallest)
        # e⁻⁷⁰⁰ is near the smallest normal double: a lower weight would be lost for good.
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
    # Rounding may leave [0, 1] by an ulp.
    return min(max(0.5 + 0.25 * math.log(at_one / at_zero), 0.0), 1.0)


@compiled
def mean(weights, forecasts, cell):
    """Return Σ w·P at `cell`."""
    total = 0.0
    for i in range(len(weights)):
        total += weights[i] * forecasts[i, cell]
    return total


@compiled
def aggregate(losses, rate, forecasts, squares, aggregate):
    """Fill the aggregate (...) of `forecasts` (K, ...), weighted by their losses so far, under square or log loss."""
    weights = np.empty(len(losses))
    exponential_weights(losses, rate, weights)
    tables, filled = forecasts.reshape(len(losses), -1), aggregate.reshape(-1)
    for cell in range(len(filled)):
        filled[cell] = substitution(weights, tables, cell) if squares else mean(weights, tables, cell)


@compiled
def charge_square(losses, rate, forecasts, cells, rewards):
    """Add the square loss of each of `forecasts` (K, ...) at `cells` to `losses`; return that of their aggregate."""
    weights, tables = np.empty(len(losses)), forecasts.reshape(len(losses), -1)
    exponential_weights(losses, rate, weights)
    own = 0.0
    for h in range(len(cells)):
        own += (substitution(weights, tables, cells[h]) - rewards[h]) ** 2
        for i in range(len(losses)):
            # After the aggregate was charged, whose weights stay frozen for the episode.
            losses[i] += (tables[i, cells[h]] - rewards[h]) ** 2
    return own


@compiled
def charge_log(losses, rate, forecasts, cells, smallest):
    """Add -log(P + smallest) of each of `forecasts` (K, ...) at `cells` to `losses`; return that of their aggregate."""
    weights, tables = np.empty(len(losses)), forecasts.reshape(len(losses), -1)
    exponential_weights(losses, rate, weights)
    own = 0.0
    for h in range(len(cells)):
        own -= math.log(mean(weights, tables, cells[h]) + smallest)
        for i in range(len(losses)):
            losses[i] -= math.log(tables[i, cells[h]] + smallest)
    return own


@compiled
def locate(states, actions, steps, count_states, count_actions, pairs):
    """Fill the places of (state, action) in a flat table (steps, S, A); return whether all are in range."""
    for h in range(len(pairs)):
        if not (0 <= states[h] < count_states and 0 <= actions[h] < count_actions):
            return False
        # A table without steps has one layer for all of them.
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
