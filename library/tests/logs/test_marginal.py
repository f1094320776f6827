"""Estimates without products of ratios: equal to what they are by definition, and honest about what they cannot use."""

import itertools

import numpy as np
import pytest

from library.tests.logs.tables import CONTEXTS, SPACE, changed, every_episode, mdps, policies, random_log
from omg_cmdp import Episode, Space, policy_value
from omg_cmdp.logs import (
    Log,
    Support,
    fitted_q,
    importance_sampling,
    marginal_doubly_robust,
    marginal_sampling,
    model_value,
)
from omg_cmdp.logs.off_policy.regression import CellRegression


def both_contexts(rng, count=60):
    """Return a log of two contexts, in turns."""
    logs = [random_log(rng, count, context=context).episodes for context in CONTEXTS]
    return Log(SPACE, [episode for pair in zip(*logs, strict=True) for episode in pair])


def by_the_recursion(log, target):
    """Return Σ_h Σ_s d̂_h(s)·r̂_h(s), context by context: the estimator of Xie, Ma and Wang (2019) in plain loops.

    The marginals of all contexts together are normalised at every step.
    """
    value, horizon = 0.0, log.space.horizon
    chosen = np.array([target[e.context][np.arange(horizon), e.states[:-1], e.actions] for e in log.episodes])
    ratios = chosen / log.propensities
    marginals = {(e.context, s): 0.0 for e in log.episodes for s in range(log.space.states)}
    for episode in log.episodes:
        marginals[episode.context, episode.states[0]] += 1.0 / len(log)
    for h in range(horizon):
        mass, earned, following = 0.0, 0.0, dict.fromkeys(marginals, 0.0)
        for (context, state), marginal in marginals.items():
            here = [i for i, e in enumerate(log.episodes) if e.context == context and e.states[h] == state]
            for i in here:
                part = marginal * ratios[i, h] / len(here)
                mass, earned = mass + part, earned + part * log.episodes[i].rewards[h]
                following[context, log.episodes[i].states[h + 1]] += part
        value, marginals = value + earned / mass, following
    return value


def test_it_is_the_recursion_on_marginals(rng):
    log, target = both_contexts(rng), policies(rng)
    assert marginal_sampling(log, target.get).value == pytest.approx(by_the_recursion(log, target), abs=1e-12)


def test_contexts_that_came_once_have_the_weights_of_importance_sampling(rng):
    log, target = random_log(rng, 40), policies(rng)["mild"]
    marginal, plain = (
        marginal_sampling(log, lambda c: target),
        importance_sampling(log, lambda c: target, weighted=True),
    )
    assert marginal.value == pytest.approx(plain.value, abs=1e-12)
    np.testing.assert_allclose(marginal.mean_weights, plain.mean_weights, rtol=1e-12)
    assert marginal.effective_sample_size == pytest.approx(plain.effective_sample_size)


def test_weights_of_states_vary_less_than_products(rng):
    """Where actions change neither state nor reward no weights are needed, and products have them all the same."""
    space = Space(states=2, actions=2, horizon=12, start=np.array([0.5, 0.5]))
    truth = space.mdp(transitions=np.full((2, 2, 2), 0.5), rewards=np.full((2, 2), 0.5))
    target = np.tile([0.9, 0.1], (12, 2, 1))
    episodes = [
        Episode(
            context="c",
            states=rng.integers(2, size=13),
            actions=rng.integers(2, size=12),
            rewards=rng.integers(2, size=12).astype(float),
            propensities=np.full(12, 0.5),
        )
        for _ in range(300)
    ]
    marginal, plain = (
        estimate(Log(space, episodes), lambda c: target) for estimate in (marginal_sampling, importance_sampling)
    )
    assert marginal.effective_sample_size > 5.0 * plain.effective_sample_size
    assert marginal.standard_error < 0.5 * plain.standard_error
    assert abs(marginal.value - policy_value(truth, target)) < 4.0 * marginal.standard_error


def test_a_true_model_of_a_world_without_chance_leaves_no_error(rng):
    space = Space(states=3, actions=2, horizon=4, start=1)
    transitions = np.eye(3)[rng.integers(3, size=(3, 2))]
    truth = space.mdp(transitions=transitions, rewards=rng.integers(2, size=(3, 2)).astype(float))
    behaviour, target = policies(rng, space)["mild"], policies(rng, space)["mild"]
    log = Log(space, [log.episodes[0] for _, log in every_episode(truth, behaviour, "c")])
    estimate = marginal_doubly_robust(log, lambda c: target, lambda c: truth)
    assert estimate.value == pytest.approx(policy_value(truth, target), abs=1e-12)
    assert estimate.standard_error == pytest.approx(0.0, abs=1e-12)


def test_fitted_q_is_the_value_in_the_empirical_model(rng):
    log, target = both_contexts(rng), policies(rng)
    expected = 0.0
    for context in CONTEXTS:
        counts, rewards = np.zeros((2, 2, 2)), np.zeros((2, 2))
        mine = [episode for episode in log.episodes if episode.context == context]
        for episode in mine:
            np.add.at(counts, (episode.states[:-1], episode.actions, episode.states[1:]), 1.0)
            np.add.at(rewards, (episode.states[:-1], episode.actions), episode.rewards)
        visits = counts.sum(axis=2)
        start = np.bincount([episode.states[0] for episode in mine], minlength=2) / len(mine)
        space = Space(states=2, actions=2, horizon=3, start=start)
        model = space.mdp(transitions=counts / visits[:, :, None], rewards=rewards / visits)
        expected += policy_value(model, target[context]) / 2
    estimate = fitted_q(log, target.get)
    assert estimate.value == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(estimate.mean_weights, 1.0)  # every pair has an example


