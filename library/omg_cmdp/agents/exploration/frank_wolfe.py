"""The compiled plan of the exploration rules: max ⟨q, f̂⟩ + Σ √(w·Q) over occupancy measures q, to a certified gap.

Q is the sum of q over the steps that share an entry of w: all of them, or each its own. The objective F is concave, and
its gradient at q̂ is f̂ + β, β = ½·√(w/Q̂). So with V the optimal values of the mean model for these rewards, which is
one backward induction,

    max F - F(q̂)  <=  V(start) - ⟨q̂, f̂ + β⟩  =  gap.

The same V prove the plan as that of a barrier with its own weights m = β·q̂, to within the gap (`planning.certificate`):
their slacks are z = β + ζ, ζ >= 0, the gap is Σ q̂·ζ, and m·(x - 1 - ln x) <= q̂·ζ at x = q̂·z/m.

From there the plan moves in two directions, each as far as pays. One leads to a policy that takes less of every action
that falls short, π·(β/(β + z))² for one that is z below the best, as Q·β² = w/4 asks; the other to the best actions
themselves (Frank and Wolfe 1956), without which nothing new would be tried. A round is one backward induction and two
forward ones, and no system of equations is solved.
"""

import math

import numpy as np

from omg_cmdp.jit import compiled, inner
from omg_cmdp.mdp.compiled import SHORT, add_products, flow, spans, take
from omg_cmdp.planning.rounding import EPSILON

LOOKS = 16
"""The most points at which one search along a line looks."""
CLOSE = 1e-3
"""A search ends where the slope is this small beside the sizes of its parts."""
LEAST = 1e-200
"""Where the line ends with none of what was there, the slope is that at so little of it: large enough."""


@compiled
def explore(transitions, rewards, start, admissible, roots, visits, least, share, most, policy, q, weights, values):
    """Fill the plan's policy, its occupancy and weights (H, S, A), and the values (H, S) that certify it.

    `roots` w is (1, S, A) or (H, S, A); `visits` (H, S, A) is an occupancy measure. Roots to which neither it nor the
    optimum goes are left out. The plan is done with a gap of at most `least`, or of `share` times Σ √(w·Q), or after
    `most` rounds. Return the gap, the number of rounds, and γ = HSA/(least + Σ m), m = ½·√(w/Q)·q; the weights are γ·m.
    Where nothing goes, the policy is that of the optimum; where nothing is worth `least`, so is all of it, and m = 0.
    """
    horizon, states, actions = q.shape
    table = transitions.reshape(-1, states)
    firsts, ends = spans(table)
    sums, others, bonuses = np.zeros(roots.shape), np.zeros(roots.shape), np.empty(roots.shape)
    paid, worth, other = np.empty(q.shape), np.empty(q.shape), np.empty(q.shape)
    best, chosen = np.empty((horizon, states), np.int64), np.empty((horizon, states), np.int64)
    for h in range(horizon):
        paid[h] = rewards[h % len(rewards)]
    back_up(table, firsts, ends, paid, admissible, worth, best, values)
    take(best, policy)
    value = flow(transitions, rewards, start, policy, q)
    weights[:] = 0.0
    gap = math.sqrt(horizon * roots.sum())  # no plan has larger roots, by Cauchy's inequality
    if gap <= least:
        return gap, 0, q.size / least
    add_steps(q, sums)
    add_steps(visits, others)
    value = blend(q, sums, value, visits, others, earned(rewards, visits), roots)
    rounds = 0
    while True:
        price = price_of(roots, sums, bonuses)
        for h in range(horizon):
            for s in range(states):
                for a in range(actions):
                    paid[h, s, a] = rewards[h % len(rewards), s, a] + bonuses[h % len(roots), s, a]
        back_up(table, firsts, ends, paid, admissible, worth, chosen, values)
        gap = -value - 0.5 * price
        for s in range(states):
            gap += start[s] * values[0, s]
        if not gap > max(least, share * price) or rounds == most:
            break
        rounds += 1
        soften(bonuses, worth, q, values, chosen, policy)
        value = approach(transitions, rewards, start, policy, roots, q, sums, value, other, others)
        take(chosen, policy)
        value = approach(transitions, rewards, start, policy, roots, q, sums, value, other, others)
    take(best, policy)
    for h in range(horizon):
        for s in range(states):
            mass = 0.0
            for a in range(actions):
                mass += q[h, s, a]
            if mass > 0.0:
                for a in range(actions):
                    policy[h, s, a] = q[h, s, a] / mass
    for h in range(horizon):
        weights[h] = bonuses[h % len(roots)] * q[h]
    gap += lift(values, states)
    gamma = q.size / (least + weights.sum())
    weights *= gamma
    return max(gap, 0.0), rounds, gamma


