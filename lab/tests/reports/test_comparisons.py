"""Tests between agents err as rarely as they say, in simulations where the truth is known."""

import itertools

import numpy as np
import pytest
from scipy import stats

from lab.tests.reports.test_statistics import at_least
from omg_lab.reports.comparisons import Verdict, compare_all, enough_seeds, log_capital


def paired_test(differences):
    """Return the comparison of two agents whose regrets differ by this."""
    (found,) = compare_all({"first": differences, "second": np.zeros(len(differences))})
    return found


SYMMETRIC = {
    "gaussian": lambda rng, shape: rng.normal(size=shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(size=shape),
    "often zero": lambda rng, shape: rng.integers(-1, 2, size=shape) * rng.exponential(size=shape),
    "growing": lambda rng, shape: rng.normal(size=shape) * np.arange(1, shape[-1] + 1) ** 2,
}


def test_paired_test_counts_all_sign_patterns(rng):
    for seeds in (1, 2, 5, 9):
        differences = rng.normal(0.5, 1.0, size=seeds)
        patterns = np.array(list(itertools.product([-1.0, 1.0], repeat=seeds)))
        share = np.mean(np.abs(patterns @ differences) >= abs(differences.sum()) - 1e-12)
        found = paired_test(differences)
        assert found.p == share
        np.testing.assert_allclose(found.difference, differences.mean())


def test_paired_test_agrees_with_scipy(rng):
    differences = rng.normal(0.4, 1.0, size=10)
    theirs = stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=np.inf)
    np.testing.assert_allclose(paired_test(differences).p, theirs.pvalue, rtol=1e-9)


def test_paired_test_of_many_seeds_is_close_to_counting_all(rng):
    differences = rng.normal(0.4, 1.0, size=16)
    patterns = 1.0 - 2.0 * (np.arange(2**16)[:, None] >> np.arange(16) & 1)
    share = np.mean(np.abs(patterns @ differences) >= abs(differences.sum()) - 1e-12)
    found = paired_test(differences)
    assert abs(found.p - share) <= 4.0 * np.sqrt(share / 2**13)
    assert found == paired_test(differences)
    assert paired_test(np.ones(40)).p == 2.0**-13  # never zero


@pytest.mark.parametrize("kind", SYMMETRIC)
def test_paired_test_of_equal_agents_errs_as_rarely_as_it_says(kind, rng):
    studies = 800
    p = np.array([paired_test(row).p for row in SYMMETRIC[kind](rng, (studies, 8))])
    for level in (0.02, 0.05, 0.2):
        assert np.mean(p <= level) <= 1.0 - at_least(1.0 - level, studies)


def test_no_difference_and_rounding_are_no_evidence():
    assert paired_test(np.zeros(9)).p == 1.0
    assert paired_test(np.full(9, 1e-12)).p == 1.0
    assert {found.adjusted for found in compare_all(dict.fromkeys("abc", np.arange(9)))} == {1.0}
    assert enough_seeds(np.full(50, -1e-12)).verdict is Verdict.UNDECIDED


def simulate_families(rng, means, studies, seeds=8):
    """Yield comparisons of agents with `means`, whose regrets share a part that differs much between seeds."""
    shared = 10.0 * rng.normal(size=(studies, 1, seeds))
    mixing = rng.normal(size=(len(means), len(means)))
    own = mixing @ rng.standard_t(3, size=(studies, len(means), seeds))
    for study in shared + own + 1000.0 * np.asarray(means)[:, None]:
        yield compare_all({str(agent): row for agent, row in enumerate(study)})


@pytest.mark.parametrize("means", [(0, 0, 0, 0, 0), (0, 0, 1, 1, 2)], ids=["all equal", "some equal"])
def test_some_pair_of_equal_agents_is_told_apart_as_rarely_as_it_says(means, rng):
    studies, level = 500, 0.05
    errors = []
    for found in simulate_families(rng, means, studies):
        equal = [means[int(each.first)] == means[int(each.second)] for each in found]
        told_apart = [each.adjusted <= level for each in found]
        errors.append(any(np.array(told_apart) & equal))
    assert np.mean(errors) <= 1.0 - at_least(1.0 - level, studies)
    assert np.mean(errors) >= level / 3.0  # and it is no blunt tool


def test_adjusted_values_are_not_below_those_alone(rng):
    regrets = {name: rng.normal(shift, 1.0, size=9) for name, shift in zip("abcd", range(4), strict=True)}
    found = compare_all(regrets)
    assert [(each.first, each.second) for each in found] == list(itertools.combinations("abcd", 2))
    for each in found:
        assert each.p == paired_test(regrets[each.first] - regrets[each.second]).p
        assert each.p <= each.adjusted <= 1.0
    one = compare_all({name: regrets[name] for name in "ab"})[0]
    assert one.adjusted == one.p


def test_clearer_differences_have_smaller_adjusted_values(rng):
    for _ in range(100):
        regrets = dict(zip("abcd", rng.normal(size=(4, 6)), strict=True))
        found = compare_all(regrets)
        clarity = [abs(stats.ttest_rel(regrets[each.first], regrets[each.second]).statistic) for each in found]
        adjusted = np.array([each.adjusted for each in found])[np.argsort(clarity)]
        assert (np.diff(adjusted) <= 0.0).all()


