"""Randomised values: RLSVI and the distribution of its noise."""

import math

import numpy as np
import pytest
from scipy import stats

from library.tests.agents.models import an_episode
from omg_cmdp import Space, TabularMDP, Trajectory, optimal_policy
from omg_cmdp.mdp.bellman import policy_values
from omg_lab.rivals import RLSVI, Blind

STATES, ACTIONS, HORIZON = 3, 2, 3
SPACE = Space(states=STATES, actions=ACTIONS, horizon=HORIZON)
OFTEN = 4.0
"""Standard errors that a frequency may be off."""


def played(rng, count, space=SPACE):
    every = np.tile(space.admissible / space.admissible.sum(axis=1, keepdims=True), (space.horizon, 1, 1))
    return [an_episode(rng, space, "any", every) for _ in range(count)]


def taught(agent, episodes):
    for episode in episodes:
        agent.update(episode)
    return agent


def with_table(agent, counts, sums):
    """Return the agent, with these tables in the place of what it has seen."""
    state = agent.state()
    agent.load_state({**state, "counts": counts[None], "rewards": sums[None]})
    return agent


def test_the_noise_of_rlsvi_has_the_variance_of_the_formula(rng):
    """At H = 1 the sampled value of a single action is its shrunken mean plus the noise."""
    space = Space(states=1, actions=1, horizon=1)
    values = []
    for seed in range(600):
        agent = RLSVI(space, Blind(), scale=0.3, seed=seed)
        for reward in (0.5, 1.0, 0.0, 1.0):
            agent.update(Trajectory(context=0, states=[0, 0], actions=[0], rewards=[reward]))
        values.append(agent.sampled_values(0)[0, 0])
    variance = 0.3 * 0.5 * math.log(2.0 * 5) / 5.0
    assert agent.variances(0)[0, 0] == pytest.approx(variance)
    assert stats.kstest(values, stats.norm(2.5 / 5.0, math.sqrt(variance)).cdf).pvalue > 1e-4


def test_noise_shrinks_with_visits_and_grows_with_the_episode(rng):
    agent = taught(RLSVI(SPACE, Blind()), played(rng, 20))
    visits, variances = agent.tally("any").counts.sum(axis=2), agent.variances("any")
    beta = 0.5 * STATES * HORIZON**3 * math.log(2 * HORIZON * STATES * ACTIONS * 21)
    np.testing.assert_allclose(variances, beta / (visits + 1.0))


def test_without_noise_it_is_greedy(rng):
    agent = taught(RLSVI(SPACE, Blind(), scale=0.0), played(rng, 300))
    expected = optimal_policy(agent.model("any"))[0]
    np.testing.assert_array_equal(agent.policy("any"), expected)
    noisy = taught(RLSVI(SPACE, Blind(), scale=100.0), played(rng, 30))
    assert (noisy.policy("any") != expected).any()


def shrunken_errors(mdp, tally):
    """Return |(Σ r + Σ N·V*)/(n + 1) - Q*|, (H, S, A)."""
    best, _ = optimal_policy(mdp)
    values, worths = policy_values(mdp, best, mdp.rewards[None])
    weights = tally.counts.sum(axis=2) + 1.0
    return np.array(
        [np.abs((tally.rewards + tally.counts @ values[h + 1]) / weights - worths[h]) for h in range(mdp.horizon)]
    )


def test_rlsvi_is_optimistic_as_often_as_is_proven(rng):
    """With σ² = S·H·e for the true errors e, at least Φ(-1) of the draws; with a thousandth of it, hardly any."""
    kernel, means = rng.dirichlet(np.ones(STATES), (STATES, ACTIONS)), rng.random((STATES, ACTIONS))
    mdp = TabularMDP(transitions=kernel, rewards=means, horizon=HORIZON)
    best = optimal_policy(mdp)[1]
    counts = np.round(6.0 * kernel)
    sums = 0.5 * means * counts.sum(axis=2)  # earned half of what was to be expected
    frequencies = []
    for share in (1.0, 1e-3):
        agent = with_table(taught(RLSVI(SPACE, Blind()), played(rng, 1)), counts, sums)
        worst = (shrunken_errors(mdp, agent.tally("any")).max(axis=0) ** 2 / agent.variances("any")).max()
        scale = share * STATES * HORIZON * worst  # then σ² >= S·H·e for all (h, s, a)
        hits = 0
        for seed in range(300):
            one = with_table(taught(RLSVI(SPACE, Blind(), scale=scale, seed=seed), played(rng, 1)), counts, sums)
            hits += one.sampled_values("any")[0, 0] >= best
        frequencies.append(hits / 300)
    assert frequencies[0] >= stats.norm.cdf(-1.0) - OFTEN * 0.5 / math.sqrt(300)
    assert frequencies[1] < 0.05


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RLSVI(SPACE, Blind(), scale=-1.0), "`scale` must be a finite number of at least 0, got -1.0"),
        (lambda: RLSVI(SPACE, "blind"), "`cover` must be a Cover, got str"),
    ],
)
def test_what_is_wrong_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()
