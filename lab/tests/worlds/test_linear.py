import numpy as np
import pytest

from omg_lab.worlds import LinearWorld


def test_rewards_and_transitions_are_linear_in_the_context(seed, rng):
    world = LinearWorld(seed=seed)
    corners = np.eye(3)
    context = rng.dirichlet(np.ones(3))
    for functions in (world.reward_functions, world.transition_functions, lambda c: world.mdp(c).transitions):
        mixed = sum(weight * functions(corner) for weight, corner in zip(context, corners, strict=True))
        np.testing.assert_allclose(functions(context), mixed, rtol=0.0, atol=1e-14)


def test_with_the_dial_they_are_not(seed, rng):
    world = LinearWorld(seed=seed, misspecification=0.5)
    halves = (world.mdp(corner).rewards / 2 for corner in np.eye(3)[:2])
    assert np.abs(world.mdp([0.5, 0.5, 0.0]).rewards - sum(halves)).max() > 0.05


@pytest.mark.parametrize("context", [[0.5, 0.5, 0.5], [-0.5, 1.0, 0.5]])
def test_contexts_off_the_simplex_are_refused(context):
    with pytest.raises(ValueError, match="`context` must"):
        LinearWorld().reward_functions(context)
