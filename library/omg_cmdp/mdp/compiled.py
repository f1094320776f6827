"""The compiled loops of the MDP core, for small tables."""

import math

import numpy as np

from omg_cmdp.jit import compiled, inner, leaf

SHORT = 16
"""Rows of fewer states are added one at a time: the processor begins the next before the last one ends."""


@compiled
def settle(transitions, rewards, admissible, tolerance):
    """Put zeros where an action is not admissible; return whether the rest are distributions, and rewards in [0, 1]."""
    steps, states, actions, _ = transitions.shape
    fine = True
    for k in range(steps):
        for s in range(states):
            for a in range(actions):
                total = 0.0
                for j in range(states):
                    if not admissible[s, a]:
                        transitions[k, s, a, j] = 0.0
                    fine &= transitions[k, s, a, j] >= 0.0
                    total += transitions[k, s, a, j]
                fine &= abs(total - 1.0) <= tolerance or not admissible[s, a]
    for k in range(rewards.shape[0]):
        for s in range(states):
            for a in range(actions):
                if not admissible[s, a]:
                    rewards[k, s, a] = 0.0
                fine &= 0.0 <= rewards[k, s, a] <= 1.0
    return fine


@compiled
def is_within(table, low, high):
    """Return whether every entry of `table` (K, S, A) lies in [low, high]; NaN does not."""
    fine = True
    for entry in table.flat:
        fine &= low <= entry <= high
    return fine


@compiled
def is_policy(policy, admissible, tolerance):
    """Return whether the rows of `policy` (H, S, A) are distributions over admissible actions."""
    horizon, states, actions = policy.shape
    fine = True
    for h in range(horizon):
        for s in range(states):
            total = 0.0
            for a in range(actions):
                fine &= policy[h, s, a] >= 0.0 if admissible[s, a] else policy[h, s, a] == 0.0
                total += policy[h, s, a]
            fine &= abs(total - 1.0) <= tolerance
    return fine


@compiled
def is_episode(states, actions, rewards, start, admissible, low, high):
    """Return whether an episode begins where `start` (S,) is positive, and moves within the table `admissible` (S, A).

    Its rewards must lie in [low, high], or be nan.
    """
    count_states, count_actions = admissible.shape
    for h in range(len(actions)):
        s, a = states[h], actions[h]
        if rewards[h] < low or rewards[h] > high:
            return False
        if not (0 <= s < count_states and 0 <= a < count_actions and admissible[s, a]):
            return False
    return 0 <= states[len(states) - 1] < count_states and start[states[0]] > 0.0


@compiled
def flow(transitions, rewards, start, policy, occupancy):
    """Fill the occupancy measure (H, S, A) of `policy` and return its value; tables (K, S, A, ...), entry h mod K."""
    horizon, states, actions = policy.shape
    marginal, after = start.copy(), np.empty(states)
    value = 0.0
    for h in range(horizon):
        k, r = h % transitions.shape[0], h % rewards.shape[0]
        after[:] = 0.0
        for s in range(states):
            for a in range(actions):
                q = marginal[s] * policy[h, s, a]
                occupancy[h, s, a] = q
                if q > 0.0:
                    value += q * rewards[r, s, a]
                    for j in range(states):
                        after[j] += q * transitions[k, s, a, j]
        marginal, after = after, marginal
    return value


@compiled
def spans(table):
    """Return where each row of `table` (n, S) is not zero: the first entry, and one after the last.

    Chains, grids and seas move to neighbours, so that most of a row can be left out; a full row costs two looks.
    Unsigned: such indices need no check whether they count from the end.
    """
    rows, width = table.shape
    firsts, ends = np.empty(rows, np.uint64), np.empty(rows, np.uint64)
    for i in range(rows):
        first, end = 0, width
        while first < end and table[i, first] == 0.0:
            first += 1
        while end > first and table[i, end - 1] == 0.0:
            end -= 1
        firsts[i], ends[i] = first, end
    return firsts, ends


@leaf
def add_products(table, row, firsts, ends, paid, place, values, sums):
    """Fill `sums` (n,) with paid[place + i] + Σ_j table[row + i, j]·values[j]: each sum in the order of its row.

    Four rows at a time: an addition waits for the one before it, but not for those of other rows. No order of any sum
    depends on where the arrays lie, as it does with BLAS, which rounds equal rows differently.
    """
    i, n = 0, len(sums)
    while i < n:
        i = min(i, n - 4)  # the last four may be there in part
        k, m = row + i, place + i
        a, b, c, d = table[k], table[k + 1], table[k + 2], table[k + 3]
        p, q, r, s = paid[m], paid[m + 1], paid[m + 2], paid[m + 3]
        first = min(min(firsts[k], firsts[k + 1]), min(firsts[k + 2], firsts[k + 3]))
        end = max(max(ends[k], ends[k + 1]), max(ends[k + 2], ends[k + 3]))
        for j in range(first, end):
            v = values[j]
            p += a[j] * v
            q += b[j] * v
            r += c[j] * v
            s += d[j] * v
        sums[i], sums[i + 1], sums[i + 2], sums[i + 3] = p, q, r, s
        i += 4


