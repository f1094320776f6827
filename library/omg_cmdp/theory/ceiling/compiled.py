"""The compiled loops of the regret ceiling."""

import math

import numpy as np

from omg_cmdp.jit import compiled

TIE = 1e-9
"""Actions within this of the best one count as optimal."""


@compiled
def largest_gap(rewards, transitions, start, admissible, policies, probabilities, agreed, possible):
    """Return the largest V* - Σ p·V^π over all pairs of `rewards` (N, K, S, A) and `transitions` (M, K', S, A, S).

    `policies` is (J, H, S, A) and `probabilities` p (J,). Actions that are not optimal in some pair leave `agreed`
    (H, S, A), and those that are optimal in some join `possible`.
    """
    count, horizon, states, actions = policies.shape
    best, after = np.empty(states), np.empty(states)
    values, later = np.empty((count, states)), np.empty((count, states))
    gains, found = np.empty(actions), 0.0
    for n in range(len(rewards)):
        for m in range(len(transitions)):
            after[:] = 0.0
            later[:] = 0.0
            for h in range(horizon - 1, -1, -1):
                k, r = h % transitions.shape[1], h % rewards.shape[1]
                for s in range(states):
                    best[s] = -np.inf
                    values[:, s] = 0.0
                    for a in range(actions):
                        if admissible[s, a]:
                            gains[a] = rewards[n, r, s, a]
                            for i in range(states):
                                gains[a] += transitions[m, k, s, a, i] * after[i]
                            best[s] = max(best[s], gains[a])
                            for j in range(count):
                                if policies[j, h, s, a] > 0.0:
                                    own = rewards[n, r, s, a]
                                    for i in range(states):
                                        own += transitions[m, k, s, a, i] * later[j, i]
                                    values[j, s] += policies[j, h, s, a] * own
                    for a in range(actions):
                        if admissible[s, a]:
                            if gains[a] < best[s] - TIE:
                                agreed[h, s, a] = False
                            else:
                                possible[h, s, a] = True
                best, after = after, best
                values, later = later, values
            gap = 0.0
            for s in range(states):
                if start[s] > 0.0:
                    own = after[s]
                    for j in range(count):
                        own -= probabilities[j] * later[j, s]
                    gap += start[s] * own
            found = max(found, gap)
    return found


@compiled
def bound_known(low, high, transitions, admissible, policy, lows, highs, sure, possible):
    """Return bounds (S,) on V* - V^π for rewards in [low, high] (K, S, A) and known `transitions` (K', S, A, S).

    It does what `largest._bounded` does where there is one table of rows, and fills `sure` and `possible` alike.
    """
    horizon, states, actions = policy.shape
    apart, next_apart = np.zeros((states, states)), np.empty((states, states))  # (k, l)
    after, through = np.empty((states, actions, states)), np.empty((states, states))  # (y, b, k) and (y, k)
    best_high, best_low, own_low = np.zeros(states), np.zeros(states), np.zeros(states)
    top, floor = np.empty((states, actions)), np.empty((states, actions))
    own, own_least = np.empty(states), np.empty(states)
    for h in range(horizon - 1, -1, -1):
        rows, chance = transitions[h % len(transitions)], policy[h]
        most, least = high[h % len(high)], low[h % len(low)]
        for s in range(states):
            own[s] = own_least[s] = 0.0
            through[s] = 0.0
            for a in range(actions):
                up, flat, down = most[s, a], least[s, a], least[s, a]
                after[s, a] = 0.0
                for i in range(states):
                    chance_here = rows[s, a, i]
                    if chance_here > 0.0:
                        up += chance_here * best_high[i]
                        flat += chance_here * best_low[i]
                        down += chance_here * own_low[i]
                        for k in range(states):
                            after[s, a, k] += chance_here * apart[k, i]
                own[s] += chance[s, a] * down
                own_least[s] += chance[s, a] * least[s, a]
                for k in range(states):
                    through[s, k] += chance[s, a] * after[s, a, k]
                top[s, a], floor[s, a] = (up, flat) if admissible[s, a] else (-np.inf, -np.inf)
        for s in range(states):
            best_high[s] = min(max(top[s].max(), lows[h]), highs[h])
            own_low[s] = min(max(own[s], lows[h]), highs[h])
        for y in range(states):
            sure_best, count = floor[y].argmax(), 0
            sure[h, y] = True
            for x in range(states):
                largest = -np.inf
                for a in range(actions):
                    if not admissible[x, a]:
                        continue
                    gain = most[x, a] - own_least[y]
                    for k in range(states):
                        gain += rows[x, a, k] * through[y, k]
                    if x == y:  # one row, and one reward, where the policy does the same
                        gain -= chance[y, a] * (most[y, a] - least[y, a])
                        for k in range(states):
                            gain += chance[y, a] * rows[y, a, k] * (apart[k, k] - after[y, a, k])
                        possible[h, y, a] = top[y, a] >= floor[y, sure_best] and gain >= -TIE
                        count += possible[h, y, a]
                        if a != sure_best and top[y, a] > floor[y, sure_best]:
                            sure[h, y] = False
                    largest = max(largest, gain)
                next_apart[x, y] = min(largest, best_high[x] - own_low[y])
            sure[h, y] = sure[h, y] or count == 1
            next_apart[y, y] = max(next_apart[y, y], 0.0)
        for s in range(states):
            best_low[s] = min(max(floor[s].max(), lows[h]), highs[h])
        apart, next_apart = next_apart, apart
    return np.diag(apart)


