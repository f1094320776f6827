"""Statistics of the league: the test keeps its level with families as units, and the correction is Holm's."""

import itertools

import numpy as np
import pandas as pd
import pytest

from lab.league.statistics import comparisons, disasters, holm, interval, log_regrets, sensitivity, sign_flip


def runs_of(regrets, agents=("OMG", "rival")):
    """Return runs of an array (families, agents, seeds)."""
    return pd.DataFrame(
        [
            {"family": f"family {f}", "agent": agents[a], "seed": s, "regret": regrets[f, a, s]}
            for f, a, s in np.ndindex(regrets.shape)
        ]
    )


def test_sign_flips_agree_with_all_signs():
    differences = np.array([0.3, -0.1, 0.7, 0.2, 0.05, -0.4])
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=6)))
    exact = (np.abs(signs @ differences) >= abs(differences.sum()) - 1e-12).mean()
    assert sign_flip(differences) == pytest.approx(exact, abs=0.01)


def test_the_level_is_kept_where_seeds_agree_but_families_differ():
    """Twenty seeds a family that all say the same are no twenty facts: equal agents differ in 5 % of leagues only."""
    generator, found = np.random.default_rng(0), 0
    for _ in range(200):
        differences = generator.standard_t(3, size=12)
        found += sign_flip(differences) <= 0.05
    assert found <= 200 * 0.05 + 3.0 * np.sqrt(200 * 0.05 * 0.95)


def test_holm_rejects_what_the_stepwise_rule_does(rng):
    for _ in range(50):
        p_values = pd.Series(rng.uniform(size=6) ** 3)
        ordered = np.sort(p_values)
        accepted = [place for place in range(6) if ordered[place] > 0.05 / (6 - place)]
        rejected = ordered[: accepted[0] if accepted else 6]
        assert set(p_values[holm(p_values) <= 0.05]) == set(rejected)


def test_a_rival_that_is_twice_as_bad_everywhere_is_beaten_and_an_equal_one_is_not(rng):
    base = rng.lognormal(3.0, 1.0, size=(16, 1, 1)) * rng.lognormal(0.0, 0.1, size=(16, 3, 8))
    base[:, 1] *= 2.0
    table = comparisons(runs_of(base, ("OMG", "bad", "equal")), "OMG")
    assert table.loc["bad", "verdict"] == "better"
    assert table.loc["equal", "verdict"] == "no difference shown"
    assert table.loc["bad", "low"] < -np.log(2.0) * 0.7 < 0.0
    assert table.loc["bad", "low"] <= table.loc["bad", "difference"] <= table.loc["bad", "high"]


def test_log_regrets_are_of_means_and_missing_families_stay_missing():
    runs = runs_of(np.array([[[1.0, 3.0], [0.0, 0.0]], [[7.0, 7.0], [1.0, 1.0]]]))
    runs = runs[~((runs["agent"] == "rival") & (runs["family"] == "family 1"))]
    logs = log_regrets(runs)
    assert logs["OMG"].tolist() == pytest.approx([np.log(3.0), np.log(8.0)])
    assert logs["rival"].isna().tolist() == [False, True]
    assert interval(runs, "OMG", "rival")[1] > 0.0


def test_disasters_show_the_worst_family_and_the_worst_seeds():
    regrets = np.ones((3, 2, 20))
    regrets[1, 0], regrets[2, 1, :2] = 7.0, 99.0
    found = disasters(runs_of(regrets))
    assert found.loc["OMG", "worst family"] == pytest.approx(4.0)
    assert found.loc["OMG", "where"] == "family 1"
    assert found.loc["rival", "worst tenth"] == pytest.approx((2.0 * np.log(2.0) + np.log(100.0)) / 3.0)


def test_scaling_all_regrets_changes_no_ratio_to_uniform(rng):
    regrets = rng.lognormal(2.0, 1.0, size=(6, 3, 4))
    names = ("OMG", "rival", "uniform")
    one, two = (sensitivity(runs_of(factor * regrets, names), "OMG", ["rival"]) for factor in (1.0, 50.0))
    assert one.loc["rival", "over uniform's"] == pytest.approx(two.loc["rival", "over uniform's"])
    assert one.loc["rival", "least without one"] <= one.loc["rival", "+ 1"] <= one.loc["rival", "most without one"]
