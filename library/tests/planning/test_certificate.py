"""The certificate against exact fractions: its slacks where most cancels, and its bound where budgets are left over.

Where a weight is 0 there is no barrier, and the certificate is the gap of a linear program.
"""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from library.tests.random_mdps import random_mdp, random_mdps, random_policy
from omg_cmdp.mdp import TabularMDP, occupancy_measure, policy_value
from omg_cmdp.mdp.bellman import best_response
from omg_cmdp.mdp.occupancy import reachable_states
from omg_cmdp.planning import plan, rounding
from omg_cmdp.planning.certificate import _product, certificate, slacks
from omg_cmdp.planning.rounding import EPSILON


@pytest.mark.parametrize("charged", [False, True])
def test_slacks_are_exact_up_to_one_rounding(charged, rng):
    mdp = random_mdp(rng, 3, 2, 3)
    shape = mdp.reward_steps.shape
    costs = [(float(price), rng.random(shape)) for price in (1e3 * rng.random(2) if charged else ())]
    values = 1e6 * rng.random((mdp.horizon, mdp.states))
    values[0] -= slacks(mdp, values, costs)[0, :, 0]  # there nearly nothing is left
    found = slacks(mdp, values, costs)
    size = 3.0 * values.max() + sum(price for price, _ in costs)
    for h in range(mdp.horizon):
        for s in range(mdp.states):
            for a in range(mdp.actions):
                exact = Fraction(values[h, s]) - Fraction(at(mdp.reward_steps, h)[s, a])
                exact += sum(Fraction(price) * Fraction(at(table, h)[s, a]) for price, table in costs)
                if h + 1 < mdp.horizon:
                    row = at(mdp.transition_steps, h)[s, a]
                    exact -= sum(Fraction(p) * Fraction(v) for p, v in zip(row, values[h + 1], strict=True))
                assert abs(Fraction(found[h, s, a]) - exact) <= Fraction(EPSILON) * abs(exact) + Fraction(
                    rounding.of_slack(mdp.states + len(costs)) * size
                )


def test_a_product_and_what_rounding_took_from_it_are_the_product(rng):
    """Dekker's theorem, which needs halves of 26 digits."""
    one, other = 1.0 + rng.random((2, 1000))
    for a, b, rounded, lost in np.stack([one, other, *_product(one, other)], axis=1).tolist():
        assert Fraction(rounded) + Fraction(lost) == Fraction(a) * Fraction(b)


def test_bounds_of_rounding_are_those_that_are_proven():
    """What the text of `rounding.py` counts; twice the digits lose no less than the square of what plain ones do."""
    for states, actions, horizon in ((1, 1, 1), (2, 3, 4), (50, 7, 200)):
        assert rounding.of_occupancy(states, actions) == (states * actions + actions + 6) * EPSILON
        assert rounding.of_slack(states) > 2 * ((states + 4) * EPSILON) ** 2
        least = (horizon * rounding.of_occupancy(states, actions)) ** 2
        assert rounding.of_slacks(horizon, states, actions) >= least
        assert rounding.of_sum(states) == 1.0 + (states + 16) * 2.0 * EPSILON


def at(table, h):
    return table[h % len(table)]


def test_without_any_weight_it_is_what_a_policy_loses(rng):
    """Of the optimal values every slack is 0 or more, and Σ q·z = V* - V^π."""
    for mdp in random_mdps(rng, 20):
        policy, values = random_policy(rng, mdp), best_response(mdp, mdp.reward_steps)[1][:-1]
        none = np.zeros((mdp.states, mdp.actions))
        proven = certificate(mdp, policy, values, gamma=2.0, weights=none)
        lost = values[0] @ mdp.start - policy_value(mdp, policy)
        assert 2.0 * lost <= proven + 1e-14 * mdp.horizon
        assert proven == pytest.approx(2.0 * lost, rel=1e-11, abs=1e-12)  # with what rounding may have done
        # Values that are too low by d in every step promise d less in each, and prove no more.
        low = values - 0.1 * np.arange(mdp.horizon, 0, -1.0)[:, None]
        assert certificate(mdp, policy, low, gamma=2.0, weights=none) >= 2.0 * lost


