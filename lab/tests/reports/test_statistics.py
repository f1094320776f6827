"""Bands, intervals and slopes cover as often as they say, in simulations where the truth is known."""

import numpy as np
import pytest
from scipy import stats

from omg_lab.reports.statistics import mean_interval, simultaneous_band

POINTS = np.geomspace(10.0, 1000.0, 60)


def at_least(level, studies):
    """Return what a share of `studies` that is `level` in the mean stays above, but for chance (4 deviations)."""
    return level - 4.0 * np.sqrt(level * (1.0 - level) / studies)


def smooth(rng, shape):
    """Return independent curves that differ in a few coefficients, like the regrets of seeds: (*shape, T')."""
    parts = [POINTS**0.5, POINTS**0.7 / 4.0, 3.0 * np.log(POINTS), 10.0 * np.sin(np.log(POINTS))]
    return rng.normal(size=(*shape, len(parts))) @ np.stack(parts)


def walks(rng, shape):
    """Return random walks, as rough as a sum of independent regrets: (*shape, T')."""
    return (rng.normal(size=(*shape, len(POINTS))) * np.sqrt(np.diff(POINTS, prepend=0.0))).cumsum(axis=-1)


def wiggles(rng, shape):
    """Return independent points, which no curve joins: (*shape, T')."""
    return rng.normal(size=(*shape, len(POINTS)))


def largest_t(curves):
    """Return the largest |t| of the points for the true mean of zero; `curves` is (studies, R, T')."""
    return (np.abs(curves.mean(axis=1)) / curves.std(axis=1, ddof=1)).max(axis=1) * np.sqrt(curves.shape[1])


@pytest.mark.parametrize("seeds", [5, 10, 30])
@pytest.mark.parametrize(("process", "waste"), [(smooth, 1.12), (walks, 1.2), (wiggles, 1.1)])
def test_band_covers_the_whole_curve_and_is_hardly_wider_than_it_must_be(process, waste, seeds, rng):
    studies, level = 400, 0.9
    curves = process(rng, (studies, seeds))
    bands = [simultaneous_band(study, level) for study in curves]
    covered = [((band.low <= 0.0) & (band.high >= 0.0)).all() for band in bands]
    assert np.mean(covered) >= at_least(level, studies)
    needed = np.quantile(largest_t(process(rng, (4000, seeds))), level)  # by one who knows the process
    assert np.median([band.critical for band in bands]) <= waste * needed


def test_band_of_one_point_is_students_interval(rng):
    values = rng.normal(size=7)
    band, interval = simultaneous_band(values[:, None], 0.9), mean_interval(values, 0.9)
    np.testing.assert_allclose([*band.mean, *band.low, *band.high], interval, rtol=1e-9)


def test_band_is_between_student_and_bonferroni(rng):
    band = simultaneous_band(walks(rng, (8,)), 0.95)
    assert stats.t.isf(0.025, 7) < band.critical < stats.t.isf(0.025 / len(POINTS), 7)
    many = simultaneous_band(wiggles(rng, (8,)), 0.95)
    assert band.critical < many.critical <= stats.t.isf(0.025 / len(POINTS), 7) * (1 + 1e-9)


def test_band_follows_units_and_the_order_of_seeds_does_not_matter(rng):
    curves, factor = walks(rng, (6,)), rng.uniform(0.1, 10.0, size=len(POINTS))
    band = simultaneous_band(curves)
    other = simultaneous_band(curves[::-1] * factor + 5.0)
    np.testing.assert_allclose(other.critical, band.critical, rtol=1e-6)
    np.testing.assert_allclose(other.low, band.low * factor + 5.0, rtol=1e-6)


def test_band_does_not_mind_points_upside_down(rng):
    curves, signs = walks(rng, (6,)), rng.choice([-1.0, 1.0], size=len(POINTS))
    band, turned = simultaneous_band(curves), simultaneous_band(curves * signs)
    np.testing.assert_allclose(turned.high - turned.mean, band.high - band.mean, rtol=1e-9)


