"""The compiled loops of the MDP core, for small tables. One file that calls nothing outside itself."""

import math

import numba
import numpy as np

compiled = numba.njit(cache=True)


@compiled
def flow(kernel, start, policy, occupancy):
    """Fill the occupancy measure (H, S, A) of `policy`; kernel (K, S, A, S), step h uses entry h mod K."""
    horizon, states, actions = policy.shape
    for h in range(horizon):
        k = (h - 1) % kernel.shape[0]
        for s in range(states):
            marginal = start[s] if h == 0 else 0.0
            if h > 0:
                for i in range(states):
                    for a in range(actions):
                        marginal += occupancy[h - 1, i, a] * kernel[k, i, a, s]
            for a in range(actions):
                occupancy[h, s, a] = marginal * policy[h, s, a]


@compiled
def best_response(kernel, rewards, admissible, cap, policy, values):
    """Fill a deterministic optimal policy (H, S, A) and its values (H + 1, S); ties go to the lowest action.

    Rewards (K, S, A) may be any numbers; the value with m steps to go counts as `cap`·m where it is larger.
    """
    horizon, states, actions = policy.shape
    values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        k, r = h % kernel.shape[0], h % rewards.shape[0]
        for s in range(states):
            best, found = -np.inf, -1
            for a in range(actions):
                policy[h, s, a] = 0.0
                if admissible[s, a]:
                    gain = rewards[r, s, a]
                    for j in range(states):
                        gain += kernel[k, s, a, j] * values[h + 1, j]
                    if gain > best or found < 0:
                        best, found = gain, a
            policy[h, s, found] = 1.0
            values[h, s] = min(best, cap * (horizon - h))


@compiled
def value(rewards, occupancy):
    """Return ⟨q, r⟩; rewards (K, S, A)."""
    horizon, states, actions = occupancy.shape
    total = 0.0
    for h in range(horizon):
        for s in range(states):
            for a in range(actions):
                total += occupancy[h, s, a] * rewards[h % rewards.shape[0], s, a]
    return total


@compiled
def model_errors(occupancy, rewards, other_rewards, kernel, other_kernel):
    """Return Σ q·(r - r')² and Σ q·Σ(√P - √P')² of two MDPs with tables (K, S, A, ...)."""
    horizon, states, actions = occupancy.shape
    squares = hellinger = 0.0
    for h in range(horizon):
        k, other = h % kernel.shape[0], h % other_kernel.shape[0]
        for s in range(states):
            for a in range(actions):
                q = occupancy[h, s, a]
                if q > 0.0:
                    gap = rewards[h % rewards.shape[0], s, a] - other_rewards[h % other_rewards.shape[0], s, a]
                    squares += q * gap * gap
                    for j in range(states):
                        hellinger += q * (math.sqrt(kernel[k, s, a, j]) - math.sqrt(other_kernel[other, s, a, j])) ** 2
    return squares, hellinger


@compiled
def pick(weights, uniform):
    """Return the index that `uniform` in [0, 1) falls on; never one of weight zero."""
    total = 0.0
    for i in range(len(weights)):
        total += weights[i]
    target, reached, last = uniform * total, 0.0, 0
    for i in range(len(weights)):
        if weights[i] > 0.0:
            reached += weights[i]
            last = i
            if reached > target:
                break
    return last


@compiled
def play(kernel, rewards, start, policy, uniforms, states, actions, means, propensities):
    """Fill one episode from 2H + 1 uniform numbers: H + 1 states, H actions, their mean rewards and probabilities."""
    horizon = policy.shape[0]
    states[0] = pick(start, uniforms[2 * horizon])
    for h in range(horizon):
        state = states[h]
        action = pick(policy[h, state], uniforms[2 * h])
        actions[h] = action
        propensities[h] = policy[h, state, action]
        means[h] = rewards[h % rewards.shape[0], state, action]
        states[h + 1] = pick(kernel[h % kernel.shape[0], state, action], uniforms[2 * h + 1])
