"""Offline oracles minimise the empirical risk, their fits can be kept, and in-sample errors obey the theorem."""

import math

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize

from library.tests.oracles.catalogue import (
    ACTIONS,
    DIMENSION,
    LABELS,
    OFFLINE,
    REWARDS,
    SIZE,
    STATES,
    TRANSITIONS,
    VECTORS,
)
from omg_cmdp.oracles import (
    FiniteDynamics,
    OfflineFiniteDynamics,
    OfflineFiniteRewards,
    OfflineLeastSquaresDynamics,
    OfflineLinearDynamics,
    OfflineLinearRewards,
    OfflineSoftmaxDynamics,
    RewardOracle,
)
from omg_cmdp.oracles.compiled import likelihood
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


# What holds for all of them


@each_offline
def test_a_kept_fit_predicts_what_was_predicted_then(name, rng):
    contexts, build = OFFLINE[name]
    oracle, kept = build(HORIZON), []
    for episode in random_episodes(rng, oracle, contexts, 30):
        kept.append((oracle.parameters(), [oracle.predict(c) for c in contexts]))
        oracle.update(*episode)
    assert len({fit.tobytes() for fit, _ in kept}) > 1
    for fit, predictions in kept:
        for context, prediction in zip(contexts, predictions, strict=True):
            assert np.array_equal(oracle.predict_with(fit, context), prediction)


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
    fit, prediction = oracle.parameters(), oracle.predict_with(oracle.parameters(), contexts[0])
    before = fit.copy(), prediction.copy()
    fit[...], prediction[...] = 0.5, 0.5
    assert np.array_equal(oracle.parameters(), before[0])
    assert np.array_equal(oracle.predict_with(oracle.parameters(), contexts[0]), before[1])


@each_offline
def test_fits_of_another_shape_are_refused(name):
    contexts, build = OFFLINE[name]
    oracle = build(HORIZON)
    with pytest.raises(ValueError, match="`parameters`"):
        oracle.predict_with(np.zeros((1, *oracle.parameters().shape)), contexts[0])


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
        table = oracle.predict_with(np.array([float(number)]), context)
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


@pytest.mark.parametrize("number", [-1.0, 0.5, 16.0, math.nan])
def test_a_fit_that_is_no_function_is_refused(number):
    with pytest.raises(ValueError, match="`parameters`"):
        OfflineFiniteRewards(REWARDS, horizon=1).predict_with(np.array([number]), LABELS[0])


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


# Linear rewards


def rows_and_targets(episodes, state, action):
    rows = [np.asarray(c) for c, states, actions, _ in episodes for s, a in zip(states, actions, strict=True)]
    at = [(s, a) == (state, action) for _, states, actions, _ in episodes for s, a in zip(states, actions, strict=True)]
    targets = np.concatenate([outcomes for *_, outcomes in episodes])
    return np.array(rows)[at], targets[at]


def test_linear_weights_solve_the_normal_equations(rng):
    oracle = OfflineLinearRewards(**SIZE, dimension=DIMENSION, horizon=HORIZON, ridge=0.3)
    episodes = random_episodes(rng, oracle, VECTORS, 25)
    theta = taught(oracle, episodes).parameters().reshape(STATES, ACTIONS, DIMENSION)
    for state in range(STATES):
        for action in range(ACTIONS):
            rows, targets = rows_and_targets(episodes, state, action)
            wanted = np.linalg.solve(0.3 * np.eye(DIMENSION) + rows.T @ rows, rows.T @ (targets - 0.5))
            np.testing.assert_allclose(theta[state, action], wanted, rtol=1e-10)


def test_with_next_to_no_ridge_it_is_least_squares(rng):
    """On data without noise the truth is found, for unseen contexts too."""
    truth = rng.uniform(-0.25, 0.25, (STATES, ACTIONS, DIMENSION))
    oracle = OfflineLinearRewards(**SIZE, dimension=DIMENSION, horizon=HORIZON, ridge=1e-12)
    for _ in range(60):
        context = rng.uniform(-0.5, 0.5, DIMENSION)
        states, actions = rng.integers(STATES, size=HORIZON), rng.integers(ACTIONS, size=HORIZON)
        oracle.update(context, states, actions, 0.5 + (truth @ context)[states, actions])
    unseen = rng.uniform(-0.5, 0.5, DIMENSION)
    np.testing.assert_allclose(oracle.predict(unseen), 0.5 + truth @ unseen, atol=1e-9)


