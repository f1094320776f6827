"""γ of the rivals that have one: its limits, and a function of the episode in its place."""

import inspect

import numpy as np
import pytest

from library.tests.agents.models import learning, policy_of, uniform
from library.tests.agents.test_tuning import BAD, refuses_by_name, saves_what_it_was_tuned_to
from library.tests.random_mdps import random_mdp
from omg_cmdp import TabularMDP, optimal_policy, policy_value
from omg_cmdp.agents import Power
from omg_lab.rivals import PCIGW, Boltzmann, OccupancyEntropy
from omg_lab.worlds import Decoy

BY_GAMMA = (Boltzmann, OccupancyEntropy, PCIGW)


@pytest.mark.parametrize("kind", BY_GAMMA)
def test_a_large_gamma_is_greedy(kind, rng):
    mdp = random_mdp(rng, 3, 3, 4, kernel="dense", rewards="uniform")
    assert policy_value(mdp, policy_of(kind, mdp, 1e10)) == pytest.approx(optimal_policy(mdp)[1], abs=1e-6)


@pytest.mark.parametrize("kind", [Boltzmann, OccupancyEntropy])
def test_a_small_gamma_is_uniform(kind, rng):
    kernel = np.repeat(rng.dirichlet(np.ones(3), (3, 1)), 2, axis=1)  # actions do not move: no state is to be preferred
    mdp = TabularMDP(transitions=kernel, rewards=rng.random((3, 2)), horizon=4)
    np.testing.assert_allclose(policy_of(kind, mdp, 1e-10), uniform(mdp), atol=1e-4)


@pytest.mark.parametrize("kind", BY_GAMMA)
def test_gamma_is_a_number_or_a_function_of_the_episode(kind):
    world = Decoy()
    fixed, growing, power = (
        learning(world, kind, 6.0),
        learning(world, kind, lambda t: 2.0 * t),
        learning(world, kind, Power(2, 1)),
    )
    for t, same in ((1, False), (3, True)):
        for agent in (fixed, growing, power):
            agent.episodes_seen = t - 1
        first, second, third = (agent.decide(0) for agent in (fixed, growing, power))
        assert second.gamma == third.gamma == 2.0 * t
        assert np.array_equal(second.policy, third.policy)
        assert (first.gamma == second.gamma) is same
    assert learning(world, kind).decide(0).gamma == inspect.signature(kind).parameters["gamma"].default(1)


@pytest.mark.parametrize("bad", BAD, ids=str)
@pytest.mark.parametrize("kind", BY_GAMMA)
def test_other_numbers_are_refused_by_name(kind, bad):
    refuses_by_name(kind, "gamma", bad)


@pytest.mark.parametrize("kind", BY_GAMMA)
def test_tuned_numbers_are_settings(kind, tmp_path):
    saves_what_it_was_tuned_to(kind, tmp_path / "agent")
