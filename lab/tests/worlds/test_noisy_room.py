"""The noisy room: nobody needs it."""

import numpy as np
import pytest

from lab.tests.worlds.catalogue import model, truths
from omg_cmdp import occupancy_measure, optimal_policy
from omg_lab.worlds import NoisyRoom


@pytest.mark.parametrize("shape", [{}, {"states": 4, "horizon": 10, "exit": 0.5}])
@pytest.mark.parametrize("dial", [0.0, 0.5])
def test_the_best_policy_never_enters_the_room(seed, shape, dial):
    world = NoisyRoom(seed=seed, misspecification=dial, **shape)
    for context, mdp in zip(world.contexts, truths(world), strict=True):
        best, value = world.truth(context).best
        assert occupancy_measure(mdp, best)[:, 1:].sum() == 0.0
        assert value == pytest.approx(world.space.horizon * mdp.rewards[0, :2].max(), rel=1e-12)


def test_the_door_costs_the_desk_for_as_long_as_the_way_back_takes(seed):
    """From the room one is back after a geometric time: V(room) = Σ_k exit·(1 - exit)^(k-1)·V(hub, k steps later)."""
    world = NoisyRoom(seed=seed)
    horizon, leave = world.space.horizon, world.exit
    for context, mdp in zip(world.contexts, truths(world), strict=True):
        good = mdp.rewards[0].argmax()
        policy = np.eye(3)[np.full((horizon, 11), good)]
        policy[0, 0] = np.eye(3)[2]
        left = range(1, horizon - 1)
        expected = sum(leave * (1 - leave) ** (k - 1) * 0.7 * (horizon - 1 - k) for k in left)
        assert world.truth(context).value(policy) == pytest.approx(expected, rel=1e-9)


def test_whatever_the_moves_the_rewards_alone_decide(seed, rng):
    """With any kernel in the room the same policy is best at the hub: its moves need not be learned."""
    world = NoisyRoom(seed=seed)
    truth = world.truth(0)
    for _ in range(10):
        kernel = truth.mdp.transitions.copy()
        kernel[1:] = rng.dirichlet(np.ones(11), size=(10, 3))
        best, value = optimal_policy(model(world, truth.mdp.rewards, kernel))
        np.testing.assert_array_equal(best[:, 0], truth.best[0][:, 0])
        assert value == pytest.approx(truth.best[1], rel=1e-12)


def test_each_desk_is_good_in_half_of_the_class(seed):
    world = NoisyRoom(seed=seed)
    for context in world.contexts:
        others = np.delete(world.reward_functions(context)[:, 0, :2], world.reward_index, axis=0)
        assert set((others == 0.7).sum(axis=0)) == {7, 8}
        assert world.mdp(context).rewards[0].argmax() == world.good_desks[context]
    assert world.good_desks.sum() == 2
