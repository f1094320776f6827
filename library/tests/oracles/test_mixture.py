"""Mixtures: the barrier's KKT conditions, least squares on the simplex, learning what is well specified."""

import itertools
import math

import numpy as np
import pytest

from omg_cmdp.oracles import BasisDynamics, MixtureDynamics
from omg_cmdp.oracles.simplex import barrier_bound, barrier_leader, simplex_least_squares

RATES = ("guarded", "proven", "realizable")
LEARNING = (("guarded", 10.0), ("realizable", 10.0), ("proven", 3.0))  # the proven one learns like 1/√T
STATES, ACTIONS, COUNT, HORIZON = 3, 2, 3, 5


def random_transitions(rng, *shape):
    return rng.dirichlet(np.full(STATES, 0.5), size=(*shape, STATES, ACTIONS))


def hellinger(truth, prediction):
    return ((np.sqrt(truth) - np.sqrt(prediction)) ** 2).sum(axis=-1).mean()


@pytest.mark.parametrize("count", [1, 2, 6, 100])
@pytest.mark.parametrize("orders", [0, 4, 14])
def test_the_barrier_leader_is_optimal(count, orders, rng):
    """KKT: gain + 1/(rate·w) is the same for all coordinates, and they sum to one."""
    gains = 10.0 ** rng.uniform(-2, orders, (200, count)) * rng.choice([-1.0, 1.0], (200, count))
    rates = 10.0 ** rng.uniform(-4, 0, 200)
    weights = barrier_leader(gains, rates)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    assert (weights > 0.0).all()
    best = gains.argmax(axis=1)[:, None]
    slopes = 1.0 / (rates[:, None] * weights)
    behind = np.take_along_axis(gains, best, axis=1) - gains
    np.testing.assert_allclose((slopes - np.take_along_axis(slopes, best, axis=1) - behind) / slopes, 0.0, atol=1e-9)


def test_the_barrier_leader_of_two_in_closed_form(rng):
    """rate·w·(1-w)·Δ = 1 - 2w for the one behind by Δ."""
    for rate, gap in 10.0 ** rng.uniform(-3, 3, (50, 2)):
        low = barrier_leader(np.array([0.0, gap]), rate)[0]
        assert rate * low * (1.0 - low) * gap == pytest.approx(1.0 - 2.0 * low, rel=1e-9, abs=1e-12)


def test_impossible_coordinates_get_nothing(rng):
    gains = rng.random((20, 5))
    gains[:, [1, 3]] = -np.inf
    weights = barrier_leader(gains, 0.3)
    assert (weights[:, [1, 3]] == 0.0).all()
    np.testing.assert_allclose(weights[:, [0, 2, 4]], barrier_leader(gains[:, [0, 2, 4]], 0.3), rtol=1e-12)


def random_quadratic(rng, count):
    rows = rng.random((3 * count, count))
    return rows.T @ rows + 0.1 * np.eye(count)


def test_least_squares_inside_the_simplex(rng):
    """The optimum under Σw = 1 is inside: by the KKT system, and no point of a grid is better."""
    inside = 0
    while inside < 30:
        matrix, scores = random_quadratic(rng, 3), rng.standard_normal(3)
        system = np.block([[matrix, np.ones((3, 1))], [np.ones((1, 3)), np.zeros((1, 1))]])
        exact = np.linalg.solve(system, [*scores, 1.0])[:3]
        weights = simplex_least_squares(matrix, scores)
        assert weights.min() >= 0.0
        assert weights.sum() == pytest.approx(1.0, rel=1e-12)
        if exact.min() < 0.0:
            continue
        inside += 1
        np.testing.assert_allclose(weights, exact, atol=1e-10)
        grid = np.array([(i, j, 20 - i - j) for i, j in itertools.product(range(21), repeat=2) if i + j <= 20]) / 20
        values = 0.5 * np.einsum("gi,ij,gj->g", grid, matrix, grid) - grid @ scores
        assert values.min() >= 0.5 * weights @ matrix @ weights - weights @ scores - 1e-12


