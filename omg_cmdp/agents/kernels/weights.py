"""The compiled loops of the exploration rules: uncertainties, gains, and the weights that a plan ends with."""

import math

import numpy as np

from omg_cmdp.jit import compiled


@compiled
def backup_errors(ranges, reward_errors, kernel_errors, scale, errors):
    """Fill scale·(u_f + range_h²·u_P), (H, S, A): squared errors of r + P·V, from those of r and P, (K, S, A) each."""
    horizon, states, actions = errors.shape
    for h in range(horizon):
        f, p = h % reward_errors.shape[0], h % kernel_errors.shape[0]
        for s in range(states):
            for a in range(actions):
                errors[h, s, a] = scale * (reward_errors[f, s, a] + ranges[h] ** 2 * kernel_errors[p, s, a])


@compiled
def add_gains(kernel, rewards, start, admissible, drawn_rewards, drawn_kernels, lows, highs, gains):
    """Add E[q_k·ẽ_k²] over K drawn models, (K, steps, S, A) and (K, steps, S, A, S), to `gains` (H, S, A).

    Values from step h on lie in [lows_h, highs_h], also those of the drawn models.
    """
    horizon, states, _ = gains.shape
    values, chosen = np.zeros((horizon + 1, states)), np.empty((horizon, states), np.int64)
    visits, errors = np.empty((horizon + 1, states)), np.empty((horizon, states))
    for k in range(len(drawn_rewards)):
        best_plan(drawn_kernels[k], drawn_rewards[k], admissible, lows, highs, chosen, values)
        gain = followed(kernel, rewards, start, chosen, values, visits, errors)
        if gain > 0.0:
            hoped = 0.0
            for h in range(horizon):
                for s in range(states):
                    hoped += visits[h, s] * max(errors[h, s], 0.0)
            for h in range(horizon):
                for s in range(states):
                    error = max(errors[h, s], 0.0) * (gain / hoped)
                    gains[h, s, chosen[h, s]] += visits[h, s] * error * error / len(drawn_rewards)


@compiled
def best_plan(kernel, rewards, admissible, lows, highs, chosen, values):
    """Fill optimal actions (H, S) and values (H + 1, S), cut to [lows_h, highs_h]; ties go to the lowest action."""
    horizon, states = chosen.shape
    for s in range(states):
        values[horizon, s] = 0.0
    for h in range(horizon - 1, -1, -1):
        k, r = h % kernel.shape[0], h % rewards.shape[0]
        for s in range(states):
            best, found = -np.inf, -1
            for a in range(admissible.shape[1]):
                if admissible[s, a]:
                    value = rewards[r, s, a]
                    for j in range(states):
                        value += kernel[k, s, a, j] * values[h + 1, j]
                    if value > best:
                        best, found = value, a
            chosen[h, s] = found
            values[h, s] = min(max(best, lows[h]), highs[h])


@compiled
def followed(kernel, rewards, start, chosen, values, visits, errors):
    """Fill where the actions lead, (H, S), and the errors V_h - r - P·V_{h+1} there; return Σ visits·errors."""
    horizon, states = chosen.shape
    total = 0.0
    visits[1:] = 0.0
    for s in range(states):
        visits[0, s] = start[s]
    for h in range(horizon):
        k, r = h % kernel.shape[0], h % rewards.shape[0]
        for s in range(states):
            errors[h, s] = 0.0
            if visits[h, s] > 0.0:
                a = chosen[h, s]
                expected = rewards[r, s, a]
                for j in range(states):
                    expected += kernel[k, s, a, j] * values[h + 1, j]
                    visits[h + 1, j] += visits[h, s] * kernel[k, s, a, j]
                errors[h, s] = values[h, s] - expected
                total += visits[h, s] * errors[h, s]
    return total


@compiled
def likely_weight(u, floor):
    """Return a tenth of the mean of ½·√(q·u) + floor for q = 1/(SA): how large the weights of a plan will be."""
    total = 0.0
    for entry in u.flat:
        total += math.sqrt(entry)
    return 0.1 * (0.5 * total / (u.size * math.sqrt(u.shape[1] * u.shape[2])) + floor)


@compiled
def own_weights(occupancy, u, floor, weights):
    """Fill γ·(½·√(q·u) + floor), (H, S, A), with the γ that makes their mean 1; return γ."""
    horizon, states, actions = weights.shape
    total = 0.0
    for h in range(horizon):
        for s in range(states):
            for a in range(actions):
                weights[h, s, a] = 0.5 * math.sqrt(occupancy[h, s, a] * u[h, s, a]) + floor
                total += weights[h, s, a]
    gamma = weights.size / total
    weights *= gamma
    return gamma
