"""Boltzmann exploration is the exact maximum of its program."""

import numpy as np
import pytest

from library.tests.agents.models import GAMMAS, divergence, entropies, perturbed, policy_of, uniform
from library.tests.random_mdps import by_step, random_mdp, random_policy
from omg_cmdp import occupancy_measure, optimal_policy, policy_value
from omg_lab.rivals import Boltzmann


@pytest.mark.parametrize("gamma", GAMMAS)
def test_boltzmann_is_the_maximum_of_reward_and_entropy_of_the_actions(gamma, rng):
    """For every policy π: L(π*) - L(π) = (1/γ)·Σ q_π·log(π/π*), with L(π) = ⟨q, f̂⟩ - (1/γ)·Σ q·log π."""
    for _ in range(5):
        mdp = random_mdp(rng, 4, 3, 4, rewards="uniform")
        found = policy_of(Boltzmann, mdp, gamma)

        def score(policy, mdp=mdp):
            visits = occupancy_measure(mdp, policy).sum(axis=2, keepdims=True)
            return gamma * policy_value(mdp, policy) + (visits * entropies(policy)).sum()

        for policy in (random_policy(rng, mdp), uniform(mdp), optimal_policy(mdp)[0], perturbed(rng, found)):
            if (found[policy > 0.0] > 1e-280).all():
                visits = occupancy_measure(mdp, policy).sum(axis=2, keepdims=True)
                gap = (visits * divergence(policy, found)).sum()
                assert score(found) - score(policy) == pytest.approx(gap, rel=1e-6, abs=1e-9 * (1.0 + gamma))


def test_boltzmann_at_one_step_is_softmax(rng):
    mdp = random_mdp(rng, 3, 4, 1, masked=True)
    scores = np.where(mdp.admissible, np.exp(7.0 * by_step(mdp)[1][0]), 0.0)
    np.testing.assert_allclose(policy_of(Boltzmann, mdp, 7.0)[0], scores / scores.sum(axis=1, keepdims=True))