def test_no_weight_here_and_there_leaves_a_bound(rng):
    """L(q*) - L(q) from below: a plan for weights that are nearly 0 in these places."""
    for mdp in random_mdps(rng, 20):
        weights = rng.random((mdp.states, mdp.actions)) * (rng.random((mdp.states, mdp.actions)) < 0.5)
        closer = plan(mdp, gamma=30.0, weights=np.maximum(weights, 1e-9), tolerance=1e-10)
        policy = 0.5 * closer.policy + 0.5 * random_policy(rng, mdp)
        occupancy = occupancy_measure(mdp, policy)
        weighed = (weights > 0.0) & (occupancy > 0.0) & reachable_states(mdp)[:, :, None]
        logarithms = np.log(closer.occupancy[weighed] / occupancy[weighed])
        least = 30.0 * ((closer.occupancy - occupancy) * mdp.reward_steps).sum()
        least += (np.broadcast_to(weights, occupancy.shape)[weighed] * logarithms).sum()
        proven = certificate(mdp, policy, closer.values, gamma=30.0, weights=weights)
        assert least <= proven + 1e-9
        assert certificate(mdp, closer.policy, closer.values, gamma=30.0, weights=weights) <= 1e-5


def exact_bound(
    mdp, policy, values, *, gamma=1.0, weights=1.0, uncertainty=None, floor=0.0, costs=None, budgets=(), prices=()
):
    """Return the formula of `certificate` with sixty digits; without a weight the last bracket is γ·(q·z₊ + max z₋)."""
    marginal, spare = [Fraction(p) for p in mdp.start.tolist()], [Fraction(b) for b in budgets]
    shape, reached = (mdp.states, mdp.actions), reachable_states(mdp)
    roots = np.broadcast_to(0.0 if uncertainty is None else uncertainty, shape)
    barrier, gamma = np.broadcast_to(weights if uncertainty is None else floor, shape), Fraction(gamma)
    with localcontext() as digits:
        digits.prec, bound = 60, Decimal(0)
        for h in range(mdp.horizon):
            after, excess = [Fraction(0)] * mdp.states, Fraction(0)
            for s, a in np.argwhere(mdp.admissible & reached[h][:, None]).tolist():
                q = marginal[s] * Fraction(policy[h, s, a]) / sum(map(Fraction, policy[h, s]))
                z = Fraction(values[h, s]) - Fraction(at(mdp.reward_steps, h)[s, a])
                for j, p in enumerate(map(Fraction, at(mdp.transition_steps, h)[s, a])):
                    after[j] += q * p
                    z -= p * Fraction(values[h + 1, j]) if h + 1 < mdp.horizon and reached[h + 1, j] else 0
                for number, price in enumerate(prices):
                    cost = Fraction(at(costs[number].reshape(-1, *shape), h)[s, a])
                    z, spare[number] = z + Fraction(price) * cost, spare[number] - q * cost
                root, weight = decimal(Fraction(roots[s, a]) * q).sqrt() / 2, Decimal(barrier[s, a]) / decimal(gamma)
                if root + weight == 0:
                    bound, excess = bound + decimal(q * max(z, 0)), max(excess, -z)
                else:
                    x = decimal(q * z) / (root + weight)
                    bound += root * (x - 1) ** 2 / x + weight * (x - 1 - x.ln())
            marginal, bound = after, bound + decimal(excess)
        left = sum(Fraction(price) * max(each, 0) for price, each in zip(prices, spare, strict=True))
        return decimal(gamma) * (bound + decimal(left))


def decimal(number):
    return Decimal(number.numerator) / Decimal(number.denominator)


@pytest.mark.parametrize("room", [0.0, 1.0])
def test_a_bound_with_budgets_holds_in_exact_arithmetic(room, rng):
    """Where the planner's terms vanish, x = 1, only what is left over of the budget counts, and its rounding."""
    mdp = TabularMDP(transitions=np.ones((1, 1, 1)), rewards=np.zeros((1, 1)), horizon=1)
    policy = np.ones((1, 1, 1))
    for cost, price, more in rng.random((50, 3)).tolist():
        given = {"gamma": 1.0, "costs": np.array([[[cost]]]), "budgets": [cost + room * more], "prices": [price]}
        values = np.array([[1.0 - price * cost]])
        assert exact_bound(mdp, policy, values, **given) <= Decimal(certificate(mdp, policy, values, **given))


@pytest.mark.parametrize("floor", [0.0, 1e-6, 1.0])
def test_a_term_is_rounded_up(floor, rng):
    """Of one tuple, played surely, the bound is ½·√u·(x - 1)²/x + m·(x - 1 - ln x), x = z/(½·√u + m)."""
    mdp = TabularMDP(transitions=np.ones((1, 1, 1)), rewards=np.zeros((1, 1)), horizon=1)
    for uncertainty, factor in (10.0 ** rng.uniform((-3, -20), (3, 3), (100, 2))).tolist():
        slack = factor * (0.5 * np.sqrt(uncertainty) + floor)
        given = {"uncertainty": np.array([[uncertainty]]), "floor": floor}
        values, policy = np.array([[slack]]), np.ones((1, 1, 1))
        assert exact_bound(mdp, policy, values, **given) <= Decimal(certificate(mdp, policy, values, **given))


