"""Softmax dynamics: compiled loops against numpy, stationarity, the projection's KKT conditions, batch likelihood."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from omg_cmdp.oracles import SoftmaxDynamics
from omg_cmdp.oracles.compiled import softmax as compiled

STATES, ACTIONS, DIMENSION, HORIZON = 4, 2, 3, 6
SIZE = {"states": STATES, "actions": ACTIONS, "dimension": DIMENSION, "intercept": False}


def softmax(logits):
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def direction(rng, dimension=DIMENSION):
    vector = rng.standard_normal(dimension)
    return vector / np.linalg.norm(vector)


def random_covariance(rng, size, low=-3.0, high=1.0):
    basis = np.linalg.qr(rng.standard_normal((size, size)))[0]
    return basis * 10.0 ** rng.uniform(low, high, size) @ basis.T


def offsets_with_zeros(rng, rows):
    transitions = rng.dirichlet(np.ones(STATES), size=rows) * (rng.random((rows, STATES)) < 0.7)
    transitions[:, 0] += 0.1
    with np.errstate(divide="ignore"):
        return np.log(transitions / transitions.sum(axis=1, keepdims=True))


def compressed(offsets, *others):
    """Return starts and successors of the rows of `offsets` (pairs, S) that are possible, these, and `others` there."""
    possible = offsets > -np.inf
    starts = np.append(0, possible.sum(axis=1).cumsum())
    return starts, np.nonzero(possible)[1], offsets[possible], *(each[possible] for each in others)


def random_episode(rng, support=None, horizon=HORIZON):
    states, actions = rng.integers(STATES, size=horizon), rng.integers(ACTIONS, size=horizon)
    possible = np.ones((horizon, STATES)) if support is None else support[states, actions]
    return states, actions, np.array([rng.choice(np.flatnonzero(row)) for row in possible])


@pytest.mark.parametrize("size", [0.1, 10.0, 300.0])
def test_softmax_tables_against_numpy(size, rng):
    weights, offsets, row = (
        size * rng.standard_normal((8, STATES, DIMENSION)),
        offsets_with_zeros(rng, 8),
        direction(rng),
    )
    tables = np.zeros((1, 8, STATES))
    starts, successors, *rows = compressed(offsets, weights)
    compiled.softmax_tables(*rows[::-1], row, np.zeros((1, len(successors))), starts, successors, tables)
    [table] = tables
    np.testing.assert_allclose(table, softmax(offsets + weights @ row), rtol=1e-11, atol=1e-250)
    np.testing.assert_array_equal(table > 0.0, offsets > -np.inf)  # never zero where possible
    oracle = SoftmaxDynamics(**SIZE, horizon=1)
    np.testing.assert_allclose(oracle.predict(row), 1.0 / STATES, rtol=1e-15)


def test_transitions_are_tallied(rng):
    starts, successors, _ = compressed(offsets_with_zeros(rng, 3))
    pairs = rng.integers(3, size=9)
    reached = np.array([rng.choice(successors[starts[pair] : starts[pair + 1]]) for pair in pairs])
    distinct, counts = np.full(9, -1), np.full((9, STATES), np.nan)
    found = compiled.tally(pairs, reached, starts, successors, distinct, counts)
    assert sorted(distinct[:found]) == sorted(set(pairs))
    for pair, row in zip(distinct[:found], counts[:found], strict=True):
        own, seen = successors[starts[pair] : starts[pair + 1]], np.bincount(reached[pairs == pair], minlength=STATES)
        np.testing.assert_array_equal(row[: len(own)], seen[own])


@pytest.mark.parametrize("common", [False, True])
def test_proximal_logits_are_stationary(common, rng):
    """u - start + variance·(n·softmax(u) - counts) = 0, for variances from 1e-8 to 1e4."""
    for _ in range(500):
        count = rng.integers(2, 8)
        start = rng.standard_normal(count) * 10.0 ** rng.uniform(-1.0, 1.5)
        variances = 10.0 ** (np.full(count, rng.uniform(-8, 4)) if common else rng.uniform(-8, 4, count))
        counts = rng.multinomial(rng.integers(1, 51), rng.dirichlet(np.full(count, 0.3))).astype(float)
        logits, probabilities = np.empty((2, count))
        compiled.proximal_logits(start, variances, counts, logits, probabilities)
        np.testing.assert_allclose(probabilities, softmax(logits), rtol=1e-12, atol=1e-200)
        gradient = variances * (counts.sum() * probabilities - counts)
        np.testing.assert_allclose((logits - start) + gradient, 0.0, atol=1e-8)


def test_the_newton_fit_is_a_proximal_step_with_curvature(rng):
    """The new weights minimise the examples' loss plus the quadratic of the past; covariances gain p(1-p)·n·zzᵀ."""
    for _ in range(20):
        weights, row = rng.standard_normal((2 + STATES, DIMENSION)), direction(rng)  # pairs of 2 and 4 next states
        covariances = np.array([random_covariance(rng, DIMENSION) for _ in weights])
        counts, offsets = rng.multinomial(5, np.full(STATES, 0.25)).astype(float)[None], np.zeros(len(weights))
        new, shrunk = weights.copy(), covariances.copy()
        compiled.newton_fit(new, shrunk, offsets, row, np.array([0, 2, 2 + STATES]), np.array([1]), counts)
        np.testing.assert_array_equal(new[:2], weights[:2])
        new, weights, shrunk, covariances = new[2:], weights[2:], shrunk[2:], covariances[2:]
        fitted = softmax(new @ row)
        for i in range(STATES):
            gradient = np.linalg.solve(covariances[i], new[i] - weights[i])
            gradient += (5.0 * fitted[i] - counts[0, i]) * row
            np.testing.assert_allclose(gradient, 0.0, atol=1e-7)
            gained = np.linalg.inv(shrunk[i]) - np.linalg.inv(covariances[i])
            np.testing.assert_allclose(gained, 5.0 * fitted[i] * (1.0 - fitted[i]) * np.outer(row, row), atol=1e-8)


