"""The compiled loops of the exploration rules: what drawn models would gain, and how it is divided among the steps."""

import math

import numpy as np

from omg_cmdp.jit import compiled, inner, leaf
from omg_cmdp.mdp.compiled import best_actions

ALONE = 1e-3
"""A draw that makes all but so little of the visits is the only visitor: nothing is known of its noise."""


@compiled
def choose(transitions, rewards, admissible, lows, highs, chosen, values):
    """Fill optimal actions (K, H, S), and their values (K, H + 1, S), of K models: (K, steps, S, A, ...)."""
    for k in range(len(chosen)):
        if k > 0 and is_same(rewards, k) and is_same(transitions, k):
            chosen[k], values[k] = chosen[k - 1], values[k - 1]
        else:
            best_actions(transitions[k], rewards[k], admissible, lows, highs, chosen[k], values[k])


@compiled
def choose_side_by_side(transitions, rewards, admissible, lows, highs, chosen, values):
    """Do the same for models that lie side by side, (steps, S, A, ..., K), with the same bits.

    The processor adds the products of several models at once: each sum is still in the order of its row.
    """
    count, horizon, states = chosen.shape
    actions = admissible.shape[1]
    worth, best, taken = np.empty(count), np.empty(count), np.empty(count, np.int64)
    ahead, behind = np.zeros((states, count)), np.zeros((states, count))
    values[:, horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        table, paid = transitions[h % len(transitions)], rewards[h % len(rewards)]
        for s in range(states):
            is_first = True  # an action is chosen, whatever the numbers are
            for a in range(actions):
                if admissible[s, a]:
                    worth[:] = paid[s, a]
                    if h < horizon - 1:
                        for j in range(states):
                            add_products(table[s, a, j], ahead[j], worth)
                    for k in range(count):
                        better = is_first or worth[k] > best[k]
                        best[k] = worth[k] if better else best[k]
                        taken[k] = a if better else taken[k]
                    is_first = False
            for k in range(count):
                behind[s, k] = min(max(best[k], lows[h]), highs[h])
                chosen[k, h, s], values[k, h, s] = taken[k], behind[s, k]
        ahead, behind = behind, ahead


@leaf
def add_products(x, y, sums):
    """Add x·y to `sums`, entry by entry."""
    for k in range(len(sums)):
        sums[k] += x[k] * y[k]


@compiled
def fill_gains(transitions, rewards, start, chosen, values, gains, all_visits):
    """Fill v = b̃²/E[q_k], (steps, S, A), from what K >= 2 drawn models would do, (K, H, S), and its values in them.

    `gains` has H steps, or one for all: then what a draw visits and carries is summed over the steps, before anything
    else. b = E[x_k], x_k = q_k·e_k, and b̃ = b₊·(Σb)₊/Σb₊ is what is left of its positive part for its sum. The square
    of Σx is too large by the noise of the draws that visit the tuple: `spread`, Σ (x_k - r·q_k)² for r = Σx/Σq, times
    n/(n - 1) for n = (Σq)²/Σq² of them, is taken off. `all_visits` (H, S, A) becomes E[q_k].
    """
    count, horizon, states = chosen.shape
    visits, errors = np.empty((horizon + 1, states)), np.empty((horizon, states))
    flow, came = np.empty(gains.shape), np.empty(gains.shape)
    sums = np.zeros((5, gains.size))
    all_visits[:] = 0.0
    for k in range(count):
        if k == 0 or not (is_same(chosen, k) and is_same(values, k)):
            follow(transitions, rewards, start, chosen[k], values[k], visits, errors)
        flow[:], came[:] = 0.0, 0.0
        carry(chosen[k], 1.0, visits, errors, flow, came, all_visits)
        add_draw(flow.reshape(-1), came.reshape(-1), sums)
    all_visits /= count
    weigh(sums, count, gains.reshape(-1))


@inner
def carry(chosen, share, visits, errors, flow, came, seen):
    """Add what a policy of this `share` in a draw carries: x = q·e to `flow`, and q to `came` and to `seen` (H, S, A).

    The first two have H steps, or one for all: then they are sums over the steps.
    """
    for h in range(len(chosen)):
        step = h % len(flow)
        for s in range(chosen.shape[1]):
            a, mass = chosen[h, s], share * visits[h, s]
            flow[step, s, a] += mass * errors[h, s]
            came[step, s, a] += mass
            seen[h, s, a] += mass


@inner
def add_draw(x, q, sums):
    """Add x, x², x·q, q and q² of a draw to the sums."""
    for i in range(x.size):
        sums[0, i] += x[i]
        sums[1, i] += x[i] * x[i]
        sums[2, i] += x[i] * q[i]
        sums[3, i] += q[i]
        sums[4, i] += q[i] * q[i]


@inner
def weigh(sums, count, v):
    """Fill v from the sums over the draws of `add_draw`."""
    flows, squares, products, visited, visited_squares = sums
    total, hoped = flows.sum(), np.maximum(flows, 0.0).sum()
    share = max(total, 0.0) / hoped if hoped > 0.0 else 0.0
    for i in range(v.size):
        v[i] = 0.0
        if flows[i] > 0.0:
            whole, rate = visited[i] ** 2, flows[i] / visited[i]
            spread = squares[i] + rate * (rate * visited_squares[i] - 2.0 * products[i])
            others = whole - visited_squares[i]
            noise = spread * whole / others if others > ALONE * whole else 0.0
            v[i] = share * share * max(flows[i] ** 2 - max(noise, 0.0), 0.0) / (count * visited[i])


@compiled
def divide(transitions, rewards, admissible, lows, highs, v, parts):
    """Divide v (S, A) among the steps, in the place of `parts` (H, S, A): how often draws come in each of them.

    In proportion to these visits over (z + √v)²: z is what the pair costs in a step, V_h(s) - r - P·V_{h+1} for the
    optimal values, which lie in [lows_h, highs_h].
    """
    horizon, states, actions = parts.shape
    total, values = np.zeros((states, actions)), np.empty((horizon + 1, states))
    chosen = np.empty((horizon, states), np.int64)
    best_actions(transitions, rewards, admissible, lows, highs, chosen, values)
    for h in range(horizon):
        k, r = h % transitions.shape[0], h % rewards.shape[0]
        for s in range(states):
            for a in range(actions):
                if v[s, a] > 0.0 and parts[h, s, a] > 0.0:
                    worth = rewards[r, s, a]
                    for j in range(states):
                        worth += transitions[k, s, a, j] * values[h + 1, j]
                    cost = max(values[h, s] - worth, 0.0) + math.sqrt(v[s, a])
                    parts[h, s, a] /= cost * cost
                    total[s, a] += parts[h, s, a]
    for h in range(horizon):
        for s in range(states):
            for a in range(actions):
                parts[h, s, a] = v[s, a] * (parts[h, s, a] / total[s, a]) if v[s, a] > 0.0 else 0.0


@compiled
def is_same(drawn, k):
    """Return whether draw k is the one before: the rule once a finite class is identified."""
    here, before = drawn[k].reshape(-1), drawn[k - 1].reshape(-1)
    for i in range(len(here)):
        if here[i] != before[i]:
            return False
    return True


@compiled
def follow(transitions, rewards, start, chosen, values, visits, errors):
    """Fill how likely the actions `chosen` (H, S) lead where, (H + 1, S), and the errors V_h - r - P·V_{h+1} there."""
    horizon, states = chosen.shape
    visits[1:] = 0.0
    for s in range(states):
        visits[0, s] = start[s]
    for h in range(horizon):
        k, r = h % transitions.shape[0], h % rewards.shape[0]
        ahead, after = values[h + 1], visits[h + 1]
        for s in range(states):
            errors[h, s] = 0.0
            if visits[h, s] > 0.0:
                mass, expected, row = visits[h, s], rewards[r, s, chosen[h, s]], transitions[k, s, chosen[h, s]]
                for j in range(states):
                    expected += row[j] * ahead[j]
                for j in range(states):
                    after[j] += mass * row[j]
                errors[h, s] = values[h, s] - expected
