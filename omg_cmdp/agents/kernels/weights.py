"""The compiled loops of the exploration rules: uncertainties, gains, and the weights that a plan ends with."""

import math

import numpy as np

from omg_cmdp.jit import compiled
from omg_cmdp.mdp.kernels import best_actions

ALONE = 1e-3
"""A draw that makes all but so little of the visits is the only visitor: nothing is known of its noise."""


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
def fill_gains(kernel, rewards, start, admissible, drawn_rewards, drawn_kernels, lows, highs, gains):
    """Fill v = b̃²/E[q_k], (H, S, A), from K >= 2 drawn models, (K, steps, S, A) and (K, steps, S, A, S).

    b = E[x_k], x_k = q_k·e_k, and b̃ = b₊·(Σb)₊/Σb₊ is what is left of its positive part for its sum. The square of Σx
    is too large by the noise of the draws that visit the tuple: `spread`, Σ (x_k - r·q_k)² for r = Σx/Σq, times
    n/(n - 1) for n = (Σq)²/Σq² of them, is taken off. Values from step h on lie in [lows_h, highs_h], also those of the
    drawn models.
    """
    horizon, states, actions = gains.shape
    count = len(drawn_rewards)
    values, chosen = np.zeros((horizon + 1, states)), np.empty((horizon, states), np.int64)
    visits, errors = np.empty((horizon + 1, states)), np.empty((horizon, states))
    flows, squares, products, visited, visited_squares = np.zeros((5, horizon, states, actions))
    for k in range(count):
        if k == 0 or not (is_same(drawn_rewards, k) and is_same(drawn_kernels, k)):
            best_actions(drawn_kernels[k], drawn_rewards[k], admissible, lows, highs, chosen, values)
            follow(kernel, rewards, start, chosen, values, visits, errors)
        for h in range(horizon):
            for s in range(states):
                a, q = chosen[h, s], visits[h, s]
                flow = q * errors[h, s]
                flows[h, s, a] += flow
                squares[h, s, a] += flow * flow
                products[h, s, a] += flow * q
                visited[h, s, a] += q
                visited_squares[h, s, a] += q * q
    total = hoped = 0.0
    for flow in flows.flat:
        total += flow
        hoped += max(flow, 0.0)
    share = max(total, 0.0) / hoped if hoped > 0.0 else 0.0
    for h in range(horizon):
        for s in range(states):
            for a in range(actions):
                gains[h, s, a] = 0.0
                if flows[h, s, a] > 0.0:
                    whole, rate = visited[h, s, a] ** 2, flows[h, s, a] / visited[h, s, a]
                    spread = squares[h, s, a] + rate * (rate * visited_squares[h, s, a] - 2.0 * products[h, s, a])
                    others = whole - visited_squares[h, s, a]
                    noise = spread * whole / others if others > ALONE * whole else 0.0
                    square = max(flows[h, s, a] ** 2 - max(noise, 0.0), 0.0)
                    gains[h, s, a] = share * share * square / (count * visited[h, s, a])


@compiled
def is_same(drawn, k):
    """Return whether draw k is the one before: the rule once a finite class is identified."""
    here, before = drawn[k].reshape(-1), drawn[k - 1].reshape(-1)
    for i in range(len(here)):
        if here[i] != before[i]:
            return False
    return True


@compiled
def follow(kernel, rewards, start, chosen, values, visits, errors):
    """Fill how likely the actions `chosen` (H, S) lead where, (H + 1, S), and the errors V_h - r - P·V_{h+1} there."""
    horizon, states = chosen.shape
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