@inner
def price_of(roots, sums, bonuses):
    """Fill β = ½·√(w/Q), 0 where nothing goes; return Σ √(w·Q)."""
    price = 0.0
    for i in range(len(roots)):
        for s in range(roots.shape[1]):
            for a in range(roots.shape[2]):
                bonuses[i, s, a] = 0.0
                if sums[i, s, a] > 0.0:
                    bonuses[i, s, a] = 0.5 * math.sqrt(roots[i, s, a] / sums[i, s, a])
                    price += 2.0 * bonuses[i, s, a] * sums[i, s, a]
    return price


@inner
def lift(values, states):
    """Raise values (H, S) by a little more than rounding may have lowered them; return by how much at most.

    All slacks are then positive where they should be, in exact arithmetic.
    """
    horizon, unit = len(values), (states + 4) * EPSILON * np.abs(values).max()
    for h in range(horizon):
        values[h] += (horizon - h) * unit
    return horizon * unit


@inner
def back_up(table, firsts, ends, paid, admissible, worth, chosen, values):
    """Fill paid + P·V_{h+1}, (H, S, A), the best actions and their values V, (H, S); `spans` has the ends of rows."""
    horizon, states, actions = paid.shape
    count = states * actions
    for h in range(horizon - 1, -1, -1):
        row, gains = h % (len(table) // count) * count, worth[h].reshape(-1)
        if h == horizon - 1:
            gains[:] = paid[h].reshape(-1)
        elif states >= SHORT:
            add_products(table, row, firsts, ends, paid[h].reshape(-1), 0, values[h + 1], gains)
        else:
            for i in range(count):
                total = paid[h, i // actions, i % actions]
                for j in range(firsts[row + i], ends[row + i]):
                    total += table[row + i, j] * values[h + 1, j]
                gains[i] = total
        for s in range(states):
            found = -1
            for a in range(actions):
                if admissible[s, a] and (found < 0 or worth[h, s, a] > worth[h, s, found]):
                    found = a
            chosen[h, s] = found
            values[h, s] = worth[h, s, found]


@inner
def soften(bonuses, worth, q, values, chosen, policy):
    """Fill the policy of q with less of every action that falls short; the best action where nothing is left."""
    horizon, states, actions = q.shape
    for h in range(horizon):
        for s in range(states):
            total = 0.0
            for a in range(actions):
                share = 0.0
                if q[h, s, a] > 0.0:
                    short = values[h, s] - worth[h, s, a]
                    bonus = bonuses[h % len(bonuses), s, a]
                    share = 1.0 if short <= 0.0 else (bonus / (bonus + short)) ** 2
                policy[h, s, a] = q[h, s, a] * share
                total += policy[h, s, a]
            for a in range(actions):
                policy[h, s, a] = policy[h, s, a] / total if total > 0.0 else 1.0 * (a == chosen[h, s])


@inner
def approach(transitions, rewards, start, policy, roots, q, sums, value, other, others):
    """Move q towards the occupancy measure of `policy`, as far as F grows; return its value."""
    earned = flow(transitions, rewards, start, policy, other)
    others[:] = 0.0
    add_steps(other, others)
    return blend(q, sums, value, other, others, earned, roots)


@inner
def blend(q, sums, value, other, others, earned, roots):
    """Move q, its sums and its value to the best point of the line from there to `other`; return the value."""
    x, y, w = sums.reshape(-1), others.reshape(-1), roots.reshape(-1)
    pulls, curves = np.empty(len(w)), np.empty(len(w))
    low, high, t = 0.0, 1.0, 1.0
    for _ in range(LOOKS):
        for i in range(len(w)):  # apart from the sums, so that the compiler can take several at a time
            at = max(x[i] + t * (y[i] - x[i]), LEAST)
            pulls[i] = 0.5 * math.sqrt(w[i] / at) * (y[i] - x[i])
            curves[i] = 0.5 * pulls[i] * (y[i] - x[i]) / at
        slope, size, curve = earned - value, abs(earned - value), 0.0
        for i in range(len(w)):
            slope += pulls[i]
            size += abs(pulls[i])
            curve += curves[i]
        if (slope >= 0.0 and t == 1.0) or abs(slope) <= CLOSE * size:
            break
        if slope > 0.0:
            low = t
        else:
            high = t
        t = t + slope / curve if curve > 0.0 else 0.0
        if not low < t < high:
            t = math.sqrt(low * high) if low > 0.0 else 0.1 * high
    move(q.reshape(-1), other.reshape(-1), t)
    move(x, y, t)
    return value + t * (earned - value)


@inner
def move(x, y, t):
    """Move x (n,) by the share t of the way to y."""
    for i in range(len(x)):
        x[i] += t * (y[i] - x[i])


@inner
def add_steps(q, sums):
    """Add q (H, S, A) to sums (1, S, A) or (H, S, A)."""
    for h in range(len(q)):
        for s in range(q.shape[1]):
            for a in range(q.shape[2]):
                sums[h % len(sums), s, a] += q[h, s, a]


@inner
def earned(rewards, q):
    """Return ⟨q, f̂⟩."""
    total = 0.0
    for h in range(len(q)):
        for s in range(q.shape[1]):
            for a in range(q.shape[2]):
                total += q[h, s, a] * rewards[h % len(rewards), s, a]
    return total
