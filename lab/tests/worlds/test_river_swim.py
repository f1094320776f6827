"""RiverSwim: the river of the papers, and the best swimmer by a recursion of its own."""

import numpy as np
import pytest

from lab.tests.worlds.catalogue import truths, uniform_policy
from omg_cmdp import occupancy_measure, policy_value
from omg_lab.worlds import RiverSwim


def constant_policy(space, action):
    return np.broadcast_to(np.eye(space.actions)[action], (space.horizon, space.states, space.actions)).copy()


def swimmers_value(current, states, horizon):
    """Return the value of swimming always from place 0, place by place."""
    after = np.zeros(states)
    for _ in range(horizon):
        here = np.zeros(states)
        here[0] = (0.65 - current) * after[1] + (0.35 + current) * after[0]
        for place in range(1, states - 1):
            here[place] = (0.4 - current) * after[place + 1] + 0.6 * after[place] + current * after[place - 1]
        here[-1] = 1.0 + (0.65 - current) * after[-1] + (0.35 + current) * after[-2]
        after = here
    return after[0]


@pytest.mark.parametrize("shape", [{}, {"states": 3, "horizon": 5}, {"states": 9, "horizon": 40}])
def test_swimming_is_worth_what_the_recursion_says(seed, shape):
    world = RiverSwim(seed=seed, **shape)
    for context, mdp in zip(world.contexts, truths(world), strict=True):
        swim = world.swim[context]
        current = mdp.transitions[1, swim, 0]
        value = policy_value(mdp, constant_policy(world.space, swim))
        assert value == pytest.approx(swimmers_value(current, mdp.states, mdp.horizon), rel=1e-9)


def test_the_optimum_swims_and_drifting_earns_the_small_reward(seed):
    """Near the end, where the last place is out of reach, the optimum drifts: it is a little above swimming always."""
    world = RiverSwim(seed=seed)
    for context, mdp in zip(world.contexts, truths(world), strict=True):
        drifting = policy_value(mdp, constant_policy(world.space, 1 - world.swim[context]))
        swimming = policy_value(mdp, constant_policy(world.space, world.swim[context]))
        best, value = world.truth(context).best
        assert drifting == pytest.approx(20 * 0.005, rel=1e-9)
        assert swimming <= value <= swimming + drifting
        assert (best[0, :, world.swim[context]] == 1.0).all()
        assert 1.9 < value < 4.5


def test_a_current_of_a_twentieth_is_the_river_of_the_papers():
    world = RiverSwim(context_count=1)
    world._currents = np.full_like(world._currents, 0.05)
    mdp, swim = world.mdp(0), world.swim[0]
    np.testing.assert_allclose(mdp.transitions[0, swim, :2], [0.4, 0.6], atol=1e-12)
    np.testing.assert_allclose(mdp.transitions[2, swim, 1:4], [0.05, 0.6, 0.35], atol=1e-12)
    np.testing.assert_allclose(mdp.transitions[5, swim, 4:], [0.4, 0.6], atol=1e-12)


def test_who_chooses_at_random_hardly_sees_the_last_place(seed):
    world = RiverSwim(seed=seed)
    for mdp in truths(world):
        assert occupancy_measure(mdp, uniform_policy(world.space))[:, -1].sum() < 0.05


def test_a_stronger_current_is_worse(seed):
    world = RiverSwim(seed=seed)
    currents = [mdp.transitions[1, world.swim[c], 0] for c, mdp in zip(world.contexts, truths(world), strict=True)]
    values = [world.optimal_value(c) for c in world.contexts]
    np.testing.assert_array_equal(np.argsort(currents), np.argsort(values)[::-1])


def test_both_names_are_in_use(seed):
    assert set(RiverSwim(seed=seed).swim) == {0, 1}


def test_a_river_has_three_places():
    with pytest.raises(ValueError, match="`states` must be an integer of at least 3, got 2"):
        RiverSwim(states=2)
