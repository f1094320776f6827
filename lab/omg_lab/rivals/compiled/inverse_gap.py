"""The compiled loops of PC-IGW: a cover of policies, and their weights by inverse gaps.

Deterministic policies are tables (H, S) of actions. Transitions (K, S, A, S): step h uses entry h mod K.
"""

import numpy as np

from omg_cmdp.jit import compiled

ROUNDING = 1e-14
"""Newton's method ends with a step below this share of λ."""
NO_BETTER = 1e-12
"""Dinkelbach's method ends when the ratio grows by less than this share."""


@compiled
def inverse_gap_weights(gaps, weights):
    """Fill p_i = 1/(λ + gap_i), Σ p = 1, and return λ, between 1 and their number; the least of the gaps must be 0.

    Newton's method on 1/Σ 1/(λ + gap) = 1. The left side is concave and, at λ = 1, at most 1: from there the iterates
    rise to the root and never pass it.
    """
    normaliser = 1.0
    while True:
        total = squares = 0.0
        for gap in gaps:
            weight = 1.0 / (normaliser + gap)
            total += weight
            squares += weight * weight
        step = total * (total - 1.0) / squares
        if not step > ROUNDING * normaliser:
            break
        normaliser += step
    for i in range(len(gaps)):
        weights[i] = 1.0 / ((normaliser + gaps[i]) * total)
    return normaliser


@compiled
def expected(transitions, k, s, a, values):
    """Return P·V."""
    total = 0.0
    for j in range(len(values)):
        total += transitions[k, s, a, j] * values[j]
    return total


@compiled
def policy_cover(transitions, start, admissible, losses, greedy, reached, gamma):
    """Return policies (n + 1, H, S), the optimal one first, their gaps V* - V^π and the number of plans.

    For each of the n tuples (h, s, a) with s `reached` (H, S) at h there is one that maximises q_h(s, a)/(2n + γ·gap).
    `losses` (H, S, A) are V*_h(s) - Q*_h(s, a), `greedy` (H, S) is the optimal policy.
    """
    horizon, states = reached.shape
    size = 0
    for h in range(horizon):
        for s in range(states):
            if reached[h, s]:
                size += admissible[s].sum()

    found, gaps = np.empty((size + 1, horizon, states), np.int64), np.zeros(size + 1)
    found[0], count, plans = greedy, 1, 0
    way = greedy.copy()
    for h in range(horizon):
        for s in range(states):
            if reached[h, s]:
                mass, lost, more = best_way(
                    transitions, start, admissible, losses, greedy, gamma, 2.0 * size, h, s, way
                )
                plans += more
                for a in range(transitions.shape[2]):
                    if admissible[s, a]:
                        way[h, s] = a
                        found[count], gaps[count] = way, lost + mass * losses[h, s, a]
                        count += 1
                way[: h + 1] = greedy[: h + 1]
    return found, gaps, plans


@compiled
def best_way(transitions, start, admissible, losses, greedy, gamma, base, h, s, way):
    """Fill the steps before h of a policy that maximises d_h(s)/(base + γ·gap), d_h(s) its probability of s at h.

    Dinkelbach's method, from the ratio of the greedy policy: the ratio ρ is optimal when no policy has a positive
    d - ρ·(base + γ·gap). Return d_h(s), the gap, and how many plans it took.
    """
    way[:h] = greedy[:h]
    mass, lost = follow(transitions, start, losses, way, h, s)
    there, gains, plans = np.empty(len(start)), np.empty(losses[:h].shape), 0
    while h > 0:
        ratio = mass / (base + gamma * lost)
        there[:] = 0.0
        there[s] = 1.0
        plan_steps(transitions, admissible, -(ratio * gamma) * losses[:h], there, way[:h], gains)
        mass, lost = follow(transitions, start, losses, way, h, s)
        plans += 1
        if not mass / (base + gamma * lost) > (1.0 + NO_BETTER) * ratio:
            break
    return mass, lost, plans


@compiled
def plan_steps(transitions, admissible, paid, values, way, gains):
    """Fill the policy `way` (h, S) with the largest sum of what is `paid` (K, S, A) and of `values` (S,) after it.

    `gains` (h, S, A) become the values of admissible actions; `values` is overwritten. Ties go to the lowest action.
    """
    earlier = np.empty(len(values))
    for i in range(len(way) - 1, -1, -1):
        k, r = i % transitions.shape[0], i % paid.shape[0]
        for x in range(len(values)):
            earlier[x], way[i, x] = -np.inf, -1
            for a in range(paid.shape[2]):
                if admissible[x, a]:
                    gains[i, x, a] = paid[r, x, a] + expected(transitions, k, x, a, values)
                    if gains[i, x, a] > earlier[x] or way[i, x] < 0:
                        earlier[x], way[i, x] = gains[i, x, a], a
        values, earlier = earlier, values


@compiled
def follow(transitions, start, losses, way, h, s):
    """Return d_h(s) and the gap Σ d·(V* - Q*) over the steps before h: what a policy loses that is greedy from h on."""
    states = len(start)
    mass, later, lost = start.copy(), np.empty(states), 0.0
    for i in range(h):
        k = i % transitions.shape[0]
        later[:] = 0.0
        for x in range(states):
            if mass[x] > 0.0:
                a = way[i, x]
                lost += mass[x] * losses[i, x, a]
                for j in range(states):
                    later[j] += mass[x] * transitions[k, x, a, j]
        mass, later = later, mass
    return mass[s], lost
