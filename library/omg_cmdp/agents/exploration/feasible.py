"""The compiled loops of gains within budgets: what drawn models would do that keep the budgets as well.

A drawn model plays its best mixture of policies within the budgets, by columns, as `mdp/budgets.py` has it for one
model. Without the budgets, at the prices of the mean model, a draw in which much is worth more than the price would
spend without end: a gain that no plan can have.
"""

import numpy as np

from omg_cmdp.agents.exploration.compiled import add_draw, carry, follow, is_same, weigh
from omg_cmdp.jit import compiled, inner
from omg_cmdp.mdp.compiled import best_actions

MOST = 40
"""The most exchanges of columns for a draw."""
CLOSE = 1e-7
"""A column enters if it is better than the mixture by more than this, relative to what it earns."""
DEAREST = 1e3
"""The most that prices add up to, times the horizon: where no policy keeps the budgets, an excess is paid for at it."""


@compiled
def fill_gains(
    transitions, rewards, start, admissible, drawn_rewards, drawn_transitions, lows, highs, costs, limits, charges,
    gains, all_visits,
):  # fmt: skip
    """Fill v = b̃²/E[q_k] and E[q_k], as `compiled.fill_gains` does, for the best mixtures within the budgets.

    `rewards` are those of the mean model after `charges` (K, S, A), and so are values. `costs` (J, K, S, A) and
    `limits` (J,) are scaled.
    """
    (horizon, states, _), count, size = all_visits.shape, len(drawn_rewards), limits.size + 1
    values, plans = np.zeros((horizon + 1, states)), np.empty((size, horizon, states), np.int64)
    visits, errors = np.empty((horizon + 1, states)), np.empty((horizon, states))
    flow, came, seen = np.empty(gains.shape), np.empty(gains.shape), np.empty(all_visits.shape)
    sums = np.zeros((5, gains.size))
    all_visits[:] = 0.0
    for k in range(count):
        if k == 0 or not (is_same(drawn_rewards, k) and is_same(drawn_transitions, k)):
            drawn = drawn_transitions[k], drawn_rewards[k]
            shares = mix(drawn[0], drawn[1], start, admissible, costs, limits, plans)
            flow[:], came[:], seen[:] = 0.0, 0.0, 0.0
            for column in range(size):
                if shares[column] > 0.0:
                    evaluate(drawn[0], drawn[1], charges, lows, highs, plans[column], values)
                    follow(transitions, rewards, start, plans[column], values, visits, errors)
                    carry(plans[column], shares[column], visits, errors, flow, came, seen)
        all_visits += seen
        add_draw(flow.reshape(-1), came.reshape(-1), sums)
    all_visits /= count
    weigh(sums, count, gains.reshape(-1))


@inner
def evaluate(transitions, rewards, charges, lows, highs, chosen, values):
    """Fill the values (H + 1, S) of the actions `chosen` (H, S) for rewards less charges."""
    horizon, states = chosen.shape
    for h in range(horizon - 1, -1, -1):
        k, r, c = h % len(transitions), h % len(rewards), h % len(charges)
        for s in range(states):
            a = chosen[h, s]
            total = rewards[r, s, a] - charges[c, s, a]
            for j in range(states):
                total += transitions[k, s, a, j] * values[h + 1, j]
            values[h, s] = min(max(total, lows[h]), highs[h])


@inner
def mix(transitions, rewards, start, admissible, costs, limits, plans):
    """Fill policies (J + 1, H, S) and return their shares (J + 1,): the best mixture, 0 in the place of a slack.

    The revised simplex method: a column is a policy, with what it earns and its excess over the budgets; a slack; or
    an excess over all budgets that is allowed, at a price. Budgets without a policy are exceeded by as little as
    prices of at most `DEAREST` make worth it.
    """
    (horizon, states), last, size = plans.shape[1:], limits.size, limits.size + 1
    inverse, earned, is_policy = np.eye(size), np.zeros(size), np.zeros(size, np.bool_)
    column, duals, direction = np.zeros(size), np.zeros(size), np.empty(size)
    chosen, values, dearest = np.empty((horizon, states), np.int64), np.zeros((horizon + 1, states)), DEAREST * horizon
    none, all_numbers = np.full(horizon + 1, -np.inf), np.full(horizon + 1, np.inf)
    paid, visits = np.empty((horizon, states, admissible.shape[1])), np.empty((2, states))
    for exchange in range(MOST):
        gain, policy, leaving = 0.0, False, last
        column[:] = 0.0
        lowest, total = 0, 0.0
        for j in range(last):
            lowest = j if duals[j] < duals[lowest] else lowest
            total += duals[j]
        if exchange == 1 and inverse[:, last].min() < 0.0:  # the first policy exceeds a budget: the largest is allowed
            column[:last], gain, leaving = -1.0, -dearest, inverse[:last, last].argmin()
        elif exchange > 0 and duals[lowest] < -CLOSE:
            column[lowest], leaving = 1.0, -1
        elif exchange > 0 and total > dearest * (1.0 + CLOSE):
            column[:last], gain, leaving = -1.0, -dearest, -1
        else:
            for h in range(horizon):
                paid[h] = rewards[h % len(rewards)]
                for j in range(last):
                    paid[h] -= max(duals[j], 0.0) * costs[j, h % costs.shape[1]]
            best_actions(transitions, paid, admissible, none, all_numbers, chosen, values)
            gain, policy = spend(transitions, rewards, start, costs, limits, chosen, visits, column), True
            if exchange > 0:
                if gain - (duals * column).sum() <= CLOSE * (1.0 + abs(gain)):
                    break
                leaving = -1
        direction[:] = 0.0
        for i in range(size):
            for j in range(size):
                direction[i] += inverse[i, j] * column[j]
        if leaving < 0:
            least = np.inf
            for i in range(size):
                if direction[i] > CLOSE and inverse[i, last] / direction[i] < least:
                    least, leaving = inverse[i, last] / direction[i], i
            if leaving < 0:
                break
        inverse[leaving] /= direction[leaving]
        for i in range(size):
            if i != leaving:
                inverse[i] -= direction[i] * inverse[leaving]
        earned[leaving], is_policy[leaving] = gain, policy
        if policy:
            plans[leaving] = chosen
        for j in range(size):
            duals[j] = (earned * inverse[:, j]).sum()
    shares = np.where(is_policy, np.maximum(inverse[:, last], 0.0), 0.0)
    return shares / shares.sum()


@inner
def spend(transitions, rewards, start, costs, limits, chosen, visits, column):
    """Fill the excess (J,) of the actions `chosen` over the budgets, and 1; return what they earn."""
    (horizon, states), budgets, earned = chosen.shape, limits.size, 0.0
    for j in range(budgets):
        column[j] = -limits[j]
    column[budgets] = 1.0
    visits[0] = start
    for h in range(horizon):
        k, r, c, now, after = h % len(transitions), h % len(rewards), h % costs.shape[1], h % 2, (h + 1) % 2
        visits[after] = 0.0
        for s in range(states):
            if visits[now, s] > 0.0:
                a, mass = chosen[h, s], visits[now, s]
                earned += mass * rewards[r, s, a]
                for j in range(budgets):
                    column[j] += mass * costs[j, c, s, a]
                for j in range(states):
                    visits[after, j] += mass * transitions[k, s, a, j]
    return earned
