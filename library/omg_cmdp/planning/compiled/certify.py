"""The compiled certificate of a plan within budgets. `certificate.py` is the same in plain numpy."""

from __future__ import annotations

import numpy as np

from omg_cmdp.jit import inner, leaf
from omg_cmdp.mdp.thresholds import NEGLIGIBLE
from omg_cmdp.planning.rounding import EPSILON, OF_TERM, TINY
from omg_cmdp.planning.rounding import of_slacks as slacks_error
from omg_cmdp.planning.solver.certify import difference, fused, of_slack, of_sum
from omg_cmdp.planning.solver.terms import gap_term

of_slacks = leaf(slacks_error)


@inner
def certified_within(
    transitions, rewards, start, admissible, reached, roots, barrier, policy, values, costs, budgets, prices, allowed
):
    """Return the occupancy measure of `policy`, its slacks b - ⟨q, c⟩ (J,), and the gap that values and prices prove.

    As `certified` of the solver, with λ·(b - ⟨q, c⟩) added; if a budget is exceeded by more than `allowed`, relative to
    the horizon, nothing is proven. That term is not flat in q, so that the occupancy has twice the digits too, and is
    that of the policy with rows that sum to 1.
    """
    horizon, states, actions = policy.shape
    occupancy, count = np.zeros((horizon, states, actions)), budgets.size
    marginal, lower, after, below = start.copy(), np.zeros(states), np.empty(states), np.empty(states)
    slacks, slacks_below = budgets.copy(), np.zeros(count)
    gap = 0.0
    for h in range(horizon):
        k, r, c = h % transitions.shape[0], h % rewards.shape[0], h % costs.shape[1]
        after[:], below[:] = 0.0, 0.0
        for s in range(states):
            if not reached[h, s]:
                if marginal[s] <= NEGLIGIBLE:
                    continue
                gap = np.inf
            total = rest = 0.0
            for a in range(actions):
                total, more = difference(total, -policy[h, s, a])
                rest += more
            share = marginal[s] / total
            share_below = (fused(-share, total, marginal[s]) + lower[s] - share * rest) / total
            for a in range(actions):
                if not admissible[s, a]:
                    continue
                q = share * policy[h, s, a]
                q_below = fused(share, policy[h, s, a], -q) + share_below * policy[h, s, a]
                slack, lost = difference(values[h, s], rewards[r, s, a])
                size = abs(values[h, s]) + rewards[r, s, a]
                for j in range(count):
                    cost, product = costs[j, c, s, a], prices[j] * costs[j, c, s, a]
                    slack, more = difference(slack, -product)
                    lost += more + fused(prices[j], cost, -product)
                    size += abs(product)
                    product = q * cost
                    slacks[j], more = difference(slacks[j], product)
                    slacks_below[j] += more - (fused(q, cost, -product) + q_below * cost)
                if h + 1 < horizon:
                    for j in range(states):
                        p = transitions[k, s, a, j]
                        if p > 0.0:
                            product = q * p
                            after[j], more = difference(after[j], -product)
                            below[j] += more + (fused(q, p, -product) + q_below * p)
                            product = p * values[h + 1, j]
                            slack, more = difference(slack, product)
                            lost += more - fused(p, values[h + 1, j], -product)
                            size += abs(product)
                slack += lost
                occupancy[h, s, a] = q
                if reached[h, s] and q > 0.0 and slack > 0.0:
                    error = 8.0 * EPSILON + (of_slack(states + count) * size + TINY) / slack + OF_TERM
                    u, m = roots[h % roots.shape[0], s, a], barrier[h % barrier.shape[0], s, a]
                    gap += gap_term(u, m, q, slack, error)
                else:
                    gap = np.inf
        marginal, after = after, marginal
        lower, below = below, lower
    gap *= of_sum(occupancy.size)
    for j in range(count):
        slacks[j] += slacks_below[j]
        if not slacks[j] >= -allowed * horizon:
            gap = np.inf
        lost = of_slacks(horizon, states, actions) * (abs(budgets[j]) + horizon)
        gap += of_sum(count) * (prices[j] * (max(slacks[j], 0.0) + lost))
    return occupancy, slacks, gap
