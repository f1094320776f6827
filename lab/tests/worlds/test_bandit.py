import numpy as np
import pytest

from omg_lab.worlds import ContextualBandit


def test_one_state_one_step():
    space = ContextualBandit().space
    assert (space.states, space.horizon) == (1, 1)


def test_rewards_are_linear_in_the_context(seed):
    world = ContextualBandit(seed=seed)
    theta = np.stack([world.reward_functions(axis) - 0.5 for axis in np.eye(4)], axis=-1)
    np.testing.assert_allclose(np.linalg.norm(theta, axis=-1), 0.5, rtol=1e-9)
    for context in world.contexts:
        np.testing.assert_allclose(world.reward_functions(context), 0.5 + theta @ context, rtol=0.0, atol=1e-12)


def test_the_optimum_is_the_best_arm(seed):
    world = ContextualBandit(seed=seed)
    for context in world.contexts:
        assert world.optimal_value(context) == pytest.approx(world.mdp(context).rewards.max(), rel=1e-12)