# Linear dynamics


def test_rows_of_linear_dynamics_solve_the_normal_equations(rng):
    oracle = OfflineLinearDynamics(**SIZE, dimension=DIMENSION, horizon=HORIZON, ridge=0.3)
    episodes = random_episodes(rng, oracle, VECTORS, 25)
    theta = taught(oracle, episodes).parameters().reshape(STATES, ACTIONS, DIMENSION, STATES)
    for state in range(STATES):
        for action in range(ACTIONS):
            rows, targets = rows_and_targets(episodes, state, action)
            moments = rows.T @ (np.eye(STATES)[targets] - 1.0 / STATES)
            wanted = np.linalg.solve(0.3 * np.eye(DIMENSION) + rows.T @ rows, moments)
            np.testing.assert_allclose(theta[state, action], wanted, rtol=0, atol=1e-10)


def test_a_linear_truth_is_found_for_unseen_contexts(rng):
    """Frequencies of transitions that are affine in the context, and no projection of the inside of the simplex."""
    slopes = rng.normal(scale=0.05, size=(STATES, ACTIONS, DIMENSION, STATES))
    slopes -= slopes.mean(axis=-1, keepdims=True)
    oracle = OfflineLinearDynamics(**SIZE, dimension=DIMENSION, horizon=HORIZON, ridge=1e-6)
    for _ in range(1000):
        context = rng.uniform(-0.5, 0.5, DIMENSION)
        states, actions = rng.integers(STATES, size=HORIZON), rng.integers(ACTIONS, size=HORIZON)
        chances = (1.0 / STATES + np.einsum("d,sadj->saj", context, slopes))[states, actions].cumsum(axis=1)
        oracle.update(context, states, actions, (chances < rng.random(HORIZON)[:, None]).sum(axis=1))
    unseen = rng.uniform(-0.5, 0.5, DIMENSION)
    truth = 1.0 / STATES + np.einsum("d,sadj->saj", unseen, slopes)
    np.testing.assert_allclose(oracle.predict(unseen), truth, atol=0.12)


def test_a_unit_vector_for_each_label_makes_tables_of_frequencies(rng):
    oracle = OfflineLinearDynamics(**SIZE, dimension=2, horizon=HORIZON, ridge=0.6)
    counts = np.zeros((2, STATES, ACTIONS, STATES))
    for label, states, actions, outcomes in random_episodes(rng, oracle, (0, 1), 40):
        oracle.update(np.eye(2)[label], states, actions, outcomes)
        np.add.at(counts[label], (states, actions, outcomes), 1.0)
    for label in (0, 1):
        expected = (counts[label] + 0.6 / STATES) / (counts[label].sum(axis=-1, keepdims=True) + 0.6)
        np.testing.assert_allclose(oracle.predict(np.eye(2)[label]), expected, atol=1e-12)


# Softmax dynamics


def negative_log_likelihood(flat, offsets, rows, counts, ridge):
    weights = flat.reshape(counts.shape[1], -1)
    logits = offsets + rows @ weights.T
    top = logits.max(axis=1, keepdims=True)
    logs = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    possible = counts > 0
    return -(counts[possible] * logs[possible]).sum() + 0.5 * ridge * (flat**2).sum()


@pytest.fixture
def problem(rng):
    """Offsets, features, counts and ridge of one pair."""
    rows = rng.normal(size=(12, 3)) / 2
    return np.log(rng.dirichlet(np.ones(4))), rows, rng.integers(0, 6, (12, 4)).astype(float), 0.2


