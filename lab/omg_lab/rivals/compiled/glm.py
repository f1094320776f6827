"""The compiled loops of GLM-ORL and GLM-RLSVI: Newton steps, transitions, and optimistic backward induction."""

import math

import numpy as np

from omg_cmdp.jit import compiled


@compiled
def link(weight, row, logit, means):
    """Fill ∇Φ(Wx): softmax of the scores, or the scores themselves."""
    for i in range(len(means)):
        means[i] = 0.0
        for j in range(len(row)):
            means[i] += weight[i, j] * row[j]
    if logit:
        largest, total = means.max(), 0.0
        for i in range(len(means)):
            means[i] = math.exp(means[i] - largest)
            total += means[i]
        for i in range(len(means)):
            means[i] /= total


@compiled
def to_simplex(point):
    """Move `point` to the nearest distribution: max(point - μ, 0), with μ such that it sums to one."""
    ordered = np.sort(point)[::-1]
    total = shift = 0.0
    for i in range(len(point)):
        total += ordered[i]
        if ordered[i] * (i + 1) > total - 1.0:
            shift = (total - 1.0) / (i + 1)
    for i in range(len(point)):
        point[i] = max(point[i] - shift, 0.0)


@compiled
def transitions(weights, row, logit, table):
    """Fill P̂ for every pair; weights (pairs, S, d), table (pairs, S)."""
    for pair in range(len(weights)):
        link(weights[pair], row, logit, table[pair])
        if not logit:
            to_simplex(table[pair])


@compiled
def to_ball(weight, inverse, radius):
    """Move `weight` to ‖w‖ <= radius, the shortest way in the norm of Z: (I + μZ⁻¹)⁻¹w, `inverse` being Z⁻¹.

    1/‖w(μ)‖ is concave and increasing: Newton's method from μ = 0 climbs to the root without overshooting.
    """
    spectrum, basis = np.linalg.eigh(inverse)
    rotated = basis.T @ weight
    shift = 0.0
    for _ in range(50):
        square = slope = 0.0
        for i in range(len(weight)):
            part = rotated[i] / (1.0 + shift * spectrum[i])
            square += part * part
            slope += part * part * spectrum[i] / (1.0 + shift * spectrum[i])
        excess = math.sqrt(square) / radius - 1.0
        if excess <= 1e-14:
            break
        shift += excess * square / slope
    weight[:] = basis @ (rotated / (1.0 + shift * spectrum))


@compiled
def newton_steps(weights, inverses, growths, row, pairs, next_states, logit, curvature, radius):
    """Take, for each step of an episode, Z ← Z + ½α·xxᵀ and W ← Proj(W - (∇Φ(Wx) - e_{s'})xᵀZ⁻¹) at its pair.

    `inverses` holds Z⁻¹ and `growths` log(det Z/λᵈ). With the logit link the last row of W stays zero.
    """
    states, size = weights.shape[1], weights.shape[2]
    means, direction = np.empty(states), np.empty(size)
    for h in range(len(pairs)):
        weight, inverse = weights[pairs[h]], inverses[pairs[h]]
        leverage = 0.0
        for j in range(size):
            direction[j] = 0.0
            for m in range(size):
                direction[j] += inverse[j, m] * row[m]
            leverage += direction[j] * row[j]
        damped = 1.0 + 0.5 * curvature * leverage
        growths[pairs[h]] += math.log(damped)
        for j in range(size):
            for m in range(size):
                inverse[j, m] -= 0.5 * curvature / damped * (direction[j] * direction[m])
        link(weight, row, logit, means)
        for i in range(states - 1 if logit else states):
            gradient = means[i] - (1.0 if next_states[h] == i else 0.0)
            for j in range(size):
                weight[i, j] -= gradient * direction[j] / damped
            if (weight[i] * weight[i]).sum() > radius * radius:
                to_ball(weight[i], inverse, radius)


@compiled
def optimistic_plan(transitions, rewards, reward_widths, transition_widths, admissible, lows, highs, policy, values):
    """Fill the policy (H, S, A) and values (H + 1, S) of Q_h = r̂ + ξr + P̂·V_{h+1} + ‖V_{h+1}‖_∞·ξp.

    V_h is clipped to [lows[h], highs[h]]. All tables are over (S, A); ties go to the lowest action.
    """
    horizon, states, actions = policy.shape
    values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        highest = values[h + 1].max()
        for s in range(states):
            best, found = -np.inf, -1
            for a in range(actions):
                policy[h, s, a] = 0.0
                if admissible[s, a]:
                    gain = rewards[s, a] + reward_widths[s, a] + highest * transition_widths[s, a]
                    for j in range(states):
                        gain += transitions[s, a, j] * values[h + 1, j]
                    if gain > best or found < 0:
                        best, found = gain, a
            policy[h, s, found] = 1.0
            values[h, s] = min(max(best, lows[h]), highs[h])
