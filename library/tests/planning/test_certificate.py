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
from omg_cmdp.planning import plan
from omg_cmdp.planning.certificate import certificate, slacks
from omg_cmdp.planning.rounding import EPSILON, of_slack


@pytest.mark.parametrize("charged", [False, True])
def test_slacks_are_exact_up_to_one_rounding(charged, rng):
    mdp = random_mdp(rng, 3, 2, 3)
    shape = mdp.reward_steps.shape
    costs = [(float(price), rng.random(shape)) for price in (1e3 * rng.random(2) if charged else ())]
    values = 1e6 * rng.random((mdp.horizon, mdp.states))
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
                    of_slack(mdp.states + len(costs)) * size
                )


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
        ratio = np.where(occupancy > 0.0, closer.occupancy, 1.0) / np.where(occupancy > 0.0, occupancy, 1.0)
        least = 30.0 * ((closer.occupancy - occupancy) * mdp.reward_steps).sum() + (weights * np.log(ratio)).sum()
        proven = certificate(mdp, policy, closer.values, gamma=30.0, weights=weights)
        assert least <= proven + 1e-9
        assert certificate(mdp, closer.policy, closer.values, gamma=30.0, weights=weights) <= 1e-5


def exact_bound(mdp, policy, values, gamma, costs, budgets, prices):
    """Return Σ x - 1 - ln x, x = γ·q·z, plus γ·Σ λ·max(b - ⟨q, c⟩, 0), with sixty digits."""
    marginal, spare = [Fraction(p) for p in mdp.start.tolist()], [Fraction(b) for b in budgets]
    with localcontext() as digits:
        digits.prec, bound = 60, Decimal(0)
        for h in range(mdp.horizon):
            after = [Fraction(0)] * mdp.states
            for s, a in np.argwhere(mdp.admissible).tolist():
                q = marginal[s] * Fraction(policy[h, s, a]) / sum(map(Fraction, policy[h, s]))
                z = Fraction(values[h, s]) - Fraction(at(mdp.reward_steps, h)[s, a])
                for j, p in enumerate(map(Fraction, at(mdp.transition_steps, h)[s, a])):
                    after[j] += q * p
                    z -= p * Fraction(values[h + 1, j]) if h + 1 < mdp.horizon else 0
                for number, price in enumerate(prices):
                    z += Fraction(price) * Fraction(costs[number, s, a])
                    spare[number] -= q * Fraction(costs[number, s, a])
                x = decimal(Fraction(gamma) * q * z)
                bound += x - 1 - x.ln() if q else 0  # over what can be reached
            marginal = after
        left = sum(Fraction(price) * max(each, 0) for price, each in zip(prices, spare, strict=True))
        return bound + decimal(Fraction(gamma) * left)


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
    for uncertainty, factor in (10.0 ** rng.uniform(-3, 3, (50, 2))).tolist():
        slack = factor * (0.5 * np.sqrt(uncertainty) + floor)
        found = certificate(mdp, np.ones((1, 1, 1)), [[slack]], uncertainty=[[uncertainty]], floor=floor)
        with localcontext() as digits:
            digits.prec, m, root = 60, Decimal(floor), Decimal(uncertainty).sqrt() / 2
            x = Decimal(slack) / (root + m)
            assert root * (x - 1) ** 2 / x + m * (x - 1 - x.ln()) <= Decimal(found)


def test_the_certificate_of_a_plan_with_budgets_holds_in_exact_arithmetic(rng):
    """Of the plan itself, and for budgets and prices that are not those of the plan."""
    for _ in range(5):
        mdp, costs, gamma = random_mdp(rng, 2, 2, 2), rng.random((2, 2, 2)), float(10.0 ** rng.uniform(0, 6))
        uniform = np.tile(mdp.admissible / mdp.admissible.sum(axis=1, keepdims=True), (2, 1, 1))
        spent = (occupancy_measure(mdp, uniform) * costs[:, None]).sum(axis=(1, 2, 3))
        found = plan(mdp, gamma, costs=costs, budgets=spent)
        policy, values, prices = found.policy, found.values, found.prices
        exact = exact_bound(mdp, policy, values, gamma, costs, spent, prices)
        assert exact <= Decimal(found.certificate)
        assert exact <= Decimal(
            certificate(mdp, policy, values, gamma=gamma, costs=costs, budgets=spent, prices=prices)
        )
        other = {"gamma": gamma, "costs": costs, "budgets": spent + rng.random(2), "prices": prices + rng.random(2)}
        assert exact_bound(mdp, policy, values, **other) <= Decimal(certificate(mdp, policy, values, **other))


def test_a_budget_may_be_exceeded_by_what_the_rule_says_and_no_more():
    """By 1e-7 of the horizon times the largest cost, which is 1 here."""
    mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.zeros((1, 2)), horizon=1)
    given = {"gamma": 1.0, "costs": [[[1.0, 0.0]]], "budgets": [0.0], "prices": [0.0]}
    for excess, proven in ((1e-7, True), (1.001e-7, False)):
        policy = [[[excess, 1.0 - excess]]]
        assert np.isfinite(certificate(mdp, policy, [[2.0]], **given)) == proven