def test_fitted_q_needs_no_propensities(rng):
    log, target = both_contexts(rng), policies(rng)
    silent = Log(SPACE, [changed(episode, propensities=None) for episode in log.episodes])
    assert fitted_q(silent, target.get).value == fitted_q(log, target.get).value


def test_fitted_q_takes_rewards_for_the_same_at_every_step():
    """Action h pays at step h: who plays it earns 2, and a mean over steps says 1."""
    space, target = Space(states=1, actions=2, horizon=2), np.eye(2)[:, None, :]
    steps = {"context": "c", "states": [0, 0, 0], "propensities": [0.5, 0.5]}
    pairs = itertools.product((0, 1), repeat=2)
    log = Log(space, [Episode(**steps, actions=[a, b], rewards=[1.0 - a, float(b)]) for a, b in pairs])
    assert fitted_q(log, lambda c: target).value == pytest.approx(1.0)


def linear_log(rng, count=300):
    """Return a bandit whose second arm pays (1 + x)/2 for a context x that never comes again."""
    episodes = []
    for x in rng.uniform(-1.0, 1.0, size=count):
        arm = int(rng.integers(2))
        reward = 0.5 + 0.5 * x if arm else 0.2
        context = np.array([x])
        episodes.append(Episode(context=context, states=[0, 0], actions=[arm], rewards=[reward], propensities=[0.5]))
    return Log(Space(states=1, actions=2, horizon=1), episodes)


def test_features_share_what_is_learned_between_contexts(rng):
    log = linear_log(rng)

    def better_arm(context):
        return np.eye(2)[[[int(0.5 + 0.5 * context[0] > 0.2)]]]

    exact = np.mean([max(0.2, 0.5 + 0.5 * context[0]) for context in log.contexts])
    shared = fitted_q(log, better_arm, features=lambda context: context)
    assert shared.value == pytest.approx(exact, abs=0.01)  # but for the ridge
    assert shared.support is Support.GOOD
    assert fitted_q(log, better_arm).support is Support.UNSEEN  # nobody saw the other arm of the same context


def test_weights_pulled_back_give_the_same_sum(rng):
    """Σ α·y = Σ w·prediction, whatever the targets."""
    cells, features = rng.integers(4, size=50), rng.normal(size=(50, 2))
    regression = CellRegression(cells, features, np.arange(50), 4)
    queries, points, weights = rng.integers(4, size=20), rng.normal(size=(20, 2)), rng.normal(size=20)
    pulled = regression.pull_back(queries, points, weights)
    for targets in rng.normal(size=(3, 50)):
        asked = regression.predict(regression.fit(targets), queries, points)
        assert pulled @ targets == pytest.approx(weights @ asked, abs=1e-12)


def test_features_that_are_no_vectors_are_refused(rng):
    log, target = random_log(rng), policies(rng)["mild"]
    for features in (lambda c: 1.0, lambda c: [np.nan], lambda c: np.ones(int(c[0] > 0))):
        with pytest.raises(ValueError, match="`features` must return vectors of one length with finite numbers, got"):
            fitted_q(log, lambda c: target, features=features)


def cut_off(log):
    """Return the log with its first episode seen for one step only."""
    first, *others = log.episodes
    short = Episode(
        context=first.context, states=first.states[:2], actions=first.actions[:1], rewards=first.rewards[:1]
    )
    part = log[:0]
    part.episodes = [short, *others]
    return part


def test_episodes_that_were_cut_off_are_fitted_and_not_weighted(rng):
    log, target, model = cut_off(both_contexts(rng)), policies(rng), mdps(rng)
    for estimate in (importance_sampling, marginal_sampling):
        with pytest.raises(
            ValueError, match=r"`log` must hold whole episodes .* got episode 0 cut off after 1 of 3 steps"
        ):
            estimate(log, target.get)
    assert fitted_q(log, target.get).value == pytest.approx(fitted_q(log[1:], target.get).value, abs=0.2)
    assert np.isfinite(model_value(log, target.get, model.get).value)


def test_a_step_seen_before_the_cut_is_learned_from():
    """Of two episodes of a chain 0 → 1, one was cut off in 1; the value there is that of the other."""
    space = Space(states=2, actions=1, horizon=2)
    whole = Episode(context="c", states=[0, 1, 1], actions=[0, 0], rewards=[0.0, 1.0])
    short = Episode(context="c", states=[0, 1], actions=[0], rewards=[1.0])
    log = Log(space, [whole])
    log.episodes.append(short)
    assert fitted_q(log, lambda c: np.ones((2, 2, 1))).value == pytest.approx(0.5 + 1.0)


def test_the_models_own_value(rng):
    log, target, model = both_contexts(rng), policies(rng), mdps(rng)
    estimate = model_value(log, target.get, model.get)
    firsts = [(e.context, e.states[0]) for e in log.episodes]
    started = [Space(states=2, actions=2, horizon=3, start=int(s)) for _, s in firsts]
    tables = [model[c] for c, _ in firsts]
    moved = [s.mdp(transitions=m.transitions, rewards=m.rewards) for s, m in zip(started, tables, strict=True)]
    exact = np.mean([policy_value(m, target[c]) for m, (c, _) in zip(moved, firsts, strict=True)])
    assert estimate.value == pytest.approx(exact, abs=1e-12)
    assert estimate.support is Support.NONE
    assert estimate.interval() == (0.0, 3.0)
