import math

import cvxpy
import numpy as np
import pytest
from scipy.special import gammaln

from omg_cmdp.contexts import keyed
from omg_cmdp.theory.ceiling.compiled import highest_mean, highest_means
from omg_cmdp.theory.ceiling.counted import CountedRows
from omg_cmdp.theory.ceiling.listed import ListedFunctions
from omg_cmdp.theory.ceiling.sets import Observed, Tallies
from omg_cmdp.theory.ceiling.unions import Union

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


def highest_chance(seen, radius):
    """Return the largest p with kl(seen, p) <= radius, by bisection."""
    low, high = seen, 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        parts = ((f, p) for f, p in ((seen, middle), (1.0 - seen, 1.0 - middle)) if f > 0.0)
        near = middle < 1.0 and sum(f * math.log(f / p) for f, p in parts) <= radius
        low, high = (middle, high) if near else (low, middle)
    return low


@pytest.mark.parametrize("radius", [1e-9, 1e-6, 1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("seen_best", [0.0, 1e-6, 0.1, 0.5, 0.9, 1.0])
def test_of_two_outcomes_the_highest_mean_is_where_the_divergence_is_the_radius(radius, seen_best):
    """kl(f, p) = radius has one root p >= f."""
    worst, best = -3.0, 4.0
    found = highest_mean(np.array([1.0 - seen_best, seen_best]), radius, np.array([worst, best]), best, best - worst)
    assert found == pytest.approx(worst + (best - worst) * highest_chance(seen_best, radius), abs=1e-9)


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


@pytest.mark.parametrize("shift", [-1e6, 1e6])
def test_adding_a_constant_to_values_adds_it_to_the_highest_mean(rng, shift):
    for radius in 10.0 ** rng.uniform(-3.0, 1.0, 20):
        frequencies, values = rng.dirichlet(np.ones(3)), rng.random(3)
        found, moved = (highest_mean(frequencies, radius, v, v.max(), np.ptp(v)) for v in (values, values + shift))
        assert moved == pytest.approx(found + shift, rel=0.0, abs=1e-6)


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


@pytest.mark.parametrize("of_rewards", [True, False])
@pytest.mark.parametrize("sure", [0, 1])
def test_a_certain_outcome_that_fails_refutes_a_function_at_once(of_rewards, sure):
    chances = np.array([float(sure), 0.5]).reshape(2, 1, 1)
    tables = chances if of_rewards else np.stack([1.0 - chances, chances], axis=-1)
    versions = ListedFunctions(lambda context: tables, DELTA, of_rewards=of_rewards)
    for outcome, left in ((sure, tables), (1 - sure, tables[1:])):
        versions.learn(ANY, seen([0], [float(outcome) if of_rewards else outcome]))
        assert np.array_equal(versions.plausible(ANY).tables[:, 0], left)


def test_a_class_without_the_truth_is_refuted(rng):
    tables = np.array([[[0.1, 0.9]], [[0.9, 0.1]]])[:, :, None]  # P(0), P(1): never ½
    versions = ListedFunctions(lambda context: tables, 0.05, of_rewards=False)
    for _ in range(200):
        versions.learn(ANY, seen([0], [int(rng.random() < 0.5)]))
    assert versions.refuted


@pytest.mark.parametrize(("means", "refuted"), [((0.1, 0.9), True), ((0.1, 0.5), False)])
def test_a_union_is_refuted_if_all_its_members_are(means, refuted):
    members = [np.full((1, 1, 1), mean) for mean in means]
    union = Union(
        [ListedFunctions(lambda context, each=each: each, DELTA, of_rewards=True) for each in members], of_rewards=True
    )
    for number in range(200):
        union.learn(ANY, seen([0], [float(number % 2)]))
    assert union.refuted == refuted
    if not refuted:
        assert union.plausible(ANY).tables.tolist() == [[[[0.5]]]]


def test_one_table_for_contexts_that_differ_is_refuted(rng):
    """And stays so when it is kept."""
    versions, again = (CountedRows(lambda context: 0, 1, np.ones((1, 1, 2)), 0.05, of_rewards=False) for _ in range(2))
    for _ in range(200):
        context = int(rng.integers(2))
        versions.learn(keyed(context), seen([0], [context]))
    assert versions.refuted
    again.load_state(versions.state())
    assert again.refuted


@pytest.mark.parametrize("of_rewards", [True, False])
def test_the_evidence_of_counts_is_that_of_a_dirichlet_prior(rng, of_rewards):
    """Σ log of the forecasts is log B(prior + counts)/B(prior), in whatever order outcomes come."""
    prior = rng.uniform(0.2, 2.0, (2, 2 if of_rewards else 4))
    pairs, outcomes = rng.integers(2, size=60), rng.integers(prior.shape[1], size=60)
    tallies = Tallies(prior, of_rewards=of_rewards)
    for part in np.split(np.arange(60), 6):
        tallies.learn(seen(pairs[part], outcomes[part]))
    counts = np.array([[np.sum((pairs == p) & (outcomes == k)) for k in range(prior.shape[1])] for p in range(2)])
    np.testing.assert_array_equal(tallies.counts, counts)
    np.testing.assert_allclose(tallies.evidence, log_beta(prior + counts) - log_beta(prior))


@pytest.mark.parametrize("of_rewards", [True, False])
def test_functions_that_differ_by_the_step_are_charged_at_their_step(of_rewards):
    """The second differs from the first at step 1 alone, where the data contradict it; and one table is all steps'."""
    chances = np.array([[0.5, 0.5], [0.5, 0.01]]).reshape(2, 2, 1, 1)  # (N, H, S, A)
    tables = chances if of_rewards else np.stack([1.0 - chances, chances], axis=-1)
    versions = ListedFunctions(lambda context: tables, DELTA, of_rewards=of_rewards)
    for step, left in ((0, 2), (1, 1)):
        for number in range(30):
            outcome = np.array([number % 2], dtype=float if of_rewards else int)
            versions.learn(ANY, Observed(np.array([step]), np.zeros(1, dtype=int), outcome))
        assert len(versions.plausible(ANY).tables) == left


def log_beta(weights):
    return gammaln(weights).sum(axis=-1) - gammaln(weights.sum(axis=-1))


@pytest.mark.parametrize(("failures", "successes"), [(1, 0), (0, 5), (3, 4), (40, 10)])
def test_of_rewards_0_and_1_in_one_context_the_bounds_are_those_of_the_theorem(failures, successes):
    """n·KL(f, p) = log P/δ - L(f) + L(forecaster): all three forecasters of a row have ½ pseudo-count each then."""
    pairs, counts = 3, np.array([failures, successes])
    versions = CountedRows(lambda context: 0, 2, np.ones((1, pairs, 2)), DELTA, of_rewards=True)
    versions.learn(ANY, seen([1] * counts.sum(), [0.0] * failures + [1.0] * successes))
    shares = counts / counts.sum()
    fitted = (counts * np.log(np.where(counts, shares, 1.0))).sum()
    evidence = log_beta(counts + 0.5) - log_beta(np.full(2, 0.5))
    radius = (math.log(2 * pairs / DELTA) + fitted - evidence) / counts.sum()
    plausible = versions.plausible(ANY)
    assert plausible.high[0, 0] == pytest.approx([1.0, highest_chance(shares[1], radius), 1.0], abs=1e-9)
    assert plausible.low[0, 0] == pytest.approx([0.0, 1.0 - highest_chance(shares[0], radius), 0.0], abs=1e-9)


def test_counts_beside_a_class_spread_one_pseudo_count_over_the_outcomes():
    for of_rewards, tables in ((True, np.full((1, 1, 1), 0.5)), (False, np.full((1, 1, 1, 4), 0.25))):
        versions = ListedFunctions(lambda context, tables=tables: tables, DELTA, of_rewards=of_rewards)
        versions.learn(ANY, seen([0] * 5, [1.0] * 5 if of_rewards else [1] * 5))
        prior = np.full(2, 0.5) if of_rewards else np.full(4, 0.25)
        evidence = log_beta(prior + 5.0 * (np.arange(len(prior)) == 1)) - log_beta(prior)
        assert [each.evidence[0] for each in versions.parts().values()] == pytest.approx([evidence] * 2)


def test_radii_shrink_like_log_n_over_n():
    versions = CountedRows(lambda context: 0, 1, np.ones((1, 1, 2)), 0.05, of_rewards=False)
    widths = []
    for visits in range(1, 4097):
        versions.learn(ANY, seen([0], [visits % 2]))
        if visits in (64, 4096):
            high, missed = versions.plausible(ANY).rows.highest(0, np.array([[0.0, 1.0], [1.0, 0.0]]))[:, 0, 0]
            widths.append(high - (1.0 - missed))
    assert widths[0] / widths[1] > math.sqrt(64) / 1.5