def test_least_squares_of_two_is_exact_on_the_edge_too(rng):
    for _ in range(100):
        matrix, scores = random_quadratic(rng, 2), 3.0 * rng.standard_normal(2)
        # ½wᵀMw - wᵀb along (t, 1-t) is a parabola: cut its vertex to [0, 1].
        across = np.array([1.0, -1.0])
        vertex = (across @ scores - across @ matrix @ [0.0, 1.0]) / (across @ matrix @ across)
        expected = np.clip(vertex, 0.0, 1.0)
        np.testing.assert_allclose(simplex_least_squares(matrix, scores), [expected, 1.0 - expected], atol=1e-10)


def test_least_squares_with_a_diagonal_matrix_is_the_projection(rng):
    """Michelot's algorithm: the nearest point is max(b - θ, 0), with θ such that it sums to one."""
    for _ in range(100):
        point = rng.standard_normal(rng.integers(2, 9))
        low, high = point.min() - 1.0, point.max()
        for _ in range(100):
            theta = 0.5 * (low + high)
            low, high = (theta, high) if np.maximum(point - theta, 0.0).sum() > 1.0 else (low, theta)
        weights = simplex_least_squares(np.eye(len(point)), point)
        np.testing.assert_allclose(weights, np.maximum(point - theta, 0.0), atol=1e-10)


def draw_episode(rng, transitions):
    states, actions = rng.integers(STATES, size=HORIZON), rng.integers(ACTIONS, size=HORIZON)
    below = transitions[states, actions].cumsum(axis=-1)[:, :-1] < rng.random((HORIZON, 1))
    return states, actions, below.sum(axis=-1)


def check_valid(oracle, context):
    prediction, uncertainty = oracle.predict(context), oracle.uncertainty(context)
    assert prediction.shape == (STATES, ACTIONS, STATES)
    assert prediction.min() >= 0.0
    np.testing.assert_allclose(prediction.sum(axis=-1), 1.0, rtol=1e-9)
    assert uncertainty.shape == (STATES, ACTIONS)
    assert uncertainty.min() >= 0.0
    assert uncertainty.max() <= 2.0


@pytest.mark.parametrize(("rate", "factor"), LEARNING)
def test_known_tables_with_unknown_weights_are_learned(rate, factor, rng):
    transitions, weights = random_transitions(rng, 4, COUNT), np.array([0.7, 0.05, 0.25])
    oracle, truths = (
        MixtureDynamics(transitions.__getitem__, horizon=HORIZON, rate=rate),
        np.tensordot(weights, transitions, (0, 1)),
    )
    errors = [np.mean([hellinger(truths[c], oracle.predict(c)) for c in range(4)])]
    uncertain = oracle.uncertainty(0).mean()
    for t in range(400):
        context = t % 4
        if t % 10 == 0:
            check_valid(oracle, context)
        oracle.update(context, *draw_episode(rng, truths[context]))
    errors.append(np.mean([hellinger(truths[c], oracle.predict(c)) for c in range(4)]))
    assert errors[1] < errors[0] / factor
    assert oracle.uncertainty(0).mean() < uncertain / factor


@pytest.mark.parametrize(("rate", "factor"), LEARNING)
def test_unknown_tables_with_known_weights_are_learned(rate, factor, rng):
    transitions = random_transitions(rng, COUNT)
    oracle = BasisDynamics(states=STATES, actions=ACTIONS, bases=COUNT, horizon=HORIZON, rate=rate)
    fresh = rng.dirichlet(np.full(COUNT, 0.5), size=20)
    truths = np.tensordot(fresh, transitions, 1)
    errors = [np.mean([hellinger(truth, oracle.predict(c)) for c, truth in zip(fresh, truths, strict=True)])]
    uncertain = oracle.uncertainty(fresh[0]).mean()
    for t in range(400):
        context = rng.dirichlet(np.full(COUNT, 0.5))
        if t % 10 == 0:
            check_valid(oracle, context)
        oracle.update(context, *draw_episode(rng, np.tensordot(context, transitions, 1)))
    errors.append(np.mean([hellinger(truth, oracle.predict(c)) for c, truth in zip(fresh, truths, strict=True)]))
    assert errors[1] < errors[0] / factor
    assert oracle.uncertainty(fresh[0]).mean() < uncertain / factor