def test_a_rough_stretch_costs_no_more_than_bonferroni_there(rng):
    even, rough = smooth(rng, (30,)), wiggles(rng, (30,))[:, :20]
    mixed = simultaneous_band(np.concatenate([even, rough], axis=1), 0.9)
    assert mixed.critical <= max(simultaneous_band(even, 0.95).critical, stats.t.isf(0.025 / 20, 29)) * (1 + 1e-9)


def test_repeating_points_does_not_widen_the_band(rng):
    curves = walks(rng, (6,))
    twice = simultaneous_band(np.repeat(curves, 2, axis=1))
    np.testing.assert_allclose(twice.critical, simultaneous_band(curves).critical, rtol=1e-3)


def test_where_all_seeds_agree_the_band_is_their_curve(rng):
    curves = np.concatenate([np.zeros((6, 20)), walks(rng, (6,))], axis=1)
    band = simultaneous_band(curves)
    assert not band.low[:20].any()
    assert not band.high[:20].any()
    assert band.critical == simultaneous_band(curves[:, 20:]).critical
    same = simultaneous_band(np.ones((4, 3)))
    np.testing.assert_array_equal([same.low, same.high], np.ones((2, 3)))


def test_a_band_told_that_the_mean_increases_is_narrower_and_covers_as_often(rng):
    truth, studies = POINTS**0.5, 200
    curves = truth + 0.3 * walks(rng, (studies, 5))
    for study in curves:
        plain, told = simultaneous_band(study), simultaneous_band(study, increasing=True)
        assert (told.high <= plain.high).all()
        assert (told.low >= np.maximum(plain.low, 0.0)).all()
        assert (np.diff(told.low) >= 0.0).all()
        assert (np.diff(told.high) >= 0.0).all()
        covers = [((band.low <= truth) & (truth <= band.high)).all() for band in (plain, told)]
        assert covers[0] == covers[1]


@pytest.mark.parametrize("seeds", [2, 5, 20])
def test_interval_of_gaussian_seeds_covers_as_it_says(seeds, rng):
    studies = 1000
    intervals = [mean_interval(row, 0.9) for row in rng.normal(3.0, 2.0, size=(studies, seeds))]
    covered = np.mean([interval.low <= 3.0 <= interval.high for interval in intervals])
    assert abs(covered - 0.9) <= 0.9 - at_least(0.9, studies)


@pytest.mark.parametrize("skew", [0.0, 1.0])
def test_interval_of_few_seeds_covers_more_often_than_the_bootstrap(skew, rng):
    studies = 400
    values = rng.normal(size=(studies, 5))
    values, truth = (np.exp(skew * values), np.exp(skew**2 / 2.0)) if skew else (values, 0.0)
    ours = np.mean([low <= truth <= high for _, low, high in map(mean_interval, values)])
    low, high = stats.bootstrap((values,), np.mean, axis=1, n_resamples=499, random_state=0).confidence_interval
    theirs = np.mean((low <= truth) & (truth <= high))
    assert ours > theirs + 0.03
    assert theirs < 0.9  # of 0.95


def test_one_seed_has_a_mean_and_no_bounds():
    curve = np.arange(1.0, 5.0)
    band = simultaneous_band([curve])
    np.testing.assert_array_equal(band.mean, curve)
    assert np.isnan([*band.low, *band.high, band.critical]).all()
    mean, low, high = mean_interval([2.0])
    assert mean == 2.0
    assert np.isnan([low, high]).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simultaneous_band([1.0, 2.0]), r"`curves` must have 2 axes, none empty, got shape \(2,\)"),
        (lambda: simultaneous_band([[1.0, np.nan]]), r"`curves` must be finite, got nan at index \(0, 1\)"),
        (lambda: simultaneous_band([[1.0], [2.0]], 95), r"`level` must lie in \(0, 1\), got 95"),
        (lambda: mean_interval([]), "`values` must have 1 axes"),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
