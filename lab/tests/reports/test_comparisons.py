"""Tests between agents err as rarely as they say, for differences of any shape and however often one looks."""

import itertools
import math

import numpy as np
import pytest

from lab.benchmarks import verdicts
from lab.tests.reports.test_statistics import at_least
from omg_lab.reports.comparisons import STAKES, Verdict, compare_all, enough_seeds, log_capital, mean_bounds

RARE = verdicts.two_points(-1.0, 100.0, 0.05)
"""The first agent is 1 better on 95 seeds in 100, and 100 worse on the others: worse by 4.05 on average."""


def test_capital_is_a_supermartingale_if_the_mean_is_not_above_the_centre(rng):
    """Over all of the future of two-point scores it is a martingale at m = mean, falls above and grows below."""
    low, high, chance = 0.1, 0.9, 0.3
    mean = low + (high - low) * chance
    futures = np.array(list(itertools.product([0.0, 1.0], repeat=8)))
    weights = np.prod(np.where(futures, chance, 1.0 - chance), axis=1)
    for centre, sign in ((mean, 0.0), (mean + 0.1, -1.0), (mean - 0.1, 1.0)):
        expected = weights @ np.exp(log_capital(low + (high - low) * futures, centre))
        steps = np.diff(np.log(expected), prepend=0.0)
        assert np.allclose(steps, 0.0, atol=1e-12) if not sign else (np.sign(steps) == sign).all()
    assert math.isclose(sum(STAKES.values()), 1.0)


def test_capital_falls_in_the_centre(rng):
    for scores in rng.uniform(size=(20, 12)):
        capital = [log_capital(scores, centre) for centre in np.linspace(0.05, 0.95, 19)]
        assert (np.diff(capital, axis=0) <= 1e-12).all()


@pytest.mark.parametrize("kind", verdicts.AVERAGES)
def test_a_verdict_on_averages_is_wrong_as_rarely_as_it_says_whatever_the_shape(kind, rng):
    """Also if one looks after every seed up to the thirtieth."""
    (draw, largest), studies, level = verdicts.AVERAGES[kind], 1000, 0.9
    found = [enough_seeds(row, largest=largest, level=level).verdict for row in draw(rng, (studies, 30))]
    judged = [Verdict.FIRST] if kind.startswith("worse") else [Verdict.FIRST, Verdict.SECOND]
    for verdict in judged:
        assert np.mean([each is verdict for each in found]) <= 1.0 - at_least((1.0 + level) / 2.0, studies)


@pytest.mark.parametrize("kind", verdicts.MOST)
def test_a_verdict_on_most_seeds_is_wrong_as_rarely_as_it_says_whatever_the_shape(kind, rng):
    studies, level = 1000, 0.9
    found = [enough_seeds(row, level=level).verdict for row in verdicts.MOST[kind](rng, (studies, 100))]
    wrong = np.mean([each is not Verdict.UNDECIDED for each in found])
    assert wrong <= 1.0 - at_least(level, studies)
    assert wrong >= (1.0 - level) / 8.0  # and it is no blunt tool


def test_rare_disasters_are_no_victory_on_average_and_one_on_most_seeds(rng):
    """Sign flips and their martingale called the first agent the better in two studies of three."""
    rows = RARE(rng, (300, 30))
    assert not any(enough_seeds(row, largest=100.0).verdict is Verdict.FIRST for row in rows)
    assert np.mean([enough_seeds(row).verdict is Verdict.FIRST for row in rows]) > 0.95
    assert np.mean(verdicts.wrong(verdicts.symmetric_bets(rows), slice(0, 1))) > 0.5  # the simulation shows the harm


@pytest.mark.parametrize("largest", [None, 5.0])
def test_adding_seeds_and_looking_again_never_takes_evidence_back(largest, rng):
    for row in rng.normal(-0.5, 1.0, size=(10, 60)).clip(-5.0, 5.0):
        looks = [enough_seeds(row[:n], largest=largest) for n in range(1, 61)]
        assert (np.diff([look.p for look in looks]) <= 0.0).all()
        decided = [look for look in looks if look.verdict is not Verdict.UNDECIDED]
        assert all(look[:3] == decided[0][:3] for look in decided)
        assert all(look.p <= 0.05 for look in decided)
        assert all(look.p > 0.05 for look in looks if look.verdict is Verdict.UNDECIDED)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(verdicts.AVERAGES)[:5])
