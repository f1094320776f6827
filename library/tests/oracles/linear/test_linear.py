"""Linear rewards: the forecaster by dense algebra, plane rotations, the best weights by scipy; without an intercept,
which `test_intercept.py` is about."""

import functools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from omg_cmdp import oracles
from omg_cmdp.oracles.ball import least_squares
from omg_cmdp.oracles.losses import SQUARE

LinearRewards = functools.partial(oracles.LinearRewards, intercept=False)
STATES, ACTIONS, DIMENSION, HORIZON = 2, 3, 4, 5
SIZE = {"states": STATES, "actions": ACTIONS}
TEMPERS = {"realizable": [1], "proven": [HORIZON], "guarded": [1, HORIZON]}


def in_ball(rng, size, radius=1.0):
    vectors = rng.standard_normal(size)
    return radius * vectors / np.linalg.norm(vectors, axis=-1, keepdims=True) * rng.random((*vectors.shape[:-1], 1))


def random_episode(rng, horizon=HORIZON):
    return rng.integers(STATES, size=horizon), rng.integers(ACTIONS, size=horizon), rng.random(horizon)


def table_features(rng):
    """Return random features (S, A, d) of an integer context."""
    tables = in_ball(rng, (50, STATES, ACTIONS, DIMENSION))
    return lambda context: tables[context]


def dense_forecast(row, rows, rewards, ridge, tau):
    """½ + zᵀ(τλI + Σzzᵀ + τ·zzᵀ)⁻¹Σ(r-½)z, clipped."""
    rows, rewards = np.reshape(rows, (-1, len(row))), np.array(rewards)
    matrix = tau * ridge * np.eye(len(row)) + rows.T @ rows + tau * np.outer(row, row)
    return np.clip(0.5 + row @ np.linalg.solve(matrix, rows.T @ (rewards - 0.5)), 0.0, 1.0)


@pytest.mark.parametrize("rate", TEMPERS)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("ridge", [1.0, 0.01])
def test_predictions_by_dense_algebra(rate, shared, ridge, rng):
    features = table_features(rng)
    vectors = features if shared else (lambda context: features(context)[0, 0])
    oracle = LinearRewards(
        **SIZE, dimension=DIMENSION, horizon=HORIZON, features=vectors, shared=shared, ridge=ridge, rate=rate
    )
    examples, own = [], np.zeros(len(TEMPERS[rate]))
    for context in range(20):
        forecasts = np.empty((len(own), STATES, ACTIONS))
        for k, s, a in np.ndindex(*forecasts.shape):
            row = vectors(context)[s, a] if shared else vectors(context)
            past = [(z, r) for z, r, *pair in examples if shared or pair == [s, a]]
            forecasts[k, s, a] = dense_forecast(row, *zip(*past, strict=True), ridge, TEMPERS[rate][k]) if past else 0.5
        expected = SQUARE.aggregate(own, 2.0 / HORIZON, forecasts)
        np.testing.assert_allclose(oracle.predict(context), expected, rtol=0.0, atol=1e-11)
        states, actions, rewards = random_episode(rng)
        own += ((forecasts[:, states, actions] - rewards) ** 2).sum(axis=1)
        oracle.update(context, states, actions, rewards)
        for s, a, r in zip(states, actions, rewards, strict=True):
            examples.append((vectors(context)[s, a] if shared else vectors(context), r, s, a))


@pytest.mark.parametrize("rate", TEMPERS)
def test_block_features_make_shared_weights_separate(rate, rng):
    blocks = np.eye(STATES * ACTIONS).reshape(STATES, ACTIONS, -1, 1)
    common = {**SIZE, "horizon": HORIZON, "rate": rate, "weight_norm": 1e3}
    separate = LinearRewards(dimension=DIMENSION, **common)
    shared = LinearRewards(
        dimension=STATES * ACTIONS * DIMENSION,
        features=lambda z: (blocks * z).reshape(STATES, ACTIONS, -1),
        shared=True,
        **common,
    )
    contexts = in_ball(rng, (30, DIMENSION))
    for context in contexts:  # before any data; then each weight vector has a noise of its own
        np.testing.assert_allclose(shared.uncertainty(context), separate.uncertainty(context), rtol=1e-9)
    for context in contexts:
        np.testing.assert_allclose(shared.predict(context), separate.predict(context), rtol=0.0, atol=1e-12)
        episode = random_episode(rng)
        separate.update(context, *episode)
        shared.update(context, *episode)
    assert shared.loss == pytest.approx(separate.loss, rel=1e-12)
    assert shared.best_loss() == pytest.approx(separate.best_loss(), rel=1e-9)


