"""ε-greedy: the mixture, and how ε falls."""

import numpy as np
import pytest

from library.tests.agents.catalogue import build
from library.tests.agents.models import policy_of, uniform
from library.tests.random_mdps import random_mdp
from omg_cmdp import optimal_policy
from omg_cmdp.agents import EpsilonGreedy


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 7.0])
def test_epsilon_greedy_mixes_greedy_and_uniform_at_every_step(epsilon, rng):
    mdp, share = random_mdp(rng, 4, 3, 4), min(1.0, epsilon)
    expected = (1.0 - share) * optimal_policy(mdp)[0] + share * uniform(mdp)
    np.testing.assert_allclose(policy_of(EpsilonGreedy, mdp, epsilon), expected, atol=1e-15)


def test_epsilon_falls_with_the_cube_root_of_the_episodes():
    _, agent = build("epsilon-greedy", space="restricted")
    allowed = agent.space.admissible.sum(axis=1)
    for t in (1, 8, 27, 1000):
        agent.episodes_seen = t - 1
        policy = agent.policy("a")
        share = t ** (-1.0 / 3.0)
        for s, count in enumerate(allowed):
            np.testing.assert_allclose(policy[:, s].max(axis=1), 1.0 - share + share / count)