@pytest.mark.parametrize("rate", RATES)
def test_pure_contexts_learn_their_own_table(rate, rng):
    """A context e_i is about table i alone: the others keep their prediction."""
    oracle = BasisDynamics(states=STATES, actions=ACTIONS, bases=COUNT, horizon=HORIZON, rate=rate)
    pure, before = np.eye(COUNT), oracle.predict(np.eye(COUNT)[1])
    for _ in range(30):
        oracle.update(pure[0], [0] * HORIZON, [0] * HORIZON, [2] * HORIZON)
    assert oracle.predict(pure[0])[0, 0, 2] > before[0, 0, 2] + 0.1
    np.testing.assert_allclose(oracle.predict(pure[1]), before, rtol=1e-9)
    np.testing.assert_allclose(oracle.predict(pure[0])[1:], before[1:], rtol=1e-9)


@pytest.mark.parametrize("rate", RATES)
def test_predictions_stay_in_the_support(rate, rng):
    support = rng.random((STATES, ACTIONS, STATES)) < 0.6
    support[..., 0] = True
    oracle = BasisDynamics(states=STATES, actions=ACTIONS, bases=COUNT, horizon=HORIZON, rate=rate, support=support)
    uniform = support / support.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(oracle.predict(np.eye(COUNT)[0]), uniform, rtol=1e-12)
    for _ in range(30):
        context = rng.dirichlet(np.ones(COUNT))
        oracle.update(context, *draw_episode(rng, uniform))
        np.testing.assert_array_equal(oracle.predict(context) > 0.0, support)
        check_valid(oracle, context)


@pytest.mark.parametrize("rate", RATES)
def test_excluded_transitions_break_nothing(rate):
    transitions = np.zeros((COUNT, STATES, ACTIONS, STATES))
    transitions[..., 0] = 1.0
    oracle = MixtureDynamics(lambda _: transitions, horizon=HORIZON, rate=rate)
    for _ in range(20):
        oracle.update(np.eye(COUNT)[1], [0] * HORIZON, [0] * HORIZON, [1] * HORIZON)
        check_valid(oracle, np.eye(COUNT)[1])
    assert math.isfinite(oracle.loss)


def test_contexts_off_the_simplex_are_refused():
    oracle = BasisDynamics(states=STATES, actions=ACTIONS, bases=COUNT, horizon=HORIZON)
    before = oracle.state()
    bad = (
        [0.5, 0.5, 0.5],
        [0.5, 0.6, -0.1],
        [0.2, 0.2, 0.2],
        [2.0, -1.0, 0.0],
        [np.nan, 0.5, 0.5],
        [0.5, 0.5],
        "abc",
        None,
    )
    for context in bad:
        for ask in (oracle.predict, lambda c: oracle.update(c, [0] * HORIZON, [0] * HORIZON, [0] * HORIZON)):
            with pytest.raises(ValueError, match="`context`"):
                ask(context)
    for name, array in oracle.state().items():
        np.testing.assert_array_equal(array, before[name])


def test_bounds_in_closed_form(rng):
    growth = math.log(101)
    expected = 2 * (2 * 6 * growth + growth * math.sqrt(6 * 51) + 1.6 * math.sqrt(6 * 50)) + 1
    assert barrier_bound(100, groups=2, coordinates=6) == pytest.approx(expected)
    mixture = MixtureDynamics(lambda _: random_transitions(rng, 4), horizon=HORIZON)
    assert mixture.regret_bound(100, HORIZON) == math.inf  # N is not known yet
    mixture.predict(0)
    price = HORIZON * math.log(2.0)
    assert mixture.regret_bound(100, HORIZON) == pytest.approx(HORIZON * barrier_bound(100, 1, 4) + price)
    basis = BasisDynamics(states=STATES, actions=ACTIONS, bases=COUNT, horizon=HORIZON)
    bound = HORIZON * barrier_bound(100, STATES * ACTIONS, COUNT * STATES) + price
    assert basis.regret_bound(100, HORIZON) == pytest.approx(bound)
    for oracle in (mixture, basis):
        assert oracle.regret_bound(100, HORIZON + 1) == math.inf
