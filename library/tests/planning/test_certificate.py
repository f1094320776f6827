"""The slacks of the certificate have twice the digits: compared with exact fractions where most cancel.

Where a weight is 0 there is no barrier, and the certificate is the gap of a linear program.
"""

from fractions import Fraction

import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.random_mdps import random_mdp, random_mdps, random_policy
from omg_cmdp.mdp.bellman import best_response
from omg_cmdp.planning.certificate import slacks
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
        proven = omg.certificate(mdp, policy, values, gamma=2.0, weights=none)
        lost = values[0] @ mdp.start - omg.policy_value(mdp, policy)
        assert 2.0 * lost <= proven + 1e-14 * mdp.horizon
        assert proven == pytest.approx(2.0 * lost, rel=1e-11, abs=1e-12)  # with what rounding may have done
        # Values that are too low by d in every step promise d less in each, and prove no more.
        low = values - 0.1 * np.arange(mdp.horizon, 0, -1.0)[:, None]
        assert omg.certificate(mdp, policy, low, gamma=2.0, weights=none) >= 2.0 * lost


def test_no_weight_here_and_there_leaves_a_bound(rng):
    """L(q*) - L(q) from below: a plan for weights that are nearly 0 in these places."""
    for mdp in random_mdps(rng, 20):
        weights = rng.random((mdp.states, mdp.actions)) * (rng.random((mdp.states, mdp.actions)) < 0.5)
        closer = omg.plan(mdp, gamma=30.0, weights=np.maximum(weights, 1e-9), tolerance=1e-10)
        policy = 0.5 * closer.policy + 0.5 * random_policy(rng, mdp)
        occupancy = omg.occupancy_measure(mdp, policy)
        ratio = np.where(occupancy > 0.0, closer.occupancy, 1.0) / np.where(occupancy > 0.0, occupancy, 1.0)
        least = 30.0 * ((closer.occupancy - occupancy) * mdp.reward_steps).sum() + (weights * np.log(ratio)).sum()
        proven = omg.certificate(mdp, policy, closer.values, gamma=30.0, weights=weights)
        assert least <= proven + 1e-9
        assert omg.certificate(mdp, closer.policy, closer.values, gamma=30.0, weights=weights) <= 1e-5