def test_bounds_hold_the_mean_at_all_numbers_of_seeds_at_once_and_only_narrow(kind, rng):
    (draw, largest), studies, level = verdicts.AVERAGES[kind], 100, 0.8
    missed = []
    for row in draw(rng, (studies, 40)):
        bounds = np.array([mean_bounds(row[:n], largest, level) for n in (2, 10, 40)])
        assert (np.diff(bounds[:, 0]) >= -1e-9 * largest).all()
        assert (np.diff(bounds[:, 1]) <= 1e-9 * largest).all()
        missed.append(not bounds[-1, 0] <= 0.0 <= bounds[-1, 1])
    assert np.mean(missed) <= 1.0 - at_least(level, studies)


def test_bounds_exclude_zero_just_when_there_is_a_verdict_on_averages(rng):
    for row in rng.normal(-1.0, 1.0, size=(50, 25)).clip(-3.0, 3.0):
        low, high = mean_bounds(row, 3.0)
        decided = enough_seeds(row, largest=3.0).verdict
        assert (high < 0.0) == (decided is Verdict.FIRST)
        assert (low > 0.0) == (decided is Verdict.SECOND)


def test_bounds_of_many_seeds_close_in_on_the_mean(rng):
    low, high = mean_bounds(rng.uniform(-1.0, 0.0, size=5000), 1.0)
    assert -0.56 < low < -0.5 < high < -0.44


@pytest.mark.parametrize(("share", "half_within"), [(1.0, 6), (0.9, 9), (0.8, 25), (0.7, 65)])
def test_whoever_is_ahead_on_most_seeds_is_found_soon(share, half_within, rng):
    rows = np.where(rng.uniform(size=(300, 400)) < share, -1.0, 1.0)
    found = [enough_seeds(row) for row in rows]
    assert np.mean([each.verdict is Verdict.FIRST for each in found]) > 0.97
    assert np.median([each.seeds for each in found]) <= half_within


@pytest.mark.parametrize(("effect", "half_within"), [(0.5, 12), (0.25, 21), (0.04, 120)])
def test_a_difference_of_means_is_found_after_about_four_times_the_bound_over_it(effect, half_within, rng):
    rows = rng.normal(-effect, 0.2 * effect, size=(100, 400))
    found = [enough_seeds(row, largest=1.0) for row in rows]
    assert all(each.verdict is Verdict.FIRST for each in found)
    assert np.median([each.seeds for each in found]) <= half_within <= 6.0 / effect


@pytest.mark.parametrize("largest", [None, 10.0])
def test_verdicts_turn_with_the_agents_and_do_not_depend_on_units(largest, rng):
    differences = rng.normal(-2.0, 2.0, size=40).clip(-10.0, 10.0)
    one, turned = (enough_seeds(sign * differences, largest=largest) for sign in (1.0, -1.0))
    assert {one.verdict, turned.verdict} == {Verdict.FIRST, Verdict.SECOND}
    assert one[1:] == turned[1:]
    larger = enough_seeds(1000.0 * differences, largest=None if largest is None else 1000.0 * largest)
    assert larger[:3] == one[:3]
    assert larger.p == pytest.approx(one.p)


def test_the_guess_of_how_many_more_seeds_ends_soon(rng):
    for largest, rows in ((None, rng.normal(1.0, 1.0, size=(60, 2000))), (8.0, rng.normal(1.0, 1.0, size=(60, 2000)))):
        looks = []
        for future in rows.clip(-8.0, 8.0):
            seeds, count, found = 4, 1, enough_seeds(future[:4], largest=largest)
            while found.verdict is Verdict.UNDECIDED:
                seeds, count = seeds + int(min(found.more, seeds)), count + 1
                found = enough_seeds(future[:seeds], largest=largest)
            looks.append(count)
        assert np.median(looks) <= 8
    assert enough_seeds([1.0, -1.0] * 10).more == math.inf  # nothing to go by
    assert enough_seeds([-1.0] * 5).more == 1.0