@pytest.mark.parametrize("ridge", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("scale", [1e-6, 1.0])
@pytest.mark.parametrize("shared", [False, True])
def test_rotations_keep_the_sums(ridge, scale, shared, rng):
    """RᵀR = [[τλI + Σzzᵀ, b], [bᵀ, Σ(r-½)²]] after 1e5 examples, each entry relative to its diagonal."""
    horizon, episodes = 2000, 50
    tables = scale * in_ball(rng, (episodes, STATES, ACTIONS, DIMENSION)) * np.array([1.0, 1.0, 1e-3, 1e-3])
    features = tables.__getitem__ if shared else (lambda context: tables[context, 0, 0])
    oracle = LinearRewards(
        **SIZE, dimension=DIMENSION, horizon=horizon, features=features, shared=shared, ridge=ridge, feature_norm=scale
    )
    sums = np.zeros((STATES, ACTIONS, DIMENSION + 1, DIMENSION + 1))
    for context in range(episodes):
        states, actions, rewards = random_episode(rng, horizon)
        oracle.update(context, states, actions, rewards)
        rows = tables[context][states, actions] if shared else np.broadcast_to(features(context), (horizon, DIMENSION))
        full = np.column_stack([rows, rewards - 0.5])
        for s, a in np.ndindex(STATES, ACTIONS):
            here = full[(states == s) & (actions == a)]
            sums[s, a] += here.T @ here
    groups = sums.sum(axis=(0, 1))[None] if shared else sums.reshape(-1, DIMENSION + 1, DIMENSION + 1)
    roots = oracle.state()["roots"]
    for k, group in np.ndindex(3, len(groups)):
        tau = (0, 1, horizon)[k]
        root, expected = roots[k, :, :, group], groups[group] + tau * ridge * np.diag([1.0] * DIMENSION + [0.0])
        np.testing.assert_array_equal(np.tril(root, -1), 0.0)
        size = np.sqrt(np.diag(expected))
        np.testing.assert_allclose(root.T @ root / np.outer(size, size), expected / np.outer(size, size), atol=1e-10)


def taught_alone(rng, examples=40, dimension=2, scale=1.0, **options):
    """Return an oracle of one pair, its rows and targets r - ½."""
    oracle = LinearRewards(states=1, actions=1, dimension=dimension, horizon=1, **options)
    rows, slope = in_ball(rng, (examples, dimension), scale), rng.standard_normal(dimension)
    rewards = np.clip(0.5 + rows @ slope / scale * 0.4 + 0.1 * rng.standard_normal(examples), 0.0, 1.0)
    for row, reward in zip(rows, rewards, strict=True):
        oracle.update(row, [0], [0], [reward])
    return oracle, rows, rewards - 0.5


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 1e3])
def test_the_best_loss_is_least_squares_in_the_ball(ridge, rng):
    for radius in (0.01, 0.1, 0.3, 1.0):
        oracle, rows, targets = taught_alone(rng, ridge=ridge, weight_norm=radius)

        def objective(u, rows=rows, targets=targets):
            return ((rows @ u - targets) ** 2).sum()

        inside = {"type": "ineq", "fun": lambda u, radius=radius: radius**2 - u @ u}
        found = minimize(objective, np.zeros(2), constraints=[inside], method="SLSQP", options={"ftol": 1e-14})
        assert oracle.best_loss() == pytest.approx(found.fun, rel=1e-6)
        best = oracle.best_loss()
        assert all(best <= objective(u) + 1e-9 for u in in_ball(rng, (100, 2), radius))


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 1e3])
def test_in_a_large_ball_it_is_ordinary_least_squares(ridge, rng):
    oracle, rows, targets = taught_alone(rng, dimension=3, ridge=ridge, weight_norm=1e3)
    assert oracle.best_loss() == pytest.approx(np.linalg.lstsq(rows, targets, rcond=None)[1][0], rel=1e-8)


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**-4, 2.0**20])
def test_the_unit_of_the_features_does_not_matter(scale, seed):
    """cz, c²λ, cX and B/c are the same problem as z, λ, X and B."""
    for radius in (0.3, 100.0):
        oracle, rows, _ = taught_alone(np.random.default_rng(seed), dimension=3, weight_norm=radius)
        options = {"ridge": scale**2, "feature_norm": scale, "weight_norm": radius / scale}
        other, _, _ = taught_alone(np.random.default_rng(seed), dimension=3, scale=scale, **options)
        for row in rows:
            np.testing.assert_allclose(other.predict(scale * row), oracle.predict(row), rtol=1e-12)
            np.testing.assert_allclose(other.uncertainty(scale * row), oracle.uncertainty(row), rtol=1e-12)
        assert other.regret_bound(10, 1) == pytest.approx(oracle.regret_bound(10, 1), rel=1e-12)
        assert other.best_loss() == pytest.approx(oracle.best_loss(), rel=1e-6)


