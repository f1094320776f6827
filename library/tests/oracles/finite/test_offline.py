"""Offline oracles minimise the empirical risk, predict by their fits, and in-sample errors obey the theorem."""

import math

import numpy as np
import pytest

from library.tests.oracles.catalogue import (
    ACTIONS,
    LABELS,
    OFFLINE,
    REWARDS,
    STATES,
    TRANSITIONS,
)
from omg_cmdp.oracles import (
    FiniteDynamics,
    OfflineFiniteDynamics,
    OfflineFiniteRewards,
    OfflineLeastSquaresDynamics,
    RewardOracle,
)
from omg_cmdp.oracles.losses import LOG, SQUARE

HORIZON = 4
each_offline = pytest.mark.parametrize("name", OFFLINE)


def random_episodes(rng, oracle, contexts, count):
    """Return (context, states, actions, outcomes), some of them alike."""
    found = []
    for _ in range(count):
        states, actions = rng.integers(STATES, size=HORIZON), rng.integers(ACTIONS, size=HORIZON)
        rewards = isinstance(oracle, RewardOracle)
        outcomes = rng.random(HORIZON) if rewards else rng.integers(STATES, size=HORIZON)
        found.append((contexts[rng.integers(len(contexts))], states, actions, outcomes))
    return found


def taught(oracle, episodes):
    for episode in episodes:
        oracle.update(*episode)
    return oracle


def predicted(oracle, fit, context):
    """Return what the function of this number predicts."""
    return oracle.forecasters._smoothing(oracle.functions(context)[int(fit[0])])


# What holds for all of them


@each_offline
def test_the_fit_says_what_is_predicted(name, rng):
    contexts, build = OFFLINE[name]
    oracle, kept = build(HORIZON), []
    for episode in random_episodes(rng, oracle, contexts, 30):
        kept.append((oracle.parameters(), [oracle.predict(c) for c in contexts]))
        oracle.update(*episode)
    assert len({fit.tobytes() for fit, _ in kept}) > 1
    for fit, predictions in kept:
        for context, prediction in zip(contexts, predictions, strict=True):
            assert np.array_equal(predicted(oracle, fit, context), prediction)


@each_offline
def test_the_order_of_the_episodes_does_not_matter(name, rng):
    """The risk is a sum: refits one by one, from wherever the last one was, give the same in any order."""
    contexts, build = OFFLINE[name]
    episodes = random_episodes(rng, build(HORIZON), contexts, 40)
    forward, backward = taught(build(HORIZON), episodes), taught(build(HORIZON), episodes[::-1])
    np.testing.assert_allclose(forward.parameters(), backward.parameters(), rtol=0, atol=1e-8)


@each_offline
def test_writing_to_a_fit_or_a_prediction_changes_nothing(name, rng):
    contexts, build = OFFLINE[name]
    oracle = taught(build(HORIZON), random_episodes(rng, build(HORIZON), contexts, 10))
    fit, prediction = oracle.parameters(), oracle.predict(contexts[0])
    before = fit.copy(), prediction.copy()
    fit[...], prediction[...] = 0.5, 0.5
    assert np.array_equal(oracle.parameters(), before[0])
    assert np.array_equal(oracle.predict(contexts[0]), before[1])


@each_offline
def test_nothing_is_proven(name):
    assert OFFLINE[name][1](HORIZON).regret_bound(100, HORIZON) == math.inf


@each_offline
def test_an_oracle_that_was_taught_can_load_a_state_without_data(name, rng):
    contexts, build = OFFLINE[name]
    oracle = build(HORIZON)
    untaught = oracle.state()
    taught(oracle, random_episodes(rng, oracle, contexts, 5)).load_state(untaught)
    fresh, episodes = build(HORIZON), random_episodes(rng, oracle, contexts, 5)
    assert np.array_equal(taught(oracle, episodes).parameters(), taught(fresh, episodes).parameters())


# Finite classes


def risk(oracle, number, episodes):
    """Return the loss of one function of the class, from scratch."""
    total = 0.0
    for context, states, actions, outcomes in episodes:
        table = predicted(oracle, [number], context)
        seen = table[states, actions]
        if isinstance(oracle, RewardOracle):
            total += ((seen - outcomes) ** 2).sum()
        elif isinstance(oracle, OfflineLeastSquaresDynamics):
            total += ((seen - np.eye(STATES)[outcomes]) ** 2).sum()
        else:
            total -= np.log(seen[np.arange(HORIZON), outcomes]).sum()
    return total


