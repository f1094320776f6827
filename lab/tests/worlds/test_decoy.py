"""The decoy: the safe arm is best in the mean model of the class, not in the world."""

import math

import numpy as np
import pytest

from lab.tests.worlds.catalogue import Learner, mean_model, truths, uniform_policy
from omg_cmdp import optimal_policy, policy_value
from omg_lab.worlds import Decoy


def test_three_risky_arms_in_ten_are_good():
    """On average over worlds, and exactly in every cell over the class."""
    worlds = [Decoy(seed=seed) for seed in range(30)]
    good = [np.mean([mdp.rewards[:, 1:] == 0.95 for mdp in truths(world)]) for world in worlds]
    assert np.mean(good) == pytest.approx(10 / 32, abs=0.03)
    for context in worlds[0].contexts:
        shares = (worlds[0].reward_functions(context)[:, :, 1:] == 0.95).mean(axis=0)
        np.testing.assert_array_equal(shares, math.ceil(0.3 * 32) / 32)


def test_the_prior_mean_of_a_risky_arm_is_below_the_safe_one(seed):
    world = Decoy(seed=seed)
    for context in world.contexts:
        mean = world.reward_functions(context).mean(axis=0)
        np.testing.assert_allclose(mean[:, 0], 0.5, rtol=1e-12)
        np.testing.assert_allclose(mean[:, 1:], 0.1 + 0.85 * 10 / 32, rtol=1e-12)


def test_the_best_plan_in_the_mean_model_is_safe(seed):
    world = Decoy(seed=seed)
    for context in world.contexts:
        assert (optimal_policy(mean_model(world, context))[0][:, :, 0] == 1.0).all()


@pytest.mark.parametrize("rate", ["guarded", "proven", "realizable"])
def test_greedy_stays_with_the_safe_arm(seed, rng, rate):
    world = Decoy(seed=seed)
    agent = Learner(world, rate)
    for episode in range(64):
        context = world.contexts[episode % len(world.contexts)]
        policy = agent.policy(context)
        assert (policy[:, :, 0] == 1.0).all()
        agent.play(context, policy, rng)


def test_who_tries_the_risky_arms_learns_which_are_good(seed, rng):
    world = Decoy(seed=seed)
    agent = Learner(world)
    for episode in range(600):
        agent.play(world.contexts[episode % len(world.contexts)], uniform_policy(world.space), rng)
    for context in world.contexts:
        value = policy_value(world.truth(context).mdp, agent.policy(context))
        assert value == pytest.approx(world.optimal_value(context), rel=1e-9)
