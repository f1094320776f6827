"""The corridor: its value is the probability of a run of successes."""

import numpy as np
import pytest

from lab.tests.worlds.catalogue import truths, uniform_policy
from omg_lab.worlds import Corridor


def run_probability(length, coins, p):
    """Return P(a run of `length` heads in `coins` tosses), by the first tail: u_n = p^k + Σ_j p^j·(1 - p)·u_{n-j-1}."""
    found = [0.0] * (coins + 1)
    for n in range(length, coins + 1):
        found[n] = p**length + sum(p**j * (1 - p) * found[n - j - 1] for j in range(length))
    return found[coins]


@pytest.mark.parametrize("shape", [{}, {"states": 5, "horizon": 4}, {"states": 6, "horizon": 9, "slip": 0.3}])
def test_the_optimum_is_the_probability_of_a_run(seed, shape):
    world = Corridor(seed=seed, **shape)
    expected = run_probability(world.length, world.space.horizon - 1, 1.0 - world.slip)
    for context in world.contexts:
        assert world.optimal_value(context) == pytest.approx(expected, rel=1e-9)


def test_choosing_at_random_is_a_fair_coin(seed):
    """One of two actions leads on with probability .95, the other with .05."""
    world = Corridor(seed=seed)
    for context in world.contexts:
        value = world.truth(context).value(uniform_policy(world.space))
        assert value == pytest.approx(run_probability(6, 23, 0.5), rel=1e-9)


@pytest.mark.parametrize("dial", [0.0, 0.5])
def test_a_step_leads_on_or_back_to_the_start(seed, dial):
    for mdp in truths(Corridor(seed=seed, misspecification=dial)):
        for position in range(6):
            both = mdp.transitions[position][:, [0, position + 1]]
            assert (both >= 0.05 - 1e-12).all()
            np.testing.assert_allclose(both.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_array_equal(mdp.transitions[6:, 0, -1], 1.0)


def test_an_episode_is_paid_once(seed, rng):
    world = Corridor(seed=seed)
    best = world.truth(0).best[0]
    returns = {world.sample(0, best, rng).rewards.sum() for _ in range(20)}
    assert returns <= {0.0, 1.0}
