"""ILTCB: its program is solved, within the number of steps that its paper proves, and its estimates are unbiased."""

import math

import numpy as np
import pytest

from lab.tests.rivals.bandits.games import one_state, rounds, taught, taught_late, with_class
from omg_lab.rivals import ILTCB
from omg_lab.rivals.bandits.iltcb import action_shares, low_variance_weights
from omg_lab.rivals.bandits.policies import smoothed

CONTEXTS = ("a", "b", "c", "d")


def is_solved(weights, actions, shares, admissible, slack, least):
    """Assert both constraints of OP."""
    most = admissible.sum(axis=1).max()
    assert (weights >= 0.0).all()
    assert weights.sum() <= 1.0 + 1e-9
    assert weights @ slack <= 2.0 * most + 1e-9
    chances = smoothed(action_shares(weights, actions, admissible.shape[1]), least, admissible)
    variances = (shares / chances[np.arange(len(shares)), actions]).sum(axis=1)
    assert (variances <= 2.0 * most + slack + 1e-9).all()


@pytest.mark.parametrize("least", [0.1, 0.02, 0.003])
def test_coordinate_descent_solves_the_program_in_the_number_of_steps_that_is_proven(least, rng):
    for _ in range(12):
        policies, places, most = (int(rng.integers(2, high)) for high in (60, 12, 6))
        admissible = rng.random((places, most)) < 0.7
        admissible[np.arange(places), rng.integers(most, size=places)] = True
        admissible[0] = True
        least_here = min(least, 0.5 / most)
        actions = np.where(admissible, rng.random((policies, places, most)), -1.0).argmax(axis=2)
        shares, slack = rng.dirichlet(np.ones(places)), rng.exponential(size=policies) * rng.choice([0.1, 10.0, 100.0])
        weights, steps = low_variance_weights(actions, shares, admissible, slack, least_here)
        is_solved(weights, actions, shares, admissible, slack, least_here)
        assert steps <= 4.0 * math.log(1.0 / (most * least_here)) / least_here


def test_of_one_policy_the_probability_follows_a_logistic_map():
    """K = 2, b = 0, one context: a step takes x = Q^μ(π) to 2x·(1 - x), until 1/x <= 4."""
    least, steps = 0.001, 0
    x = least
    while 1.0 / x > 4.0:
        x, steps = 2.0 * x * (1.0 - x), steps + 1
    found = low_variance_weights(np.array([[1]]), np.ones(1), np.ones((1, 2), dtype=bool), np.zeros(1), least)
    assert found[1] == steps
    assert found[0][0] == pytest.approx((x - least) / (1.0 - 2.0 * least))


def test_without_regrets_and_with_all_actions_the_smoothing_alone_may_be_enough():
    """At μ = 1/(2K) even Q = 0 has variance 2K: nothing is to be done."""
    weights, steps = low_variance_weights(
        np.array([[0, 1], [1, 0]]), np.array([0.5, 0.5]), np.ones((2, 2), dtype=bool), np.zeros(2), 0.25
    )
    assert steps == 0
    assert not weights.any()


def test_an_agent_solves_the_program_of_its_own_past(rng):
    tables = {c: rng.random((24, 1, 3)) for c in CONTEXTS}
    truth = {c: tables[c][4, 0] for c in CONTEXTS}
    agent = with_class(ILTCB, tables, contexts=CONTEXTS, scale=0.2, psi=0.5)
    greedy = {c: tables[c][:, 0].argmax(axis=1) for c in CONTEXTS}
    earned, came = np.zeros(24), dict.fromkeys(CONTEXTS, 0)
    for t, played in enumerate(rounds(agent, truth, CONTEXTS, 130, rng), start=1):
        assert played.policy.min() >= agent.least - 1e-12
        earned += (greedy[played.context] == played.action) * played.reward / played.policy[played.action]
        came[played.context] += 1
        if t in (32, 64, 128):  # as the agent will be after this round
            past = earned.copy(), np.array([came[c] for c in CONTEXTS]) / t
        if t in (33, 65, 129):
            np.testing.assert_allclose(agent.state()["earned"], past[0], rtol=1e-9)
            slack = (past[0].max() - past[0]) / ((t - 1) * agent.psi * agent.least)
            actions, seen = np.stack([greedy[c] for c in CONTEXTS], axis=1), past[1] > 0.0
            mask = np.ones((int(seen.sum()), 3), dtype=bool)
            program = actions[:, seen], past[1][seen], mask, slack, agent.least
            is_solved(agent.state()["weights"], *program)
            np.testing.assert_allclose(agent.state()["weights"], low_variance_weights(*program)[0], atol=1e-9)
    assert np.count_nonzero(agent.state()["weights"]) < 24  # sparse


def test_estimated_rewards_of_policies_are_unbiased(rng):
    """E Σ r/p·1{π(c) = a} = T·E f*(π): within four standard errors."""
    tables, totals, runs = {"c": np.array([[[0.9, 0.1, 0.2]], [[0.1, 0.8, 0.3]]])}, [], 100
    for _ in range(runs):
        agent = with_class(ILTCB, tables, contexts=["c"])
        for _ in rounds(agent, {"c": np.array([0.7, 0.4, 0.5])}, ["c"], 8, rng):
            pass
        totals.append(agent.state()["earned"])
    mean, error = np.mean(totals, axis=0), np.std(totals, axis=0) / math.sqrt(runs)
    assert (np.abs(mean - [5.6, 3.2]) <= 4.0 * error).all()


def test_a_late_reward_is_divided_by_the_probability_with_which_its_action_was_played():
    agent = with_class(ILTCB, {"c": np.eye(2)[:, None]}, contexts=["c"], scale=0.1)
    played = agent.policy("c")[0, 0]
    for _ in range(100):
        taught(agent, "c", 0, 1.0)
    assert abs(agent.policy("c")[0, 0, 1] - played[1]) > 0.05
    before = agent.state()["earned"]
    taught_late(agent, "c", 1, 0.6, chance=played[1])
    np.testing.assert_allclose(agent.state()["earned"] - before, [0.0, 0.6 / played[1]], atol=1e-9)


def test_where_fewer_actions_are_admissible_all_of_them_are_played():
    mask = np.array([[True, True, True], [True, False, False]])
    space = one_state(3, 2, start=[0.5, 0.5], admissible=mask)
    tables = {"c": np.array([[[0.1, 0.2, 0.3], [0.1, 0.9, 0.9]]])}
    agent = with_class(ILTCB, tables, contexts=["c"], space=space)
    for _ in range(9):
        taught(agent, "c", 0, 1.0, state=1)
    policy = agent.policy("c")[0]
    np.testing.assert_array_equal(policy > 0.0, mask)
    np.testing.assert_allclose(policy.sum(axis=1), 1.0)


def test_what_is_refused():
    tables = {"c": np.zeros((2, 1, 2))}
    with pytest.raises(ValueError, match="`reward_oracle` must be a FiniteRewards, got OfflineFiniteRewards"):
        with_class(ILTCB, tables, contexts=["c"], offline=True)
    with pytest.raises(ValueError, match="`contexts` must list at least one"):
        with_class(ILTCB, tables, contexts=[])
    agent = with_class(ILTCB, tables | {"d": tables["c"]}, contexts=["c"])
    with pytest.raises(ValueError, match="`context` must be one of the 1 in `contexts`, got 'd'"):
        agent.policy("d")
