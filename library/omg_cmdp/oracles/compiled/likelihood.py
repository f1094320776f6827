"""The compiled loop of maximum likelihood for softmax dynamics."""

import math

import numpy as np

from omg_cmdp.jit import compiled
from omg_cmdp.oracles.compiled.softmax import logits_at, softmax

MOST_STEPS = 100


@compiled
def derivatives(weights, offsets, rows, counts, ridge, gradient, hessian):
    """Fill gradient and lower Hessian, (K·d,) and (K·d, K·d), of Σ -counts·log softmax + (ridge/2)·‖W‖²."""
    successors, size = weights.shape
    logits, probabilities = np.empty((2, successors))
    hessian[:] = 0.0
    for i in range(successors):
        for j in range(size):
            gradient[i * size + j] = ridge * weights[i, j]
            hessian[i * size + j, i * size + j] = ridge
    for line in range(len(rows)):
        row, visits = rows[line], counts[line].sum()
        logits_at(weights, offsets, row, logits)
        softmax(logits, probabilities)
        for i in range(successors):
            p = probabilities[i]
            for j in range(size):
                gradient[i * size + j] += (visits * p - counts[line, i]) * row[j]
            # The lower half only: the matrix is symmetric, and Cholesky reads no more.
            for k in range(i + 1):
                curvature = visits * (p * (1.0 - p) if k == i else -p * probabilities[k])
                for j in range(size):
                    for m in range(size):
                        hessian[i * size + j, k * size + m] += curvature * row[j] * row[m]


@compiled
def solve(matrix, vector):
    """Solve in place with a positive definite matrix of which the lower half is read: Cholesky, forward, backward."""
    n = len(vector)
    for j in range(n):
        for i in range(j, n):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            # Positive by the ridge: no pivoting is needed.
            matrix[i, j] = math.sqrt(total) if i == j else total / matrix[j, j]
    for i in range(n):
        for k in range(i):
            vector[i] -= matrix[i, k] * vector[k]
        vector[i] /= matrix[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            vector[i] -= matrix[k, i] * vector[k]
        vector[i] /= matrix[i, i]


@compiled
def widest(step, rows):
    """Return the largest range, over the rows z, of the logits' change step·z."""
    successors, size = step.shape
    found = 0.0
    for line in range(len(rows)):
        lowest, highest = math.inf, -math.inf
        for i in range(successors):
            change = 0.0
            for j in range(size):
                change += step[i, j] * rows[line, j]
            lowest, highest = min(lowest, change), max(highest, change)
        found = max(found, highest - lowest)
    return found


@compiled
def maximum_likelihood(weights, offsets, rows, counts, ridge):
    """Move the weights (K, d) of one pair to the fit of `counts` (lines, K) at features `rows` (lines, d).

    Newton's method from where they are, damped by log(1 + β)/β, β the range of the change in logits, which makes it
    converge from anywhere for this (generalised self-concordant) function.
    """
    successors, size = weights.shape
    gradient = np.empty(successors * size)
    hessian = np.empty((successors * size, successors * size))
    for _ in range(MOST_STEPS):
        derivatives(weights, offsets, rows, counts, ridge, gradient, hessian)
        solve(hessian, gradient)
        step = gradient.reshape(successors, size)
        span = widest(step, rows)
        length = math.log1p(span) / span if span > 1e-8 else 1.0
        largest = 0.0
        for i in range(successors):
            for j in range(size):
                weights[i, j] -= length * step[i, j]
                largest = max(largest, abs(step[i, j]))
        # In weights; the fit is warm, so that one or two steps are the rule.
        if largest < 1e-10:
            break
