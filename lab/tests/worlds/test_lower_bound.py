"""The lower bound's instance, against its definition."""

import math

import numpy as np
import pytest

from lab.tests.worlds.misspecification import distance_to_class
from omg_lab.worlds import LowerBound


@pytest.mark.parametrize("episodes", [1, 100, 3000, 10**6])
def test_the_gap(episodes):
    world = LowerBound(states=4, actions=3, horizon=5, context_count=12, episodes=episodes)
    assert world.gap == pytest.approx(min(0.25, 0.5 * math.sqrt(3 * 12 * 3 / (episodes * 4))), rel=1e-12)


def test_the_walk_is_uniform_and_never_returns(seed):
    kernel = LowerBound(states=5, seed=seed).mdp(3).transitions
    np.testing.assert_array_equal(kernel[..., 0], 0.0)
    np.testing.assert_array_equal(kernel[..., 1:], 0.25)


def test_one_good_action_in_every_context_and_state(seed):
    world = LowerBound(seed=seed)
    for context in world.contexts:
        rewards = world.mdp(context).rewards
        np.testing.assert_array_equal(rewards.argmax(axis=1), world.good_actions[context])
        np.testing.assert_array_equal(np.sort(rewards, axis=1), [[0.5, 0.5, 0.5 + world.gap]] * 4)
        assert world.optimal_value(context) == pytest.approx(5 * (0.5 + world.gap), rel=1e-12)


def test_good_actions_are_independent_of_context_and_state():
    actions = np.array([LowerBound(seed=seed).good_actions for seed in range(100)])
    assert np.abs([(actions == a).mean(axis=0) - 1 / 3 for a in range(3)]).max() < 0.25  # five deviations
    assert len(np.unique(actions[0], axis=0)) > 1


def test_the_class_is_a_product(seed):
    world = LowerBound(seed=seed)
    functions = world.reward_functions(0)
    np.testing.assert_array_equal(functions.argmax(axis=2), np.arange(3)[:, None].repeat(4, axis=1))
    # One hypothesis for all contexts and states is not enough.
    world.product_class = False
    assert distance_to_class(world).square > 0.0


@pytest.mark.parametrize("name", ["states", "actions", "horizon"])
def test_sizes_of_one_are_refused(name):
    with pytest.raises(ValueError, match=f"`{name}` must be an integer of at least 2, got 1"):
        LowerBound(**{name: 1})
