"""The compiled loops of the uncertainty-weighted rule."""

import math

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
def root_weights(occupancy, errors, floor, weights):
    """Fill γ·(½·√(q·u) + floor), (H, S, A), with the γ that makes their mean 1; return γ."""
    horizon, states, actions = weights.shape
    total = 0.0
    for h in range(horizon):
        for s in range(states):
            for a in range(actions):
                weights[h, s, a] = 0.5 * math.sqrt(occupancy[h, s, a] * errors[h, s, a]) + floor
                total += weights[h, s, a]
    gamma = weights.size / total
    weights *= gamma
    return gamma
