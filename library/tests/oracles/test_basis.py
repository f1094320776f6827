"""Mixtures of unknown tables: the barrier's KKT conditions, learning what is well specified."""

import math

import numpy as np
import pytest

from omg_cmdp.oracles import BasisDynamics
from omg_cmdp.oracles.simplex import barrier_bound, barrier_leader

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


def test_bounds_in_closed_form():
    growth = math.log(101)
    expected = 2 * (2 * 6 * growth + growth * math.sqrt(6 * 51) + 1.6 * math.sqrt(6 * 50)) + 1
    assert barrier_bound(100, groups=2, coordinates=6) == pytest.approx(expected)
    price = HORIZON * math.log(2.0)
    basis = BasisDynamics(states=STATES, actions=ACTIONS, bases=COUNT, horizon=HORIZON)
    bound = HORIZON * barrier_bound(100, STATES * ACTIONS, COUNT * STATES) + price
    assert basis.regret_bound(100, HORIZON) == pytest.approx(bound)
    assert basis.regret_bound(100, HORIZON + 1) == math.inf