def test_no_weight_in_places_is_rounded_up(rng):
    """Also if rows of the policy do not quite sum to 1, and if some slack there is negative."""
    for mdp in random_mdps(rng, 10, states=3, actions=3, horizon=3):
        shape = (mdp.states, mdp.actions)
        policy = random_policy(rng, mdp) * (1.0 + 9e-9 * rng.choice([-1.0, 1.0], (3, 3, 1)))
        for weights in (np.zeros(shape), rng.random(shape) * (rng.random(shape) < 0.5)):
            below = np.where(weights.any(), 0.0, 0.1 * rng.random((3, 3)))
            values = best_response(mdp, mdp.reward_steps)[1][:-1] + np.arange(3.0, 0.0, -1.0)[:, None] - below
            given = {"gamma": 10.0, "weights": weights}
            found, exact = Decimal(certificate(mdp, policy, values, **given)), exact_bound(mdp, policy, values, **given)
            assert exact <= found <= exact * (1 + Decimal("1e-6"))


def test_nothing_is_nothing_rounded_up():
    """Where all slacks are 0, the bound is not negative either."""
    mdp = TabularMDP(transitions=np.full((2, 2, 2), 0.5), rewards=np.zeros((2, 2)), horizon=2)
    found = certificate(mdp, np.full((2, 2, 2), 0.5), np.zeros((2, 2)), gamma=1.0, weights=np.zeros((2, 2)))
    assert 0.0 <= found < 1e-290


def test_what_is_left_of_a_budget_is_known_with_twice_the_digits(rng):
    """Costs that are differences of a potential V, Σ p·V' - V, sum to -V of the first state, whatever is played."""
    left = 2.0**-60
    for _ in range(20):
        table = rng.multinomial(8, [0.3, 0.3, 0.4], (3, 3, 2)) / 8.0
        values = rng.integers(-64, 65, (3, 3)) / 64.0
        values[0, 0] = 0.0
        costs = (table @ np.vstack([values[1:], np.zeros((1, 3))])[:, None, :, None])[..., 0] - values[..., None]
        mdp = TabularMDP(transitions=table, rewards=np.zeros((3, 2)), horizon=3, start=0)
        policy = random_policy(rng, mdp) * (1.0 + 9e-9 * rng.choice([-1.0, 1.0], (3, 3, 1)))
        given = {"gamma": 1.0, "weights": np.zeros((3, 2)), "costs": costs[None], "budgets": [left], "prices": [1.0]}
        exact = exact_bound(mdp, policy, values, **given)
        assert exact == Decimal(left)
        assert exact <= Decimal(certificate(mdp, policy, values, **given)) <= exact * (1 + Decimal("1e-6"))


def test_the_certificate_of_a_plan_with_budgets_holds_in_exact_arithmetic(rng):
    """Of the plan itself, and for budgets and prices that are not those of the plan."""
    for _ in range(5):
        mdp, costs, gamma = random_mdp(rng, 2, 2, 2), rng.random((2, 2, 2)), float(10.0 ** rng.uniform(0, 6))
        uniform = np.tile(mdp.admissible / mdp.admissible.sum(axis=1, keepdims=True), (2, 1, 1))
        spent = (occupancy_measure(mdp, uniform) * costs[:, None]).sum(axis=(1, 2, 3))
        found = plan(mdp, gamma, costs=costs, budgets=spent)
        given = {"gamma": gamma, "costs": costs, "budgets": spent, "prices": found.prices}
        exact = exact_bound(mdp, found.policy, found.values, **given)
        assert exact <= Decimal(found.certificate)
        assert exact <= Decimal(certificate(mdp, found.policy, found.values, **given))
        given |= {"budgets": spent + rng.random(2), "prices": found.prices + rng.random(2)}
        exact = exact_bound(mdp, found.policy, found.values, **given)
        assert exact <= Decimal(certificate(mdp, found.policy, found.values, **given))


def test_a_budget_may_be_exceeded_by_what_the_rule_says_and_no_more():
    """By 1e-7 of the horizon times the largest cost, which is 1 here."""
    mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.zeros((1, 2)), horizon=1)
    given = {"gamma": 1.0, "costs": [[[1.0, 0.0]]], "budgets": [0.0], "prices": [0.0]}
    for excess, proven in ((1e-7, True), (1.001e-7, False)):
        policy = [[[excess, 1.0 - excess]]]
        assert np.isfinite(certificate(mdp, policy, [[2.0]], **given)) == proven
