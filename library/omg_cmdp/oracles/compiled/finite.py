"""The compiled loops of finite classes: one pass over a table (cells, N) whose rows are contiguous."""

import math

import numpy as np

from omg_cmdp.jit import compiled
from omg_cmdp.oracles.compiled.losses import exponential_weights
from omg_cmdp.oracles.compiled.sums import dot


@compiled
def mix_class(losses, rates, columns, mixed):
    """Fill the means (K, ...) of a class's `columns` (cells, N) under its posterior at each of `rates`, in one pass."""
    weights, tables = np.empty((len(rates), len(losses))), mixed.reshape(len(rates), -1)
    for k in range(len(rates)):
        exponential_weights(losses, rates[k], weights[k])
    for cell in range(len(columns)):
        for k in range(len(rates)):
            # A row of the class is read once for all rates: memory is what takes the time.
            tables[k, cell] = dot(weights[k], columns[cell])


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
def expected_square(losses, rate, columns, prediction, divergence):
    """Fill E(f - f̂)² under the posterior of a class at `rate`; `columns` (cells, N) hold its functions f."""
    weights, squares = np.empty((2, len(losses)))
    exponential_weights(losses, rate, weights)
    centres, filled = prediction.reshape(-1), divergence.reshape(-1)
    for cell in range(len(columns)):
        for n in range(len(losses)):
            squares[n] = (columns[cell, n] - centres[cell]) ** 2
        filled[cell] = dot(weights, squares)


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
            # Before it can underflow: a factor is at least 1e-150 itself.
            if product < 1e-150:
                losses[n] -= math.log(product)
                product = 1.0
        losses[n] -= math.log(product)


@compiled
def charge_class_indicators(losses, columns, cells, states):
    """Add to each function's loss Σ_s' (P(s') - 1[s' is the next state])² at `cells`; a row has `states` entries."""
    for n in range(len(losses)):
        for h in range(len(cells)):
            row = cells[h] - cells[h] % states
            # Σ (P - 1[s'])² = 1 - 2·P(s') + Σ P²: the sum over the row follows.
            losses[n] += 1.0 - 2.0 * columns[cells[h], n]
            for j in range(row, row + states):
                losses[n] += columns[j, n] ** 2
