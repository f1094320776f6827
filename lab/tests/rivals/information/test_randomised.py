"""Randomised values: RLSVI, the uncertainty Bellman equation, ensembles, and the distributions they stand for."""

import math

import numpy as np
import pytest
from scipy import stats

from library.tests.agents.models import an_episode
from omg_cmdp import Space, TabularMDP, Trajectory, optimal_policy
from omg_cmdp.mdp.bellman import policy_values
from omg_lab.rivals import RLSVI, Blind, BootstrappedEnsemble, UncertaintyBellman
from omg_lab.rivals.information.uncertainty_bellman import uncertainties

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


@pytest.mark.parametrize("kind", [RLSVI, UncertaintyBellman])
def test_without_noise_it_is_greedy(kind, rng):
    agent = taught(kind(SPACE, Blind(), scale=0.0), played(rng, 300))
    expected = optimal_policy(agent.model("any"))[0]
    np.testing.assert_array_equal(agent.policy("any"), expected)
    noisy = taught(kind(SPACE, Blind(), scale=100.0), played(rng, 30))
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


def layered(width=2, horizon=3):
    """Return a space in which no state comes back: `width` states for each step, and one at the end."""
    return Space(states=width * horizon + 1, actions=2, horizon=horizon, start=np.eye(width * horizon + 1)[0])