def test_a_noisy_agent_does_not_hide_the_others(rng):
    regrets = {"a": rng.normal(0.0, 0.1, size=10), "b": rng.normal(1.0, 0.1, size=10), "c": 1e3 * rng.normal(size=10)}
    assert compare_all(regrets)[0].adjusted <= 0.05


def test_all_of_ten_agents_can_be_told_apart_with_ten_seeds(rng):
    regrets = {str(agent): 10.0 * agent + rng.normal(size=10) for agent in range(10)}
    assert max(each.adjusted for each in compare_all(regrets)) <= 0.05


def test_against_one_agent_only_its_pairs_are_compared_and_it_comes_first(rng):
    regrets = {name: rng.normal(size=9) for name in "abcd"}
    found = compare_all(regrets, against="c")
    assert [(each.first, each.second) for each in found] == [("c", "a"), ("c", "b"), ("c", "d")]
    everything = {frozenset(each[:2]): each.adjusted for each in compare_all(regrets)}
    for each in found:
        assert each.adjusted <= everything[frozenset(each[:2])]
        np.testing.assert_allclose(each.difference, (regrets["c"] - regrets[each.second]).mean())


def test_capital_is_a_martingale_whatever_the_sizes(rng):
    sizes = np.abs(rng.standard_cauchy(size=7))
    patterns = np.array(list(itertools.product([-1.0, 1.0], repeat=7)))
    capital = np.exp(log_capital(patterns * sizes))  # all of the coin's future: (2^7, bets, 7)
    np.testing.assert_allclose(capital.mean(axis=0), 1.0, rtol=1e-12)


@pytest.mark.parametrize("kind", SYMMETRIC)
def test_stopping_whenever_one_likes_errs_as_rarely_as_it_says(kind, rng):
    studies, level = 1000, 0.9
    decisions = [enough_seeds(row, level) for row in SYMMETRIC[kind](rng, (studies, 300))]
    wrong = np.mean([decision.verdict is not Verdict.UNDECIDED for decision in decisions])
    assert wrong <= 1.0 - at_least(level, studies)
    assert wrong >= (1.0 - level) / 4.0  # and it is no blunt tool


@pytest.mark.parametrize(("effect", "half_within"), [(2.0, 9), (1.0, 14), (0.5, 42)])
def test_a_true_difference_is_found_soon_and_with_its_sign(effect, half_within, rng):
    decisions = [enough_seeds(row) for row in rng.normal(-effect, 1.0, size=(300, 400))]
    assert np.mean([decision.verdict is Verdict.FIRST for decision in decisions]) > 0.97
    assert np.median([decision.seeds for decision in decisions]) <= half_within
    assert not any(decision.more for decision in decisions)


def test_a_verdict_stays_whatever_follows_and_turns_with_the_agents(rng):
    differences = np.concatenate([rng.uniform(0.8, 1.2, size=9), -rng.uniform(0.8, 1.2, size=50)])
    decision = enough_seeds(differences)
    assert decision.verdict is Verdict.SECOND
    assert decision == enough_seeds(differences[: decision.seeds])
    assert decision.evidence >= 40.0
    turned = enough_seeds(-differences)
    assert turned == decision._replace(verdict=Verdict.FIRST)
    assert enough_seeds(1000.0 * differences)[:3] == decision[:3]
    assert enough_seeds(differences[: decision.seeds - 1]).verdict is Verdict.UNDECIDED


def test_running_as_many_more_seeds_as_suggested_ends_soon(rng):
    rounds = []
    for future in rng.normal(1.0, 1.0, size=(100, 500)):
        seeds, looks, decision = 3, 1, enough_seeds(future[:3])
        while decision.verdict is Verdict.UNDECIDED:
            assert 1 <= decision.more <= max(seeds, 10)
            seeds, looks = seeds + decision.more, looks + 1
            decision = enough_seeds(future[:seeds])
        rounds.append(looks)
    assert np.median(rounds) <= 4
    assert max(rounds) <= 12
    assert enough_seeds([1.0, -1.0] * 10).more == 20  # nothing to go by: as many again


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare_all({"a": [1.0], "b": [1.0]}, seed=-1), "`seed` must be an integer of at least 0, got -1"),
        (lambda: compare_all({"a": [1.0]}), "`regrets` must have two agents or more on the same seeds, got {'a': 1}"),
        (lambda: compare_all({"a": [1.0], "b": [1.0, 2.0]}), "on the same seeds, got {'a': 1, 'b': 2}"),
        (lambda: compare_all({"a": [1.0], "b": [np.inf]}), r"`regrets\['b'\]` must be finite, got inf"),
        (lambda: compare_all({"a": [1.0], "b": [1.0]}, against="c"), "`against` must be one of a, b, got 'c'"),
        (lambda: enough_seeds([1.0, np.nan]), r"`differences` must be finite, got nan at index \(1,\)"),
        (lambda: enough_seeds([1.0], 1.0), r"`level` must lie in \(0, 1\), got 1.0"),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