@compiled
def highest_means(frequencies, radii, possible, values, means):
    """Fill (J, S, A): bounds on p·V for `values` V (J, S, A, K) and all rows p near the `frequencies` (S, A, K).

    A row p is near if it lies in `possible` and KL(frequencies, p) <= radius. By the inequality between weighted means,
    for every ν >= max V,

        ν - p·V = Σ p·(ν - V) >= Π ((ν - V)·p/f)^f >= e^-radius · Π (ν - V)^f,

    so that p·V <= ν - e^-radius · Π (ν - V)^f, with equality at the best ν. Every ν gives a bound, and so a few steps
    towards the best one are enough.
    """
    states, actions, outcomes = frequencies.shape
    for j in range(len(values)):
        for s in range(states):
            for a in range(actions):
                top, bottom = -np.inf, np.inf
                for i in range(outcomes):
                    if possible[s, a, i]:
                        top, bottom = max(top, values[j, s, a, i]), min(bottom, values[j, s, a, i])
                if radii[s, a] == np.inf or top - bottom < 1e-14:
                    means[j, s, a] = top
                else:
                    means[j, s, a] = highest_mean(frequencies[s, a], radii[s, a], values[j, s, a], top, top - bottom)


@compiled
def highest_mean(frequencies, radius, values, top, span):
    """Return a bound on p·V for all p with KL(frequencies, p) <= radius; `top` is the largest possible V."""
    best, x = np.inf, 0.0
    for _ in range(9):
        # ν = top + x; first at x = 0, where the best ν is if what is best was not seen.
        geometric = inverse = squares = 0.0
        touches = False
        for i in range(len(frequencies)):
            if frequencies[i] > 0.0:
                gap = top + x - values[i]
                if gap <= 0.0:
                    touches = True
                    break
                geometric += frequencies[i] * math.log(gap)
                inverse += frequencies[i] / gap
                squares += frequencies[i] / (gap * gap)
        if touches:
            best = min(best, top)
            excess = np.inf
        else:
            best = min(best, top + x - math.exp(geometric - radius))
            excess = geometric + math.log(inverse)
            if excess <= radius and x == 0.0:
                break
        if x == 0.0:
            # By the second-order approximation KL ≈ variance/(2(ν - mean)²).
            mean = variance = 0.0
            for i in range(len(frequencies)):
                mean += frequencies[i] * values[i]
            for i in range(len(frequencies)):
                variance += frequencies[i] * (values[i] - mean) ** 2
            x = max(math.sqrt(variance / (2.0 * radius)) - (top - mean), 1e-6 * span)
        else:
            if excess <= 0.0:
                break
            # Newton's method in log x and log excess, in which the root is nearly a straight line away.
            slope = (inverse - squares / inverse) * x / excess
            if slope >= 0.0:
                break
            move = (math.log(radius) - math.log(excess)) / slope
            x *= math.exp(min(max(move, -3.0), 3.0))
            if abs(move) < 1e-5:
                break
    return min(best, top)


@compiled
def charge_transitions(losses, tables, steps, pairs, outcomes):
    """Add -Σ log P(outcome) to the losses (N,) of transitions `tables` (N, K, P, S)."""
    for n in range(len(losses)):
        for h in range(len(pairs)):
            chance = tables[n, steps[h] % tables.shape[1], pairs[h], outcomes[h]]
            losses[n] += -math.log(chance) if chance > 0.0 else np.inf


@compiled
def charge_rewards(losses, tables, steps, pairs, outcomes):
    """Add -Σ r·log f + (1 - r)·log(1 - f) to the losses (N,) of mean rewards `tables` (N, K, P)."""
    for n in range(len(losses)):
        for h in range(len(pairs)):
            mean, reward = tables[n, steps[h] % tables.shape[1], pairs[h]], outcomes[h]
            # 0·log 0 = 0: a reward of 1 does not contradict the mean 1.
            if reward > 0.0:
                losses[n] += -reward * math.log(mean) if mean > 0.0 else np.inf
            if reward < 1.0:
                losses[n] += -(1.0 - reward) * math.log1p(-mean) if mean < 1.0 else np.inf


@compiled
def tally_transitions(counts, prior, pairs, outcomes, evidence):
    """Count transitions in `counts` (P, K); add to `evidence` (P,) the log of each forecast.

    The forecast is the rule of succession's.
    """
    for h in range(len(pairs)):
        pair, seen = pairs[h], outcomes[h]
        visits = 0.0
        for i in range(counts.shape[1]):
            visits += counts[pair, i] + prior[pair, i]
        # What the support excludes has evidence 0, and so no row of the class explains it.
        chance = (counts[pair, seen] + prior[pair, seen]) / visits
        evidence[pair] += math.log(chance) if prior[pair, seen] > 0.0 else -np.inf
        counts[pair, seen] += 1.0


@compiled
def tally_rewards(counts, prior, pairs, outcomes, evidence):
    """Count rewards r in [0, 1] as 1 - r failures and r successes in `counts` (P, 2); add to `evidence` as above."""
    for h in range(len(pairs)):
        pair, reward = pairs[h], outcomes[h]
        failures, successes = counts[pair, 0] + prior[pair, 0], counts[pair, 1] + prior[pair, 1]
        mean = successes / (failures + successes)
        evidence[pair] += reward * math.log(mean) + (1.0 - reward) * math.log(1.0 - mean)
        counts[pair, 0] += 1.0 - reward
        counts[pair, 1] += reward
