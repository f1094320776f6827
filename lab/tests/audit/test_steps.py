"""Steps of the appendix that are about any measures or any rewards, not about a run."""

import itertools

import numpy as np
import pytest

from lab.tests.audit.rounds import played, random_pair, unplanned
from library.tests.random_mdps import random_mdp, random_policy, with_tables
from omg_cmdp.mdp import squared_hellinger
from omg_cmdp.planning.decision import Decision, Mixture
from omg_lab.audit.quantities import ModelComparison
from omg_lab.audit.totals import Growth


def two_measures(rng):
    size, sparse = int(rng.integers(2, 6)), rng.random() < 0.3
    rows = rng.dirichlet(np.full(size, 0.1 if sparse else 1.0), 2)
    most = 10.0 ** rng.uniform(-2, 2)
    return *rows, rng.uniform(0.0, most, size), most


def test_means_under_two_measures_differ_by_their_distance(rng):
    """|E_P h - E_Q h| <= √(2R·(E_P h + E_Q h)·D²), and E_P h <= (1 + 1/β)·E_Q h + (9/4)·βR·D² for β >= 1 (E7)."""
    tightest = 0.0
    for _ in range(500):
        p, q, h, most = two_measures(rng)
        distance, beta = float(squared_hellinger(p, q)), 1.0 + rng.exponential(3.0)
        limit = np.sqrt(2.0 * most * (p @ h + q @ h) * distance)
        assert abs(p @ h - q @ h) <= limit * (1.0 + 1e-12)
        assert p @ h <= (1.0 + 1.0 / beta) * (q @ h) + 2.25 * beta * most * distance + 1e-12
        tightest = max(tightest, abs(p @ h - q @ h) / limit)
    assert tightest > 0.5


def every_path(mdp, policy):
    """Yield the probability, states, actions and Bernoulli rewards of every episode of a small MDP."""
    states, actions, coins = (range(n) for n in (mdp.states, mdp.actions, 2))
    for path in itertools.product(itertools.product(states, actions, coins), repeat=mdp.horizon):
        chance = mdp.start[path[0][0]]
        for h, (s, a, r) in enumerate(path):
            mean = mdp.reward_steps[h % len(mdp.reward_steps), s, a]
            chance *= policy[h, s, a] * (mean if r else 1.0 - mean)
            if h + 1 < mdp.horizon:
                chance *= mdp.transition_steps[h % len(mdp.transition_steps), s, a, path[h + 1][0]]
        if chance > 0.0:
            yield chance, path


@pytest.mark.parametrize("reward_steps", [False, True])
def test_the_excess_has_the_mean_size_and_variance_of_the_claim(rng, reward_steps):
    """E excess = Σ q·(f̂ - f*)², |Z| <= 2H, and the variance is the one that the audit computes, for coins."""
    for _ in range(3):
        truth = random_mdp(rng, 2, 2, 2, rewards="uniform", reward_steps=reward_steps, masked=False)
        model = with_tables(truth, rewards=rng.random(truth.rewards.shape))
        policy = random_policy(rng, truth)
        c = ModelComparison(played(truth, unplanned(policy, model)), model)
        chances, excesses = [], []
        for chance, path in every_path(truth, policy):
            excess = 0.0
            for h, (s, a, r) in enumerate(path):
                said, mean = (mdp.reward_steps[h % len(mdp.reward_steps), s, a] for mdp in (model, truth))
                excess += (said - r) ** 2 - (mean - r) ** 2
            chances.append(chance)
            excesses.append(excess)
        chances, excesses = np.array(chances), np.array(excesses)
        mean = chances @ excesses
        assert chances.sum() == pytest.approx(1.0)
        assert mean == pytest.approx(c.reward_error)
        assert np.abs(mean - excesses).max() <= 2.0 * truth.horizon
        assert chances @ (excesses - mean) ** 2 == pytest.approx(c.variance)
        assert c.variance <= 4.0 * truth.horizon * c.reward_error


def test_a_mixture_is_compared_as_its_mean(rng):
    for _ in range(20):
        truth, model = random_pair(rng)
        policies = np.stack([random_policy(rng, truth) for _ in range(3)])
        mixture = Mixture(policies, rng.dirichlet(np.ones(3)))
        c = ModelComparison(played(truth, Decision(policy=policies[0], mixture=mixture, model=model)), model)
        assert c.surprise == pytest.approx(c.policy_error, abs=1e-12)
        assert c.best - c.value == pytest.approx(c.optimum_error + c.plan_gap + c.policy_error, abs=1e-12)


def test_a_right_side_binds_from_the_smallest_t_on(rng):
    for _ in range(100):
        growth, most = Growth(*rng.exponential((100.0, 10.0, 1.0))), rng.uniform(0.5, 3.0)
        first = growth.binds_from(most)
        if growth.linear >= most:
            assert first == np.inf
        else:
            assert growth.at(first) <= most * first * (1.0 + 1e-9)
            assert first <= 1.0 or growth.at(first - 1.0) > most * (first - 1.0)
    assert Growth(constant=np.nan).binds_from(1.0) == Growth(constant=np.inf).binds_from(1.0) == np.inf