def derivatives(flat, offsets, rows, counts, ridge):
    size = flat.size
    gradient, hessian = np.empty(size), np.empty((size, size))
    weights = flat.reshape(counts.shape[1], -1)
    likelihood.derivatives(weights, offsets, rows, counts, ridge, gradient, hessian)
    return gradient, np.tril(hessian) + np.tril(hessian, -1).T


def test_derivatives_are_those_of_the_likelihood(problem, rng):
    def gradient(flat, *rest):
        return derivatives(flat, *rest)[0]

    point = rng.normal(size=12)
    assert check_grad(negative_log_likelihood, gradient, point, *problem) < 1e-5
    _, hessian = derivatives(point, *problem)
    step = 1e-6 * np.eye(12)
    numeric = [(gradient(point + e, *problem) - gradient(point - e, *problem)) / 2e-6 for e in step]
    np.testing.assert_allclose(hessian, numeric, atol=1e-6)


@pytest.mark.parametrize("size", [0.0, 1.0, 30.0])
def test_newton_finds_the_minimum_from_anywhere(problem, size, rng):
    offsets, rows, counts, ridge = problem
    weights = size * rng.normal(size=(4, 3))
    likelihood.maximum_likelihood(weights, offsets, rows, counts, ridge)
    np.testing.assert_allclose(derivatives(weights.reshape(-1), *problem)[0], 0.0, atol=1e-9)
    peer = minimize(negative_log_likelihood, np.zeros(12), args=problem, method="BFGS")
    np.testing.assert_allclose(weights.reshape(-1), peer.x, atol=1e-3)


def test_the_lines_are_no_more_than_the_distinct_features_and_pairs(rng):
    """What is kept is bounded if contexts come again, and it is all that a refit needs."""
    oracle = OfflineSoftmaxDynamics(**SIZE, dimension=DIMENSION, horizon=HORIZON)
    episodes = random_episodes(rng, oracle, VECTORS, 200)
    lines = taught(oracle, episodes).state()["lines"]
    assert len(lines) == len(VECTORS) * STATES * ACTIONS
    assert lines[:, 1 + DIMENSION :].sum() == 200 * HORIZON
    assert len({line[: 1 + DIMENSION].tobytes() for line in lines}) == len(lines)


def test_what_cannot_happen_stays_impossible(rng):
    contexts, build = OFFLINE["offline tilted softmax"]
    oracle = taught(build(HORIZON), random_episodes(rng, build(HORIZON), contexts, 50))
    assert oracle.predict(contexts[0])[0, 0, 1] == 0.0


@pytest.mark.parametrize("name", ["offline linear", "offline softmax"])
def test_uncertainty_is_of_the_size_of_the_error(name, rng):
    """Truths from the prior, averages over twenty of them: within a factor of three, after many and few episodes."""
    _, build = OFFLINE[name]
    for count in (15, 120):
        errors, claims = [], []
        for _ in range(20):
            oracle = build(HORIZON)
            rewards = isinstance(oracle, RewardOracle)
            truth = rng.normal(size=(STATES, ACTIONS, *(() if rewards else (STATES,)), DIMENSION))
            truth = truth / np.linalg.norm(truth, axis=-1, keepdims=True) / 2 if rewards else truth
            for _ in range(count):
                context = VECTORS[rng.integers(len(VECTORS))]
                states, actions = rng.integers(STATES, size=HORIZON), rng.integers(ACTIONS, size=HORIZON)
                table = table_of(truth, context, rewards)[states, actions]
                draws = rng.random(HORIZON)
                outcomes = (draws < table) * 1.0 if rewards else (table.cumsum(axis=1) < draws[:, None]).sum(axis=1)
                oracle.update(context, states, actions, np.minimum(outcomes, STATES - 1))
            for context in VECTORS:
                loss = SQUARE if rewards else LOG
                errors.append(loss.divergence(table_of(truth, context, rewards), oracle.predict(context)).mean())
                claims.append(oracle.uncertainty(context).mean())
        assert 1 / 3 < np.mean(claims) / np.mean(errors) < 3


def table_of(truth, context, rewards):
    inner = truth @ context
    return 0.5 + inner if rewards else np.exp(inner) / np.exp(inner).sum(axis=-1, keepdims=True)