def test_no_difference_and_rounding_are_no_evidence():
    for differences in (np.zeros(50), np.full(50, -1e-12)):
        for largest in (None, 1.0):
            assert enough_seeds(differences, largest=largest)[::3] == (Verdict.UNDECIDED, 1.0)
    (found,) = compare_all({"a": np.ones(9), "b": np.ones(9)}, largest=1.0)
    assert (found.ahead, found.behind, found.difference, found.mean.p, found.most.p) == (0, 0, 0.0, 1.0, 1.0)


def test_ties_count_for_neither_agent():
    """Ahead on 8 seeds, never behind, but level on 12: that is not on most seeds."""
    assert enough_seeds([-1.0] * 8 + [0.0] * 12).verdict is Verdict.FIRST  # after eight seeds
    assert enough_seeds([0.0, 0.0, -1.0] * 30).verdict is Verdict.UNDECIDED


@pytest.mark.slow
@pytest.mark.parametrize("means", [(0, 0, 0, 0), (0, 0, 1, 3)], ids=["all equal", "some equal"])
def test_no_wrong_verdict_among_many_pairs_more_often_than_it_says(means, rng):
    studies, errors = 200, []
    for _ in range(studies):
        shared = 10.0 * rng.normal(size=8)
        losses = shared + rng.exponential(size=(4, 8)) + np.array(means)[:, None]
        found = compare_all({str(agent): row for agent, row in enumerate(losses)}, largest=200.0)
        equal = [each for each in found if means[int(each.first)] == means[int(each.second)]]
        decided = [each for each in equal if {each.most.verdict, each.mean.verdict} != {Verdict.UNDECIDED}]
        turned = [each for each in found if each not in equal and each.most.verdict is Verdict.SECOND]
        errors.append(bool(decided or turned))
    assert np.mean(errors) <= 1.0 - at_least(0.95, studies)


def test_corrected_values_are_those_alone_times_the_number_of_pairs(rng):
    regrets = {name: rng.normal(shift, 1.0, size=9) for name, shift in zip("abcd", range(4), strict=True)}
    found = compare_all(regrets, largest=20.0)
    assert [(each.first, each.second) for each in found] == list(itertools.combinations("abcd", 2))
    for each in found:
        (alone,) = compare_all({name: regrets[name] for name in each[:2]}, largest=20.0)
        assert each.most.p == min(1.0, 6.0 * alone.most.p)
        assert each.mean.p == min(1.0, 6.0 * alone.mean.p)
        assert each.low <= alone.low <= alone.high <= each.high
        assert each.ahead + each.behind == 9


def test_all_of_ten_agents_can_be_told_apart_with_eleven_seeds(rng):
    regrets = {str(agent): 10.0 * agent + rng.uniform(size=12) for agent in range(10)}
    assert all(each.most.verdict is Verdict.FIRST for each in compare_all(regrets))


def test_against_one_agent_only_its_pairs_are_compared_and_it_comes_first(rng):
    regrets = {name: rng.normal(size=9) for name in "abcd"}
    found = compare_all(regrets, against="c")
    assert [(each.first, each.second) for each in found] == [("c", "a"), ("c", "b"), ("c", "d")]
    for each in found:
        np.testing.assert_allclose(each.difference, (regrets["c"] - regrets[each.second]).mean())
        assert each.mean is None
        assert each.record()["p_mean"] is each.record()["low"] is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare_all({"a": [1.0]}), "`regrets` must have two agents or more on the same seeds, got {'a': 1}"),
        (lambda: compare_all({"a": [1.0], "b": [1.0, 2.0]}), "on the same seeds, got {'a': 1, 'b': 2}"),
        (lambda: compare_all({"a": [1.0], "b": [np.inf]}), r"`regrets\['b'\]` must be finite, got inf"),
        (lambda: compare_all({"a": [1.0], "b": [1.0]}, against="c"), "`against` must be one of a, b, got 'c'"),
        (lambda: compare_all({"a": [1.0], "b": [9.0]}, largest=7.0), "`largest` must bound all differences, got 7.0"),
        (lambda: enough_seeds([1.0, np.nan]), r"`differences` must be finite, got nan at index \(1,\)"),
        (lambda: enough_seeds([1.0], level=1.0), r"`level` must lie in \(0, 1\), got 1.0"),
        (lambda: enough_seeds([1.0], largest=0.0), "`largest` must be a positive, finite number, got 0.0"),
        (lambda: mean_bounds([], 1.0), "`differences` must have 1 axes, none empty"),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
