"""Intervals and support of an estimate, in closed form."""

import numpy as np
import pytest
from scipy.stats import kurtosis, t

from omg_cmdp.logs.off_policy.estimate import Support, estimated
from omg_cmdp.logs.off_policy.improvement import Improvement

EVERYTHING = (-100.0, 100.0)


def of_contributions(contributions, count=50):
    """Return the estimate of `contributions`, with weights of 1."""
    return estimated(
        np.mean(contributions), np.asarray(contributions), np.ones((len(contributions), 1)), EVERYTHING, fewest=1
    )


def test_two_episodes_have_one_degree_of_freedom():
    """Resamples that differ have mean 0, so that Student's interval is the wider one."""
    found, error = of_contributions([1.0, 3.0]), 1.0
    assert found.standard_error == error
    for level in (0.5, 0.95):
        wide = t.ppf(0.5 + 0.5 * level, 1) * error
        assert found.interval(level) == pytest.approx((2.0 - wide, 2.0 + wide))


def test_degrees_of_freedom_follow_from_the_kurtosis():
    """One episode of a hundred that earned anything: 2n/(κ - 1) is about 2, and no resample is as far away."""
    contributions = np.eye(100)[0]
    found = of_contributions(contributions)
    freedom = 200.0 / (kurtosis(contributions, fisher=False) - 1.0)
    wide = t.ppf(0.975, freedom) * contributions.std(ddof=1) / 10.0
    assert found.interval() == pytest.approx((0.01 - wide, 0.01 + wide))


def test_where_nothing_was_earned_nothing_is_uncertain():
    assert of_contributions(np.zeros(50)).interval() == (0.0, 0.0)


def test_the_effective_sample_size_is_that_of_the_worst_step_in_any_unit(rng):
    weights = rng.exponential(size=(200, 2)) ** [[1.0, 2.0]]
    size = min(weights.sum(axis=0) ** 2 / (weights**2).sum(axis=0))
    for unit in (1.0, 1e-200, 1e200):
        found = estimated(0.0, np.zeros(200), unit * weights, EVERYTHING)
        assert found.effective_sample_size == pytest.approx(size)
        assert found.mean_weights == pytest.approx(unit * weights.mean(axis=0))


@pytest.mark.parametrize(("count", "support"), [(29, Support.FEW), (30, Support.GOOD)])
def test_thirty_episodes_are_enough(count, support):
    assert estimated(0.0, np.zeros(count), np.ones((count, 1)), EVERYTHING).support is support


@pytest.mark.parametrize(
    ("mean", "support"), [(0.89, Support.UNBALANCED), (0.91, Support.GOOD), (1.11, Support.UNBALANCED)]
)
def test_mean_weights_may_differ_from_one_by_three_standard_errors(mean, support):
    """Of 36 weights with deviation 0.2, that is 0.1."""
    weights = mean + 0.2 * np.tile([[1.0], [-1.0]], (18, 1))
    found = estimated(0.5, np.arange(36.0), weights, EVERYTHING)
    assert found.support is support
    assert found.contributions.mean() == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(2.0, "better than"), (0.5, "not shown to differ from"), (-0.5, "not shown to differ from"), (-2.0, "worse than")],
)
def test_a_policy_is_better_if_the_whole_interval_is(value, verdict):
    contributions = value + np.tile([1.0, -1.0], 50) * 5.0  # half the interval is about 1
    said = {"policy_value": value, "logged_value": 0.0, "estimated": False}
    made = vars(estimated(value, contributions, np.ones((100, 1)), EVERYTHING))
    assert f"The policy is {verdict} what was done" in str(Improvement(**made, **said))
    assert "estimated propensities" in str(Improvement(**made, **said | {"estimated": True}))
