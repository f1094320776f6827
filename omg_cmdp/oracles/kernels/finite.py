"""The compiled loops of finite classes: one pass over a table (cells, N) whose rows are contiguous."""

import math

import numpy as np

from omg_cmdp.jit import compiled
from omg_cmdp.oracles.kernels.losses import exponential_weights


@compiled
def mix(weights, columns, mixed):
    """Fill the product of `weights` (K, N), K <= 2, and `columns` (cells, N), in one pass over memory.

    Four sums side by side, because one alone is a chain of dependent additions.
    """
    first, last = weights[0], weights[-1]
    size = columns.shape[1]
    whole = size // 4 * 4
    for cell in range(len(columns)):
        a = b = c = d = e = f = g = h = 0.0
        for n in range(0, whole, 4):
            p, q, r, s = columns[cell, n], columns[cell, n + 1], columns[cell, n + 2], columns[cell, n + 3]
            a, b, c, d = a + first[n] * p, b + first[n + 1] * q, c + first[n + 2] * r, d + first[n + 3] * s
            e, f, g, h = e + last[n] * p, f + last[n + 1] * q, g + last[n + 2] * r, h + last[n + 3] * s
        for n in range(whole, size):
            a += first[n] * columns[cell, n]
            e += last[n] * columns[cell, n]
        mixed[0, cell], mixed[-1, cell] = (a + b) + (c + d), (e + f) + (g + h)


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


@compiled
def mean_square(weights, columns, centres, means):
    """Fill Σ w·(f - centre)² of every row f of `columns` (cells, N), by four sums side by side."""
    size = len(weights)
    whole = size // 4 * 4
    for cell in range(len(columns)):
        centre = centres[cell]
        a = b = c = d = 0.0
        for n in range(0, whole, 4):
            a += weights[n] * (columns[cell, n] - centre) ** 2
            b += weights[n + 1] * (columns[cell, n + 1] - centre) ** 2
            c += weights[n + 2] * (columns[cell, n + 2] - centre) ** 2
            d += weights[n + 3] * (columns[cell, n + 3] - centre) ** 2
        for n in range(whole, size):
            a += weights[n] * (columns[cell, n] - centre) ** 2
        means[cell] = (a + b) + (c + d)


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
def charge_class_log(losses, columns, cells, kept, added):
    """Add to each function's loss -log(kept·P + added) at `cells`.

    Logarithms of products, not sums of logarithms; no product can underflow, since `added` is above 1e-151.
    """
    for n in range(len(losses)):
        product = 1.0
        for h in range(len(cells)):
            product *= kept * columns[cells[h], n] + added[h]
            if product < 1e-150:
                losses[n] -= math.log(product)
                product = 1.0
        losses[n] -= math.log(product)