@pytest.mark.parametrize(
    "name", ["offline finite rewards", "offline finite dynamics", "offline least squares dynamics"]
)
def test_the_fit_has_the_smallest_loss_of_the_class(name, rng):
    contexts, build = OFFLINE[name]
    oracle = build(HORIZON)
    episodes = random_episodes(rng, oracle, contexts, 20)
    if isinstance(
        oracle, OfflineFiniteDynamics
    ):  # one that the support admits: all of the class give it the same chance
        episodes = [(c, s, a, np.full(HORIZON, 2)) for c, s, a, _ in episodes]
    for count, episode in enumerate(episodes, start=1):
        oracle.update(*episode)
        losses = [risk(oracle, number, episodes[:count]) for number in range(len(REWARDS[LABELS[0]]))]
        assert oracle.parameters() == [np.argmin(losses)]
        if not isinstance(oracle, OfflineLeastSquaresDynamics):  # whose account is in log loss
            assert oracle.best_loss() == pytest.approx(min(losses))


def test_the_first_of_equals_is_chosen():
    tables = np.array([0.9, 0.25, 0.75, 0.25])[:, None, None]
    oracle = OfflineFiniteRewards(lambda _: tables, horizon=1)
    assert oracle.predict("any") == 0.9
    oracle.update("any", [0], [0], [0.5])  # the last three are equally far away
    assert oracle.parameters() == [1.0]
    oracle.update("any", [0], [0], [0.51])
    assert oracle.parameters() == [2.0]


def test_uncertainty_is_the_posterior_mean_of_the_squared_error(rng):
    oracle = OfflineFiniteRewards(REWARDS, horizon=HORIZON)
    episodes = random_episodes(rng, oracle, LABELS, 3)
    taught(oracle, episodes)
    losses = np.array([risk(oracle, number, episodes) for number in range(len(REWARDS[LABELS[0]]))])
    posterior = np.exp(-2.0 * losses) / np.exp(-2.0 * losses).sum()
    for label in LABELS:
        errors = (REWARDS[label] - oracle.predict(label)) ** 2
        np.testing.assert_allclose(oracle.uncertainty(label), np.tensordot(posterior, errors, axes=1))


@pytest.mark.parametrize("choice", ["random", "adversarial"])
def test_in_sample_errors_obey_the_theorem(choice, rng):
    """Σ (f̂ - f*)² and Σ D²(P*, P̂) over the past stay below 2·log(N/δ), even where the present error is sought.

    For least squares it is Σ ‖P̂ - P*‖₂², below 4·log(N/δ).
    """
    tables = rng.uniform(0.3, 0.7, (10, 64, STATES, ACTIONS))
    transitions = rng.dirichlet(np.full(STATES, 5.0), (10, 64, STATES, ACTIONS))
    rewards = OfflineFiniteRewards(tables.__getitem__, horizon=1)
    dynamics = OfflineFiniteDynamics(transitions.__getitem__, horizon=1)
    squared = OfflineLeastSquaresDynamics(transitions.__getitem__, horizon=1)
    past, bound, largest = np.zeros((10, STATES, ACTIONS)), 2.0 * math.log(64 / 1e-3), 0.0
    for _ in range(300):
        squares = SQUARE.divergence(tables[:, 0], np.stack([rewards.predict(c) for c in range(10)]))
        hellinger = LOG.divergence(transitions[:, 0], np.stack([dynamics.predict(c) for c in range(10)]))
        distances = ((transitions[:, 0] - np.stack([squared.predict(c) for c in range(10)])) ** 2).sum(axis=-1)
        sums = (past * squares).sum(), (past * hellinger).sum(), (past * distances).sum() / 2.0
        assert max(sums) <= bound
        largest = max(largest, *sums)
        worst = np.argmax(squares + hellinger)
        context, state, action = np.unravel_index(worst if choice == "adversarial" else rng.integers(60), past.shape)
        past[context, state, action] += 1
        mean, row = tables[context, 0, state, action], transitions[context, 0, state, action]
        rewards.update(context, [state], [action], [float(rng.random() < mean)])
        outcome = [int(rng.choice(STATES, p=row))]
        dynamics.update(context, [state], [action], outcome)
        squared.update(context, [state], [action], outcome)
    assert largest > 0.05 * bound  # so that the test can fail


def test_outcomes_against_the_leader_make_its_regret_linear():
    """Why there is no bound: outcomes against the leader make the regret linear, where Vovk's is at most ½·log 2."""
    oracle = OfflineFiniteRewards(lambda _: np.array([[[0.0]], [[1.0]]]), horizon=1)
    for _ in range(100):
        oracle.update("any", [0], [0], 1.0 - oracle.predict("any")[0])
    assert oracle.loss - oracle.best_loss() >= 50.0


def test_smoothing_is_that_of_the_online_class(rng):
    settings = {"horizon": HORIZON, "smoothing": 0.3}
    offline, online = OfflineFiniteDynamics(TRANSITIONS, **settings), FiniteDynamics(TRANSITIONS, **settings)
    for episode in random_episodes(rng, offline, LABELS, 10):
        offline.update(*episode)
        online.update(*episode)
        assert offline.best_loss() == online.best_loss()
