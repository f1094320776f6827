"""Linear rewards: the ellipsoids have the bounds of their theorem, and the truth is between them."""

import math

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp.contexts import keyed
from omg_cmdp.theory.ceiling.sets import Observed
from omg_cmdp.theory.ceiling.spaces import version_space

DELTA, STATES, ACTIONS, DIMENSION = 0.1, 2, 2, 3
PAIRS = STATES * ACTIONS


def table(context):
    """Return features of a pair in a context, (S, A, d), of norm 1 at most."""
    found = np.random.default_rng(round(1000 * abs(context[0]))).normal(size=(STATES, ACTIONS, DIMENSION))
    return found / np.linalg.norm(found, axis=2, keepdims=True)


def linear(shared, weight_norm=1.5, ridge=2.0):
    sizes = {"states": STATES, "actions": ACTIONS, "dimension": DIMENSION, "horizon": 5}
    more = {"features": table, "shared": True, "intercept": False} if shared else {}
    return omg.oracles.LinearRewards(**sizes, ridge=ridge, weight_norm=weight_norm, **more)


def episode(rng):
    context = rng.uniform(-0.5, 0.5, size=DIMENSION)
    return context, rng.integers(PAIRS, size=5), rng.random(5)


def seen(pairs, rewards):
    return Observed(np.arange(len(pairs)), pairs, rewards)


@pytest.mark.parametrize("episodes", [0, 1, 20])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("norm", "ridge"), [(1.5, 2.0), (0.1, 50.0)])  # bounds that are cut, and bounds that are not
def test_the_bounds_are_those_of_the_theorem(rng, shared, episodes, norm, ridge):
    """|θ·z - θ̂·z| <= ‖z‖_{V⁻¹}·(½·√(2·log(G/δ) + log det V/λ^d) + √λ·B), from sums that are made here."""
    oracle = linear(shared, norm, ridge)
    features = oracle.forecasters.features
    versions, groups = version_space(oracle, DELTA), 1 if shared else PAIRS
    examples = [[] for _ in range(groups)]
    for _ in range(episodes):
        context, pairs, rewards = episode(rng)
        versions.learn(keyed(context), seen(pairs, rewards))
        for pair, reward in zip(pairs, rewards, strict=True):
            examples[0 if shared else pair].append((features(context)[pair if shared else 0], reward))
    context, _, _ = episode(rng)
    plausible = versions.plausible(keyed(context))
    assert ((plausible.low > 0.0) & (plausible.high < 1.0)).all() == (norm < 1.0)
    for pair in range(PAIRS):
        rows, target = features(context)[pair if shared else 0], examples[0 if shared else pair]
        gram = ridge * np.eye(len(rows)) + sum(np.outer(row, row) for row, _ in target)
        weights = np.linalg.solve(gram, sum((row * (reward - 0.5) for row, reward in target), np.zeros(len(rows))))
        growth = np.linalg.slogdet(gram)[1] - len(rows) * math.log(ridge)
        radius = 0.5 * math.sqrt(2.0 * math.log(groups / DELTA) + growth) + math.sqrt(ridge) * norm
        mean, width = 0.5 + weights @ rows, math.sqrt(rows @ np.linalg.solve(gram, rows)) * radius
        assert plausible.low.reshape(-1)[pair] == pytest.approx(max(mean - width, 0.0))
        assert plausible.high.reshape(-1)[pair] == pytest.approx(min(mean + width, 1.0))


@pytest.mark.parametrize("shared", [True, False])
def test_the_truth_stays_plausible_and_the_bounds_close_in(rng, shared):
    versions, features = version_space(linear(shared, 0.5), DELTA), linear(shared).forecasters.features
    size = features(np.zeros(DIMENSION)).shape[1]
    weights = rng.normal(size=(PAIRS, size))
    weights *= 0.4 / np.linalg.norm(weights, axis=1, keepdims=True)
    weights = weights[:1] if shared else weights
    for _ in range(400):
        context, pairs, noise = episode(rng)
        means = 0.5 + (features(context) * weights).sum(axis=1)
        plausible = versions.plausible(keyed(context))
        assert (plausible.low.reshape(-1) <= means).all()
        assert (means <= plausible.high.reshape(-1)).all()
        versions.learn(keyed(context), seen(pairs, (noise < means[pairs]).astype(float)))
    assert (plausible.high - plausible.low).max() < 0.75


@pytest.mark.parametrize("shared", [True, False])
def test_an_ellipsoid_that_was_kept_is_the_same(rng, shared):
    versions, again = (version_space(linear(shared), DELTA) for _ in range(2))
    for _ in range(5):
        context, pairs, rewards = episode(rng)
        versions.learn(keyed(context), seen(pairs, rewards))
    again.load_state(versions.state())
    for bound, same in zip(versions.plausible(keyed(context))[:2], again.plausible(keyed(context))[:2], strict=True):
        np.testing.assert_array_equal(bound, same)
