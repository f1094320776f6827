"""The long decoy: the gap of one pair, H times in an episode."""

import numpy as np
import pytest

from lab.tests.worlds.catalogue import mean_model
from omg_cmdp import optimal_policy
from omg_lab.worlds import LongDecoy


@pytest.mark.parametrize("horizon", [1, 5, 20, 100])
def test_a_wrong_action_costs_its_gap_at_every_step(seed, horizon):
    world = LongDecoy(horizon=horizon, seed=seed)
    for context in world.contexts:
        safe, risky = (np.eye(2)[np.full((horizon, 1), action)] for action in (0, 1))
        regrets = [world.truth(context).regret(policy) for policy in (safe, risky)]
        expected = [0.1 * horizon, 0.0] if world.good[context] else [0.0, 0.4 * horizon]
        np.testing.assert_allclose(regrets, expected, atol=1e-9)


def test_half_of_the_contexts_are_good(seed):
    assert LongDecoy(context_count=8, seed=seed).good.sum() == 4


def test_the_mean_model_of_the_class_is_safe(seed):
    world = LongDecoy(seed=seed)
    for context in world.contexts:
        others = np.delete(world.reward_functions(context)[:, 0, 1], world.reward_index)
        assert 0.1 + 0.5 * 7 / 15 - 1e-12 <= others.mean() <= 0.1 + 0.5 * 8 / 15 + 1e-12
        assert (optimal_policy(mean_model(world, context))[0][:, 0, 0] == 1.0).all()