@pytest.mark.parametrize("strength", [0.5, 5.0])
def test_the_uncertainty_bellman_equation_bounds_the_posterior_variance(strength, rng):
    """By draws from independent posteriors, in a world in which no state comes back; and u is not far too large."""
    width, horizon, count = 2, 3, 4000
    space = layered(width, horizon)
    states = space.states
    shapes = np.zeros((states, 2, states))
    for s in range(states):
        layer = min(s // width + 1, horizon)
        following = [states - 1] if layer == horizon else range(layer * width, (layer + 1) * width)
        shapes[s][:, following] = strength * (0.3 + rng.random((2, len(following))))
    good, bad = strength * (0.3 + rng.random((2, states, 2)))
    mean_rows = shapes / shapes.sum(axis=2, keepdims=True)
    model = TabularMDP(transitions=mean_rows, rewards=good / (good + bad), horizon=horizon, start=space.start)
    policy = np.tile(rng.dirichlet(np.ones(2), states), (horizon, 1, 1))
    rewards = model.rewards * (1.0 - model.rewards) / (good + bad + 1.0)
    options = (shapes > 0.0).sum(axis=2)
    rows = (options - 1.0) / (shapes.sum(axis=2) + 1.0)
    local = np.array([rewards + (horizon - 1 - h) ** 2 * rows for h in range(horizon)])
    bound = uncertainties(model, policy, local)

    gammas = np.where(shapes > 0.0, rng.gamma(np.where(shapes > 0.0, shapes, 1.0), size=(count, *shapes.shape)), 0.0)
    kernels, means = gammas / gammas.sum(axis=3, keepdims=True), rng.beta(good, bad, size=(count, states, 2))
    values, worths = np.zeros((count, states)), {}
    for h in reversed(range(horizon)):
        worths[h] = means + np.einsum("ksaj,kj->ksa", kernels, values)
        values = (worths[h] * policy[h]).sum(axis=2)
    for h in range(horizon):
        here = slice(h * width, (h + 1) * width)
        variance, fourth = (
            worths[h][:, here].var(axis=0),
            ((worths[h] - worths[h].mean(axis=0)) ** 4).mean(axis=0)[here],
        )
        error = OFTEN * np.sqrt(fourth / count)
        assert (variance <= bound[h, here] + error).all()
    last = slice((horizon - 1) * width, horizon * width)
    np.testing.assert_allclose(worths[horizon - 1][:, last].var(axis=0), bound[horizon - 1, last], rtol=0.15)


def test_the_local_uncertainty_is_that_of_the_posterior(rng):
    """Σ Var P/P̄ of Dirichlet rows, and the variance of a Beta mean, by their textbook formulas."""
    agent = taught(UncertaintyBellman(SPACE, Blind(), prior=0.7), played(rng, 9))
    tally, model = agent.tally("any"), agent.model("any")
    local = agent._local(tally, model)
    for s, a in np.ndindex(STATES, ACTIONS):
        shapes = tally.counts[s, a] + 0.7
        row = stats.dirichlet(shapes)
        good, bad = 1.0 + tally.rewards[s, a], 1.0 + tally.counts[s, a].sum() - tally.rewards[s, a]
        np.testing.assert_allclose(model.transitions[s, a], row.mean())
        assert model.rewards[s, a] == pytest.approx(stats.beta(good, bad).mean())
        for h in range(HORIZON):
            spread = (HORIZON - 1 - h) ** 2 * (row.var() / row.mean()).sum()
            assert local[h, s, a] == pytest.approx(stats.beta(good, bad).var() + spread)


def test_actions_are_chosen_by_noise_of_that_size(rng):
    """One state, one step: the share of noises that prefer an action is Φ(difference/√(u + u'))."""
    space = Space(states=1, actions=2, horizon=1)
    episodes = [Trajectory(context=0, states=[0, 0], actions=[i % 2], rewards=[float(i % 4 == 0)]) for i in range(12)]
    chosen = []
    for seed in range(500):
        agent = taught(UncertaintyBellman(space, Blind(), scale=2.0, seed=seed), episodes)
        chosen.append(agent.policy(0)[0, 0, 0])
    means, variances = (part[0, 0] for part in agent.beliefs(0))
    expected = stats.norm.cdf((means[0] - means[1]) / (2.0 * math.sqrt(variances.sum())))
    assert abs(np.mean(chosen) - expected) < OFTEN * 0.5 / math.sqrt(500)


def test_members_of_an_ensemble_are_draws_from_the_posterior():
    """For data that others gathered: rows are Dirichlet(α + N), mean rewards Beta, and members independent."""
    space, members, prior = Space(states=3, actions=1, horizon=2), 1500, 0.7
    agent = BootstrappedEnsemble(space, Blind(), members=members, prior=prior, seed=2)
    counts, good = np.zeros((3, 3)), np.zeros(3)
    generator = np.random.default_rng(4)
    for _ in range(10):
        states, rewards = [0, *generator.integers(3, size=2)], generator.integers(2, size=2).astype(float)
        agent.update(Trajectory(context=0, states=states, actions=[0, 0], rewards=rewards))
        np.add.at(counts, (states[:-1], states[1:]), 1.0)
        np.add.at(good, states[:-1], rewards)
    rows, rewards = (table / table.sum(axis=-1, keepdims=True) for table in agent.tally(0))
    for s in range(3):
        shapes, visits = counts[s] + prior, counts[s].sum()
        for j in range(3):
            law = stats.beta(shapes[j], shapes.sum() - shapes[j])
            assert stats.kstest(rows[:, s, 0, j], law.cdf).pvalue > 1e-4
        law = stats.beta(1.0 + good[s], 1.0 + visits - good[s])
        assert stats.kstest(rewards[:, s, 0, 1], law.cdf).pvalue > 1e-4
        covariance = -shapes[0] * shapes[1] / shapes.sum() ** 2 / (shapes.sum() + 1.0)
        assert np.cov(rows[:, s, 0, 0], rows[:, s, 0, 1])[0, 1] == pytest.approx(covariance, abs=0.01)
    halves = rows[: members // 2, 0, 0, 0], rows[members // 2 :, 0, 0, 0]
    assert abs(np.corrcoef(*halves)[0, 1]) < OFTEN / math.sqrt(members // 2)


def test_each_member_is_played_as_often(rng):
    """Members are drawn uniformly, and what is played is the optimum of the one drawn."""
    agent = BootstrappedEnsemble(SPACE, Blind(), members=3, seed=1)
    played_by = np.zeros(3)
    for episode in played(rng, 150):
        rows, rewards = (table / table.sum(axis=-1, keepdims=True) for table in agent.tally("any"))
        policies = [optimal_policy(SPACE.mdp(transitions=rows[k], rewards=rewards[k, :, :, 1]))[0] for k in range(3)]
        same = [(agent.policy("any") == policy).all() for policy in policies]
        assert any(same)
        played_by += np.array(same) / sum(same)
        agent.update(episode)
    assert (abs(played_by / 150 - 1.0 / 3.0) < OFTEN * 0.5 / math.sqrt(150)).all()


def test_one_member_never_changes_its_mind_about_what_it_never_tries():
    """Two arms, one member whose prior likes the wrong one: it plays the other only if what it earns falls below."""
    space = Space(states=1, actions=2, horizon=1)
    for seed in range(20):
        agent = BootstrappedEnsemble(space, Blind(), members=1, seed=seed)
        first = agent.policy(0)[0, 0].argmax()
        for _ in range(30):
            agent.update(Trajectory(context=0, states=[0, 0], actions=[first], rewards=[1.0]))
            assert agent.policy(0)[0, 0].argmax() == first


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RLSVI(SPACE, Blind(), scale=-1.0), "`scale` must be a number of at least 0, got -1.0"),
        (lambda: UncertaintyBellman(SPACE, Blind(), prior=0.0), "`prior` must be a positive"),
        (lambda: BootstrappedEnsemble(SPACE, Blind(), members=0), "`members` must be an integer of at least 1, got 0"),
        (lambda: RLSVI(SPACE, "blind"), "`cover` must be a Cover, got str"),
    ],
)
def test_what_is_wrong_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()