def test_the_best_loss_of_few_examples_is_zero(rng):
    oracle, _, _ = taught_alone(rng, examples=2, dimension=4, weight_norm=1e3)
    assert oracle.best_loss() == pytest.approx(0.0, abs=1e-9)
    assert LinearRewards(**SIZE, dimension=2, horizon=1).best_loss() == 0.0


def dense_posterior(rows, targets, ridge):
    """Return mean and covariance of the weights: N(0, I/(4Λ)) a priori, X = 1, noise from the ridge residuals."""
    gram, moment = rows.T @ rows, rows.T @ targets
    fitted = ridge * np.eye(len(gram)) + gram
    noise = (0.25 + targets @ targets - moment @ np.linalg.solve(fitted, moment)) / (1.0 + len(targets))
    covariance = np.linalg.inv(4.0 * max(ridge, 1.0) * np.eye(len(gram)) + gram / noise)
    return covariance @ moment / noise, covariance


@pytest.mark.parametrize("ridge", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("examples", [1, 3, 200])
def test_the_uncertainty_is_that_of_the_posterior(ridge, examples, rng):
    oracle, rows, targets = taught_alone(rng, examples=examples, dimension=3, ridge=ridge)
    mean, covariance = dense_posterior(rows, targets, ridge)
    for z in in_ball(rng, (20, 3)):
        bias = np.clip(0.5 + mean @ z, 0.0, 1.0) - oracle.predict(z).item()
        assert oracle.uncertainty(z).item() == pytest.approx(min(z @ covariance @ z + bias**2, 1.0), rel=1e-9)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("ridge", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("scale", [1.0, 1e-5])
def test_what_was_not_tried_stays_uncertain(shared, ridge, scale, rng):
    """The variance of an untried direction is ‖z‖²/(4Λ), after 5 000 rewards without noise in another of any scale."""
    seen, unseen = np.array([0.6, 0.0]) * scale, np.array([0.0, 0.5])
    tables = {"seen": np.stack([[seen, unseen]]), "unseen": np.stack([[unseen, unseen]])}
    options = {"features": tables.__getitem__, "shared": True} if shared else {"features": lambda c: tables[c][0, 0]}
    oracle = LinearRewards(states=1, actions=2, dimension=2, horizon=5, ridge=ridge, **options)
    for _ in range(1000):
        oracle.update("seen", [0] * 5, [0] * 5, [0.8] * 5)
    expected = 0.25 * 0.25 / max(ridge, 1.0)  # X = 1
    np.testing.assert_allclose(oracle.uncertainty("unseen"), [[expected, expected]], rtol=1e-9)
    assert oracle.uncertainty("seen")[0, 0] < 1e-6 or ridge > 1e3 * scale**2


def test_a_noisy_pair_is_not_trusted_because_others_have_no_noise(rng):
    """Fair coins in one pair, constants in the other: each weight vector has a noise of its own."""
    oracle = LinearRewards(states=1, actions=2, dimension=1, horizon=2)
    for _ in range(500):
        oracle.update([1.0], [0, 0], [0, 1], [0.7, float(rng.integers(2))])
    constant, coin = oracle.uncertainty([1.0])[0]
    assert coin == pytest.approx(0.25 / 500, rel=0.1)
    assert constant < 0.01 * coin


def test_ill_conditioned_features_keep_an_honest_uncertainty(rng):
    """z = (1, 10⁻⁶)/2: along z everything is known, across it nothing."""
    oracle = LinearRewards(states=1, actions=1, dimension=2, horizon=10, feature_norm=2.0)
    for _ in range(500):
        z = np.array([0.5, 0.5e-6 * rng.standard_normal()])
        oracle.update(z, [0] * 10, [0] * 10, np.full(10, 0.5 + z[0]))
    assert oracle.uncertainty([0.5, 0.0]).item() < 1e-5
    assert oracle.uncertainty([0.0, 1.0]).item() == pytest.approx(0.25 / 2.0**2, rel=1e-2)


@pytest.mark.parametrize("rate", TEMPERS)
def test_forecasts_are_clipped(rate):
    oracle = LinearRewards(states=1, actions=2, dimension=1, horizon=2, ridge=1e-3, rate=rate)
    for _ in range(50):
        oracle.update([0.1], [0, 0], [0, 1], [1.0, 0.0])
    np.testing.assert_array_equal(oracle.predict([1.0]).round(6), [[1.0, 0.0]])
    np.testing.assert_array_equal(oracle.predict([-1.0]).round(6), [[0.0, 1.0]])
    assert (oracle.uncertainty([1.0]) <= 1.0).all()


def test_long_features_are_refused():
    oracle = LinearRewards(**SIZE, dimension=2, horizon=1, feature_norm=2.0)
    oracle.predict([2.0 * math.sin(1.0), 2.0 * math.cos(1.0)])
    for bad in ([2.0, 1e-3], [1.5, 1.5], [np.nan, 0.0], [np.inf, 0.0]):
        with pytest.raises(ValueError, match="`feature_norm`"):
            oracle.predict(bad)
    for bad in ([1.0], [1.0, 0.0, 0.0], [[1.0, 0.0]], "ab", None, [1.0, None], [[1.0], [1.0, 2.0]], 1.0):
        with pytest.raises(ValueError, match="`context`"):
            oracle.predict(bad)
    shared = LinearRewards(**SIZE, dimension=1, horizon=1, shared=True, features=np.asarray)
    with pytest.raises(ValueError, match=r"`features\(context\)`"):
        shared.predict([[[0.5], [0.5], [0.5]], [[0.5], [0.5], [1.1]]])
    with pytest.raises(ValueError, match="`features`"):
        LinearRewards(**SIZE, dimension=1, horizon=1, shared=True)


def test_features_whose_square_overflows_are_refused():
    oracle = LinearRewards(**SIZE, dimension=2, horizon=1)
    with pytest.raises(ValueError, match="`feature_norm`"):
        oracle.predict([1e200, 0.0])


def test_bounds_in_closed_form():
    for shared, groups in ((False, STATES * ACTIONS), (True, 1)):
        options = {"ridge": 0.5, "feature_norm": 2.0, "weight_norm": 3.0, "shared": shared, "features": np.asarray}
        textbook = groups * (0.5 * 9.0 + DIMENSION / 4 * math.log1p(100 * 4.0 / (0.5 * DIMENSION * groups)))
        for rate, expected in (
            ("proven", HORIZON * textbook),
            ("guarded", HORIZON * textbook + HORIZON / 2 * math.log(2.0)),
            ("realizable", math.inf),
        ):
            oracle = LinearRewards(**SIZE, dimension=DIMENSION, horizon=HORIZON, rate=rate, **options)
            assert oracle.regret_bound(100, HORIZON) == pytest.approx(expected)
            assert oracle.regret_bound(100, HORIZON + 1) == math.inf


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8, 1e14])
def test_the_best_loss_sees_small_features_beside_large_ones(scale, rng):
    """Rewards that are exactly linear in a small feature, and in a large one: no loss is left."""
    oracle = LinearRewards(states=1, actions=1, dimension=2, horizon=1, feature_norm=2.0 * scale)
    weights = np.array([0.2 / scale, 0.25])
    for large, small in rng.uniform(-1.0, 1.0, (300, 2)):
        context = np.array([scale * large, small])
        oracle.update(context, [0], [0], [0.5 + weights @ context])
    assert oracle.best_loss() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8])
def test_the_best_weights_in_the_ball_are_those_of_a_peer(scale, rng):
    """The ball is active: what is best lies outside of it. Projected gradients in the large feature's unit agree."""
    rows = rng.normal(size=(40, 2)) * [scale, 1.0]
    targets = rows @ [0.5 / scale, 3.0] + 0.1 * rng.normal(size=40)
    root = np.linalg.qr(np.column_stack([rows, targets]), mode="r")
    weights, loss = least_squares(root, 1.0)
    assert np.linalg.norm(weights) == pytest.approx(1.0)
    assert loss == pytest.approx(((rows @ weights - targets) ** 2).sum(), rel=1e-9)
    angles = np.linspace(-1e-3, 1e-3, 20001) / scale + math.asin(weights[0])
    around = np.stack([np.sin(angles), np.cos(angles)])
    assert loss <= ((rows @ around - targets[:, None]) ** 2).sum(axis=0).min() * (1.0 + 1e-9)
