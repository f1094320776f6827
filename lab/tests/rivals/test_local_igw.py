"""Inverse gap weighting in every state: its formula, and what it cannot see."""

import numpy as np
import pytest

from library.tests.agents.models import GAMMAS, inverse_gap_weighting, knowing, policy_of
from library.tests.random_mdps import by_step, random_mdp
from omg_cmdp import OMG, TabularMDP
from omg_lab.rivals import LocalIGW


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("masked", [False, True])
def test_local_igw_weighs_the_values_of_what_is_played_later(gamma, masked, rng):
    mdp = random_mdp(rng, 4, 3, 4, masked=masked, rewards="uniform")
    (kernel, rewards), values = by_step(mdp), np.zeros(4)
    policy = policy_of(LocalIGW, mdp, gamma)
    for h in reversed(range(4)):
        gains = rewards[h] + kernel[h] @ values
        for s in range(4):
            allowed = mdp.admissible[s]
            expected = inverse_gap_weighting(gains[s, allowed], gamma)
            np.testing.assert_allclose(policy[h, s, allowed], expected, rtol=1e-7)
        values = (policy[h] * gains).sum(axis=1)


@pytest.mark.parametrize("gamma", [0.1, 10.0, 1e4])
def test_local_igw_at_one_step_is_omg(gamma, rng):
    mdp = random_mdp(rng, 3, 4, 1, start_distribution=False)
    omg = knowing(mdp, OMG, gamma, episodes=10**13).policy("c")
    start = mdp.start.argmax()
    np.testing.assert_allclose(policy_of(LocalIGW, mdp, gamma)[0, start], omg[0, start], atol=1e-7)


def test_local_igw_is_blind_to_what_is_rarely_reached(rng):
    """The same policy wherever episodes start; OMG's barrier has it otherwise."""
    tables = {"transitions": rng.dirichlet(np.ones(3), (3, 2)), "rewards": rng.random((3, 2)), "horizon": 3}
    one, other = (TabularMDP(**tables, start=start) for start in ([1.0, 0.0, 0.0], [0.01, 0.9, 0.09]))
    np.testing.assert_array_equal(policy_of(LocalIGW, one, 20.0), policy_of(LocalIGW, other, 20.0))
    assert np.abs(policy_of(OMG, one, 20.0)[0, 0] - policy_of(OMG, other, 20.0)[0, 0]).max() > 0.01
