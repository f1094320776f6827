import math

import cvxpy
import numpy as np
import pytest

from omg_cmdp.contexts import keyed
from omg_cmdp.theory.ceiling.compiled import highest_mean, highest_means
from omg_cmdp.theory.ceiling.counted import CountedRows
from omg_cmdp.theory.ceiling.listed import ListedFunctions
from omg_cmdp.theory.ceiling.sets import Observed

DELTA = 0.2
ANY = keyed("any")


def highest_by_cvxpy(frequencies, radius, values):
    row = cvxpy.Variable(len(values))
    distance = cvxpy.sum(cvxpy.rel_entr(frequencies, row))
    problem = cvxpy.Problem(cvxpy.Maximize(row @ values), [distance <= radius, cvxpy.sum(row) == 1, row >= 0])
    problem.solve(solver=cvxpy.CLARABEL)
    return problem.value


@pytest.mark.parametrize("radius", [1e-6, 1e-3, 0.1, 1.0, 10.0])
def test_the_highest_mean_is_that_of_the_best_row_nearby(rng, radius):
    for _ in range(5):
        states = int(rng.integers(2, 6))
        frequencies = rng.multinomial(int(rng.integers(1, 30)), np.ones(states) / states) / 1.0
        frequencies /= frequencies.sum()
        values = rng.random(states)
        found = highest_mean(frequencies, radius, values, values.max(), np.ptp(values))
        assert found >= highest_by_cvxpy(frequencies, radius, values) - 1e-6
        assert found <= highest_by_cvxpy(frequencies, radius, values) + 1e-5


def test_no_row_nearby_has_a_higher_mean(rng):
    """The bound holds for every ν, so it must hold to the last digits, wherever the search stopped."""
    for _ in range(300):
        states = int(rng.integers(2, 7))
        frequencies, row = rng.dirichlet(np.full(states, 0.5), 2)
        radius = float((frequencies * np.log(frequencies / row)).sum())
        values = rng.normal(size=states) * 10.0 ** rng.integers(-6, 3)
        if radius > 0.0:
            bound = highest_mean(frequencies, radius, values, values.max(), np.ptp(values))
            assert row @ values <= bound + 1e-12 * np.abs(values).max()


def test_what_was_never_seen_may_be_anything_possible():
    means, possible = np.empty((1, 1, 1)), np.array([[[True, True, False]]])
    highest_means(np.zeros((1, 1, 3)), np.full((1, 1), np.inf), possible, np.array([[[[0.2, 0.7, 0.9]]]]), means)
    assert means[0, 0, 0] == 0.7


def seen(pairs, outcomes):
    return Observed(np.arange(len(pairs)), np.array(pairs), np.array(outcomes))


@pytest.mark.parametrize("noise", ["bernoulli", "beta", "constant"])
def test_rewards_of_any_shape_leave_the_truth_plausible(rng, noise):
    """A share δ of runs may lose the truth, at any time; here that is far less, and never more."""
    means, runs, lost = np.array([0.02, 0.5, 0.9]), 200, 0
    for _ in range(runs):
        versions = CountedRows(lambda context: 0, 1, np.ones((1, 3, 2)), DELTA, of_rewards=True)
        for _ in range(40):
            arms = rng.integers(3, size=4)
            mean = means[arms]
            rewards = {
                "bernoulli": (rng.random(4) < mean).astype(float),
                "beta": rng.beta(2.0 * mean, 2.0 * (1.0 - mean)),
                "constant": mean,
            }[noise]
            versions.learn(ANY, seen(arms, rewards))
            plausible = versions.plausible(ANY)
            if versions.refuted or (means < plausible.low - 1e-12).any() or (means > plausible.high + 1e-12).any():
                lost += 1
                break
    assert lost <= DELTA * runs


def test_finite_classes_keep_the_truth_and_lose_the_rest(rng):
    tables = np.array([0.3, 0.5, 0.9]).reshape(3, 1, 1)
    runs, lost, left = 300, 0, 0
    for _ in range(runs):
        versions = ListedFunctions(lambda context: tables, DELTA, of_rewards=True)
        kept = True
        for _ in range(100):
            versions.learn(ANY, seen([0, 0], (rng.random(2) < 0.5).astype(float)))
            kept &= not versions.refuted and 0.5 in versions.plausible(ANY).tables
        lost += not kept
        left += 0 if versions.refuted else len(versions.plausible(ANY).tables)
    assert lost <= DELTA * runs
    assert left < 1.2 * runs


def test_a_certain_outcome_that_fails_refutes_a_function_at_once():
    tables = np.array([1.0, 0.5]).reshape(2, 1, 1)
    versions = ListedFunctions(lambda context: tables, DELTA, of_rewards=True)
    versions.learn(ANY, seen([0], [1.0]))
    assert len(versions.plausible(ANY).tables) == 2
    versions.learn(ANY, seen([0], [0.0]))
    assert versions.plausible(ANY).tables.tolist() == [[[[0.5]]]]


def test_a_class_without_the_truth_is_refuted(rng):
    tables = np.array([[[0.1, 0.9]], [[0.9, 0.1]]])[:, :, None]  # P(0), P(1): never ½
    versions = ListedFunctions(lambda context: tables, 0.05, of_rewards=False)
    for _ in range(200):
        versions.learn(ANY, seen([0], [int(rng.random() < 0.5)]))
    assert versions.refuted


def test_one_table_for_contexts_that_differ_is_refuted(rng):
    versions = CountedRows(lambda context: 0, 1, np.ones((1, 1, 2)), 0.05, of_rewards=False)
    for _ in range(200):
        context = int(rng.integers(2))
        versions.learn(keyed(context), seen([0], [context]))
    assert versions.refuted


def test_radii_shrink_like_log_n_over_n():
    versions = CountedRows(lambda context: 0, 1, np.ones((1, 1, 2)), 0.05, of_rewards=False)
    widths = []
    for visits in range(1, 4097):
        versions.learn(ANY, seen([0], [visits % 2]))
        if visits in (64, 4096):
            high, missed = versions.plausible(ANY).rows.highest(0, np.array([[0.0, 1.0], [1.0, 0.0]]))[:, 0, 0]
            widths.append(high - (1.0 - missed))
    assert widths[0] / widths[1] > math.sqrt(64) / 1.5