@compiled
def best_actions(transitions, rewards, admissible, lows, highs, chosen, values):
    """Fill optimal actions (H, S) and their values (H + 1, S); ties go to the lowest action.

    Rewards (K, S, A) may be any numbers; the value V_h is clipped to [lows[h], highs[h]].
    """
    (horizon, states), actions = chosen.shape, admissible.shape[1]
    table, paid, gains = transitions.reshape(-1, states), rewards.reshape(-1), np.empty(states * actions)
    firsts, ends = spans(table)
    values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        row, place = h % transitions.shape[0] * len(gains), h % rewards.shape[0] * len(gains)
        if states >= SHORT:
            add_products(table, row, firsts, ends, paid, place, values[h + 1], gains)
        for s in range(states):
            best, found = -np.inf, -1
            for a in range(actions):
                if admissible[s, a]:
                    i = s * actions + a
                    gain = gains[i]
                    if states < SHORT:
                        gain = paid[place + i]
                        for j in range(firsts[row + i], ends[row + i]):
                            gain += table[row + i, j] * values[h + 1, j]
                    if gain > best or found < 0:
                        best, found = gain, a
            chosen[h, s] = found
            values[h, s] = min(max(best, lows[h]), highs[h])


@compiled
def best_response(transitions, rewards, admissible, lows, highs, policy, values):
    """Fill the policy (H, S, A) of `best_actions`, one-hot, and its values (H + 1, S)."""
    horizon, states, _ = policy.shape
    chosen = np.empty((horizon, states), np.int64)
    best_actions(transitions, rewards, admissible, lows, highs, chosen, values)
    take(chosen, policy)


@inner
def take(chosen, policy):
    """Fill the policy (H, S, A) that takes the actions `chosen` (H, S)."""
    policy[:] = 0.0
    for h in range(chosen.shape[0]):
        for s in range(chosen.shape[1]):
            policy[h, s, chosen[h, s]] = 1.0


@compiled
def model_errors(occupancy, rewards, other_rewards, transitions, other_transitions):
    """Return Σ q·(r - r')² and Σ q·Σ(√P - √P')² of two MDPs with tables (K, S, A, ...)."""
    horizon, states, actions = occupancy.shape
    steps = max(transitions.shape[0], other_transitions.shape[0])
    squares = hellinger = 0.0
    for s in range(states):
        for a in range(actions):
            for h in range(horizon):
                gap = rewards[h % rewards.shape[0], s, a] - other_rewards[h % other_rewards.shape[0], s, a]
                squares += occupancy[h, s, a] * gap * gap
            for k in range(steps):
                distance, visits = 0.0, 0.0
                for j in range(states):
                    p, other = (
                        transitions[k % transitions.shape[0], s, a, j],
                        other_transitions[k % other_transitions.shape[0], s, a, j],
                    )
                    distance += (math.sqrt(p) - math.sqrt(other)) ** 2
                for h in range(k, horizon, steps):
                    visits += occupancy[h, s, a]
                hellinger += visits * distance
    return squares, hellinger


@compiled
def account(transitions, rewards, start, guess, means, first, admissible, best, policies, probabilities, occupancy):
    """Fill the mean occupancy (H, S, A) of `policies` (K, H, S, A) in the truth `transitions`, `rewards`, `start`.

    Return their mean value there; in the model `guess`, `means`, `first` the value of `best` and their mean value; the
    value of the model's optimum in the truth and in the model; and the `model_errors` under the occupancy.
    """
    one, own = np.empty_like(occupancy), np.empty_like(occupancy)
    horizon, states, _ = occupancy.shape
    no_bound = np.full(horizon + 1, np.inf)
    best_response(guess, means, admissible, -no_bound, no_bound, own, np.empty((horizon + 1, states)))
    own_value, own_believed = flow(transitions, rewards, start, own, one), flow(guess, means, first, own, one)
    believed_best = flow(guess, means, first, best, one)
    value = believed = 0.0
    occupancy[:] = 0.0
    for k in range(len(probabilities)):
        believed += probabilities[k] * flow(guess, means, first, policies[k], one)
        value += probabilities[k] * flow(transitions, rewards, start, policies[k], one)
        occupancy += probabilities[k] * one
    squares, hellinger = model_errors(occupancy, rewards, means, transitions, guess)
    return value, believed_best, believed, own_value, own_believed, squares, hellinger


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
def play(transitions, rewards, start, policy, uniforms, states, actions, means, earned, propensities):
    """Fill H + 1 states, H actions, mean rewards, Bernoulli rewards and propensities, from 3H + 1 uniform numbers."""
    horizon = policy.shape[0]
    states[0] = pick(start, uniforms[2 * horizon])
    for h in range(horizon):
        state = states[h]
        action = pick(policy[h, state], uniforms[2 * h])
        actions[h] = action
        propensities[h] = policy[h, state, action]
        means[h] = rewards[h % rewards.shape[0], state, action]
        earned[h] = uniforms[2 * horizon + 1 + h] < means[h]
        states[h + 1] = pick(transitions[h % transitions.shape[0], state, action], uniforms[2 * h + 1])
