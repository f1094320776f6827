"""The Newton steps of GLM-ORL and GLM-RLSVI as the paper writes them, their plan, and the radius that is proven."""

import functools
import math

import numpy as np
import pytest
from scipy.optimize import brentq

from lab.tests.rivals.glm_world import (
    ACTIONS,
    BALL,
    DIMENSION,
    HORIZON,
    LINKS,
    SPACE,
    STATES,
    GLMWorld,
    direction,
    printed_radius,
    softmax,
)
from omg_cmdp import TabularMDP
from omg_cmdp.mdp.bellman import value_bounds
from omg_lab.rivals import GLMORL
from omg_lab.rivals.compiled import newton as compiled
from omg_lab.rivals.glm import to_simplex
from omg_lab.rivals.optimism import optimistic_plan


def plain_step(weight, information, row, reached, logit, alpha, radius):
    """One online Newton step as the paper writes it, with Z itself and a root finder for the projection."""
    information = information + 0.5 * alpha * np.outer(row, row)
    means = softmax(weight @ row) if logit else weight @ row
    gradient = np.outer(means - np.eye(len(weight))[reached], row)
    if logit:
        gradient[-1] = 0.0
    moved = weight - gradient @ np.linalg.inv(information)
    return np.array([plain_projection(each, information, radius) for each in moved]), information


def plain_projection(vector, information, radius):
    def at(shift):
        return np.linalg.solve(information + shift * np.eye(len(vector)), information @ vector)

    if np.linalg.norm(vector) <= radius:
        return vector
    return at(brentq(lambda shift: np.linalg.norm(at(shift)) - radius, 0.0, 1e9, xtol=1e-14, rtol=1e-14))


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(("alpha", "radius"), [(1.0, 1e9), (0.1, 0.4), (1e-3, 1.0)])
def test_newton_steps_are_those_of_the_paper(link, alpha, radius, rng):
    """A small ball makes most steps end in a projection."""
    weights, ridge = np.zeros((2, STATES, DIMENSION)), 0.7
    inverses, growths = np.zeros((2, DIMENSION, DIMENSION)) + np.eye(DIMENSION) / ridge, np.zeros(2)
    plain = [(np.zeros((STATES, DIMENSION)), ridge * np.eye(DIMENSION)) for _ in range(2)]
    for _ in range(60):
        row, pairs, reached = direction(rng), rng.integers(2, size=3), rng.integers(STATES, size=3)
        compiled.newton_steps(weights, inverses, growths, row, pairs, reached, link == "logit", alpha, radius)
        for pair, state in zip(pairs, reached, strict=True):
            plain[pair] = plain_step(*plain[pair], row, state, link == "logit", alpha, radius)
    for k, (weight, information) in enumerate(plain):
        np.testing.assert_allclose(weights[k], weight, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(inverses[k], np.linalg.inv(information), rtol=1e-9, atol=1e-12)
        assert growths[k] == pytest.approx(np.linalg.slogdet(information / ridge)[1], rel=1e-10)
    assert np.linalg.norm(weights, axis=-1).max() <= radius * (1 + 1e-12)


@pytest.mark.parametrize("stretch", [1.001, 3.0, 1e4])
def test_the_projection_is_stationary(stretch, rng):
    """Z(v - w) = -μv with μ >= 0 and ‖v‖ the radius, for spectra of Z from 1e-3 to 1e3."""
    for _ in range(50):
        basis = np.linalg.qr(rng.standard_normal((DIMENSION, DIMENSION)))[0]
        spectrum = 10.0 ** rng.uniform(-3, 3, DIMENSION)
        outside = 2.0 * stretch * direction(rng)
        moved = outside.copy()
        compiled.to_ball(moved, basis / spectrum @ basis.T, 2.0)
        force = basis * spectrum @ basis.T @ (outside - moved)
        shift = force @ moved / (moved @ moved)
        assert np.linalg.norm(moved) == pytest.approx(2.0, rel=1e-12)
        assert shift > 0.0
        np.testing.assert_allclose(force, shift * moved, atol=1e-13 * stretch * spectrum.max())


def test_the_nearest_distribution(rng):
    """(point - moved)·(other - moved) <= 0 for every other distribution; a distribution stays."""
    for _ in range(100):
        point = rng.standard_normal(STATES) * 10.0 ** rng.uniform(-2, 1)
        moved = to_simplex(point)
        assert moved.min() >= 0.0
        assert moved.sum() == pytest.approx(1.0, abs=1e-12)
        assert ((np.eye(STATES) - moved) @ (point - moved)).max() <= 1e-12
        np.testing.assert_allclose(to_simplex(moved), moved, atol=1e-14)


def widest(widths, following):
    return following.max() * widths


def test_an_optimistic_plan_is_backward_induction_with_bonuses(rng):
    admissible = np.array([[True, True], [False, True], [True, False], [True, True]])
    kernel, rewards = rng.dirichlet(np.ones(STATES), (STATES, ACTIONS)), rng.random((STATES, ACTIONS))
    for size in (0.0, 0.02, 0.3, 5.0):
        lows, highs = bounds = value_bounds(HORIZON, tuple(np.sort(rng.uniform(0.0, HORIZON, 2))))
        reward_widths, widths = size * rng.random((2, STATES, ACTIONS))
        mdp = TabularMDP(transitions=kernel, rewards=rewards, horizon=HORIZON, admissible=admissible)
        spread = functools.partial(widest, widths)
        policy, values = optimistic_plan(mdp, rewards + reward_widths, spread, bounds)
        value = np.zeros(STATES)
        for h in reversed(range(HORIZON)):
            gains = rewards + reward_widths + kernel @ value + abs(value).max() * widths
            gains[~admissible] = -np.inf
            value = np.clip(gains.max(axis=1), lows[h], highs[h])
            np.testing.assert_allclose(values[h], value, rtol=1e-12)
            np.testing.assert_array_equal(policy[h].argmax(axis=1), gains.argmax(axis=1))


@pytest.mark.parametrize(("link", "ball"), [("logit", 0.3), ("logit", BALL), ("linear", BALL)])
def test_the_radius_that_is_proven_holds_and_the_printed_one_is_larger(link, ball, rng):
    """‖W - W*‖²_Z at all times of a run, but for a share δ' of the runs; λ = 4R², as the linear link needs."""
    logit, failure, runs, ridge, failed = link == "logit", 0.05, 20, 4.0, 0
    alpha = GLMORL(SPACE, dimension=DIMENSION, link=link, weight_norm=ball).strong_convexity
    growth_factor, noise_factor = (4, 2 / 3) if logit else (8, 1)
    for _ in range(runs):
        truth, prior = GLMWorld(rng, link, ball).weights[0, 0], ridge * (STATES - logit) * ball**2
        weights, inverses, growths = np.zeros((1, STATES, DIMENSION)), np.eye(DIMENSION)[None] / ridge, np.zeros(1)
        broken = False
        for count in range(1, 201):
            x = rng.dirichlet(np.full(DIMENSION, 0.5))
            mean = softmax(truth @ x) if logit else truth @ x
            step = x, np.zeros(1, dtype=np.int64), rng.choice(STATES, size=1, p=mean), logit, alpha, ball
            compiled.newton_steps(weights, inverses, growths, *step)
            proven = prior + (growth_factor * growths[0] + noise_factor * math.log(1 / failure)) / alpha
            assert proven <= printed_radius(prior, ball, alpha, count, growths[0], failure)
            off = weights[0] - truth
            broken |= np.trace(off @ np.linalg.solve(inverses[0], off.T)) > proven
        failed += broken
    assert failed <= failure * runs