def test_the_online_newton_step_against_dense_algebra(rng):
    for _ in range(20):
        weights, offsets, row = rng.standard_normal((3, STATES, DIMENSION)), np.zeros((3, STATES)), direction(rng)
        inverses = np.array([random_covariance(rng, DIMENSION) for _ in range(3)])
        pairs, counts, kappa = np.array([2, 0]), rng.integers(4, size=(2, STATES)).astype(float), rng.uniform(0.01, 0.5)
        new, updated, starts = weights.reshape(-1, DIMENSION).copy(), inverses.copy(), STATES * np.arange(4)
        largest = compiled.newton_step(new, updated, offsets.reshape(-1), row, starts, pairs, counts, kappa)
        expected = weights.copy()
        for pair, seen in zip(pairs, counts, strict=True):
            matrix = np.linalg.inv(inverses[pair]) + kappa * seen.sum() * np.outer(row, row)
            gradient = np.outer(seen.sum() * softmax(offsets[pair] + weights[pair] @ row) - seen, row)
            expected[pair] -= gradient @ np.linalg.inv(matrix)
            np.testing.assert_allclose(np.linalg.inv(updated[pair]), matrix, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(new, expected.reshape(-1, DIMENSION), rtol=1e-8, atol=1e-10)
        np.testing.assert_array_equal(updated[1], inverses[1])
        assert largest == pytest.approx((expected[pairs] ** 2).sum(axis=(1, 2)).max())


@pytest.mark.parametrize("radius", [0.1, 1.0, 3.0])
def test_the_projection_is_nearest_in_its_norm(radius, rng):
    """KKT: (W - V)A = μV with μ >= 0 and ‖V‖ = B."""
    oracle = SoftmaxDynamics(**SIZE, horizon=1, weight_norm=radius)
    for _ in range(30):
        before, inverse = rng.standard_normal((STATES, DIMENSION)) * 2.0, random_covariance(rng, DIMENSION)
        own = slice(3 * STATES, 4 * STATES)
        oracle.forecasters.step_weights[own], oracle.forecasters.step_inverses[3] = before, inverse
        oracle.forecasters._project(3)
        after, matrix = oracle.forecasters.step_weights[own].copy(), np.linalg.inv(inverse)
        assert np.linalg.norm(after) <= radius * (1.0 + 1e-12)
        if np.linalg.norm(before) <= radius:
            np.testing.assert_array_equal(after, before)
            continue
        pull = (before - after) @ matrix
        multiplier = np.vdot(pull, after) / np.vdot(after, after)
        assert multiplier >= 0.0
        np.testing.assert_allclose(pull, multiplier * after, rtol=1e-7, atol=1e-7 * np.abs(pull).max())
        assert np.linalg.norm(after) == pytest.approx(radius, rel=1e-9)

        def distance(point, before=before, matrix=matrix):
            return np.vdot((point - before) @ matrix, point - before)

        others = rng.standard_normal((50, STATES, DIMENSION))
        others = after + 0.3 * radius * others
        others *= np.minimum(1.0, radius / np.linalg.norm(others, axis=(1, 2), keepdims=True))
        assert all(distance(after) <= distance(other) * (1.0 + 1e-9) for other in others)


def test_the_weights_of_the_step_stay_centred_and_in_the_ball(rng):
    """Also on the surface of the ball, where one next state, again and again, drives them."""
    base = np.full((STATES, ACTIONS, STATES), 0.25)
    base[:, 1] = [0.0, 0.3, 0.3, 0.4]
    oracle = SoftmaxDynamics(**SIZE, horizon=HORIZON, weight_norm=0.2, support=base > 0.0, base=base)
    for _ in range(300):
        oracle.update(direction(rng), *random_episode(rng, base > 0.0))
        oracle.update(np.abs(direction(rng)), [0] * HORIZON, [0] * HORIZON, [1] * HORIZON)
    pairs = np.split(oracle.state()["step_weights"], oracle.forecasters.starts[1:-1])
    np.testing.assert_allclose([weights.sum(axis=0) for weights in pairs], 0.0, atol=1e-12)
    lengths = np.array([np.linalg.norm(weights) for weights in pairs])
    assert lengths.min() > 0.0
    assert lengths.max() <= 0.2 * (1.0 + 1e-12)
    assert lengths[0] == pytest.approx(0.2, rel=1e-9)


@pytest.mark.parametrize("rate", ["guarded", "proven", "realizable"])
def test_what_the_support_excludes_stays_excluded(rate, rng):
    base = np.exp(offsets_with_zeros(rng, STATES * ACTIONS)).reshape(STATES, ACTIONS, STATES)
    oracle = SoftmaxDynamics(**SIZE, horizon=HORIZON, support=base > 0.0, base=base, rate=rate)
    for _ in range(40):
        context = direction(rng)
        oracle.update(context, *random_episode(rng, base > 0.0))
        prediction, uncertainty = oracle.predict(context), oracle.uncertainty(context)
        np.testing.assert_array_equal(prediction > 0.0, base > 0.0)
        np.testing.assert_array_equal(oracle.draws(context, 2, rng) > 0.0, [base > 0.0] * 2)
        np.testing.assert_allclose(prediction.sum(axis=-1), 1.0, rtol=1e-12)
        assert np.isfinite(uncertainty).all()
        assert (uncertainty >= 0.0).all()


def test_a_support_is_the_limit_of_bases(rng):
    """Where the base is 10⁻⁴⁰ outside, the answers are nearly those of a support, which keeps 5 of 8 weight vectors."""
    support = np.ones((STATES, ACTIONS, STATES), dtype=bool)
    support[:, 1, 1:] = False
    base = np.where(support, 1.0, 1e-40)
    sparse = SoftmaxDynamics(**SIZE, horizon=HORIZON, support=support, rate="realizable")
    dense = SoftmaxDynamics(**SIZE, horizon=HORIZON, base=base / base.sum(axis=-1, keepdims=True), rate="realizable")
    for _ in range(50):
        context, episode = direction(rng), random_episode(rng, support)
        for oracle in (sparse, dense):
            oracle.update(context, *episode)
    np.testing.assert_allclose(sparse.predict(context), dense.predict(context), atol=1e-10)
    assert sparse.state()["weights"].shape == (support.sum(), DIMENSION)
    assert sparse.state()["covariances"].shape == (support.sum(), DIMENSION, DIMENSION)


def test_probabilities_in_the_ball_are_at_least_the_curvature(rng):
    """κ = b/(b + (1-b)·exp(√2·B·X)), with equality for two next states."""
    base = rng.dirichlet(np.full(STATES, 2.0), size=(STATES, ACTIONS))
    oracle = SoftmaxDynamics(**SIZE, horizon=1, base=base, weight_norm=2.0, feature_norm=0.5)
    for _ in range(300):
        weights = rng.standard_normal((STATES * ACTIONS, STATES, DIMENSION))
        weights *= 2.0 / np.linalg.norm(weights, axis=(1, 2), keepdims=True)
        table = oracle.forecasters.table(weights.reshape(-1, DIMENSION), 0.5 * direction(rng))
        assert table.min() >= oracle.forecasters.curvature
    two = SoftmaxDynamics(states=2, actions=1, dimension=1, horizon=1, weight_norm=2.0, intercept=False)
    worst = math.sqrt(2.0) * np.array([[1.0], [-1.0], [1.0], [-1.0]])
    assert two.forecasters.table(worst, np.ones(1)).min() == pytest.approx(two.forecasters.curvature, rel=1e-12)
    groups, kappa = STATES * ACTIONS, oracle.forecasters.curvature
    growth = math.log1p((kappa * 2.0 * 0.5 / DIMENSION) ** 2 * 100 / groups)
    expected = groups * DIMENSION / kappa * (0.5 + growth) + math.log(2.0)
    assert oracle.regret_bound(100, 1) == pytest.approx(expected)
    assert SoftmaxDynamics(**SIZE, horizon=1, rate="realizable").regret_bound(100, 1) == math.inf


def test_a_ball_so_large_that_its_curvature_vanishes_is_refused():
    for sizes in ({"weight_norm": 600.0}, {"weight_norm": 3.0, "feature_norm": 200.0}):
        with pytest.raises(ValueError, match="`weight_norm`"):
            SoftmaxDynamics(**SIZE, horizon=1, **sizes)


def test_the_newton_fit_is_almost_as_good_as_batch_likelihood(rng):
    """Excess log loss after 2000 examples, exact for each of many fresh contexts, over a few truths."""
    excess = np.zeros(2)
    for _ in range(4):
        truth = 1.5 * rng.standard_normal((STATES, DIMENSION))
        oracle = SoftmaxDynamics(**SIZE, horizon=5, rate="realizable")
        rows, reached = np.array([direction(rng) for _ in range(400)]), np.empty((400, 5), dtype=int)
        for row, moves in zip(rows, reached, strict=True):
            moves[:] = rng.choice(STATES, p=softmax(truth @ row), size=5)
            oracle.update(row, [1] * 5, [0] * 5, moves)
        counts = np.array([np.bincount(moves, minlength=STATES) for moves in reached])

        def objective(flat, rows=rows, counts=counts):
            probabilities = softmax(rows @ flat.reshape(STATES, DIMENSION).T)
            gradient = (5.0 * probabilities - counts).T @ rows + flat.reshape(STATES, DIMENSION)
            return 0.5 * flat @ flat - (counts * np.log(probabilities)).sum(), gradient.ravel()

        batch = minimize(objective, np.zeros(STATES * DIMENSION), jac=True, method="BFGS").x.reshape(STATES, DIMENSION)
        for row in (direction(rng) for _ in range(200)):
            exact = softmax(truth @ row)
            for i, guess in enumerate((oracle.predict(row)[1, 0], softmax(batch @ row))):
                excess[i] += exact @ np.log(exact / guess)
    assert excess[0] <= 2.0 * excess[1]


@pytest.mark.parametrize("rarest", [1e-300, 1e-308, 5e-324, 1e-139])
def test_a_base_whose_entries_are_lost_beside_the_floor_of_log_loss_is_refused(rarest):
    base = [[[1.0, rarest]], [[0.5, 0.5]]]
    with pytest.raises(ValueError, match="`base` must leave what can happen a probability of 1e-140"):
        SoftmaxDynamics(states=2, actions=1, dimension=1, horizon=2, base=base)


@pytest.mark.parametrize("rarest", [1e-130, 1e-30])
def test_what_a_base_says_is_predicted_before_anything_is_learned(rarest):
    oracle = SoftmaxDynamics(states=2, actions=1, dimension=1, horizon=2, base=[[[1.0, rarest]], [[0.5, 0.5]]])
    assert oracle.predict([1.0])[0, 0, 1] == pytest.approx(rarest, rel=1e-9, abs=0.0)
    assert math.isfinite(oracle.regret_bound(100, 2))
