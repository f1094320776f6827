"""The analysis: least squares clustered by person, effects within the rules, values of policies not played."""

import json

import numpy as np
import pandas
import pytest
import scipy.stats

from omg_trial.analysis import arm_difference, clustered_fit, earned, excursion_effect, treatment_effect
from omg_trial.analysis.effects import fixed_probabilities, fixed_weights
from omg_trial.desk import Desk
from omg_trial.export import decisions
from omg_trial.log.database import Database
from omg_trial.trial_file import EXAMPLE, Trial
from trial.benchmarks.coverage import SHAPES, covered
from trial.tests.trials import trial


def rows(seed, people=12, most=9):
    generator = np.random.default_rng(seed)
    person = np.repeat(np.arange(people), generator.integers(2, most, people))
    return generator, person, len(person)


def test_the_covariance_is_that_of_mancl_and_derouen_with_whole_hat_matrices():
    """Also what MRTAnalysis prints for its example: 0.158170 with error 0.064143 and 35 degrees of freedom."""
    generator, person, size = rows(0)
    x, y, w = generator.normal(size=(size, 3)), generator.normal(size=size), generator.uniform(0.5, 2.0, size)
    fit = clustered_fit(design=x, outcome=y, weights=w, person=person, names="abc")
    bread = np.linalg.inv(x.T @ (w[:, None] * x))
    meat = np.zeros((3, 3))
    for each in range(person.max() + 1):
        own = person == each
        hat = x[own] @ bread @ x[own].T @ np.diag(w[own])
        residuals = np.linalg.solve(np.eye(own.sum()) - hat, y[own] - x[own] @ fit.values)
        score = x[own].T @ (w[own] * residuals)
        meat += np.outer(score, score)
    np.testing.assert_allclose(fit.covariance, bread @ meat @ bread, rtol=1e-9)


def two_arms(first, second, seed=0, rows=3):
    """People of two arms, with as many rows each."""
    person = np.arange(first + second).repeat(rows)
    design = np.stack([np.ones(len(person)), person >= first], axis=1)
    outcome = np.random.default_rng(seed).exponential(size=len(person))
    return {"design": design, "outcome": outcome, "weights": np.ones(len(person)), "person": person, "names": "ab"}


@pytest.mark.parametrize(("first", "second"), [(7, 7), (4, 10), (3, 40)])
def test_a_difference_of_arms_has_about_the_degrees_of_freedom_of_welch(first, second):
    """With equal variances Welch has (1/m + 1/n)²/(1/(m²(m-1)) + 1/(n²(n-1))), which is m + n - 2 for equal arms."""
    welch = (1 / first + 1 / second) ** 2 / (1 / first**2 / (first - 1) + 1 / second**2 / (second - 1))
    known = two_arms(first, second)
    freedom = clustered_fit(**known | {"outcome": np.where(known["person"] % 2, 1.0, -1.0)}).freedom[1]
    assert 0.75 * welch < freedom <= welch + 1e-9
    if first == second:
        assert freedom == pytest.approx(welch)


def test_an_interval_follows_the_skewness_and_turns_with_the_outcome():
    known = two_arms(20, 20)
    fit, mirrored = clustered_fit(**known), clustered_fit(**known | {"outcome": -known["outcome"]})
    np.testing.assert_allclose(fit.interval(), -mirrored.interval()[:, ::-1], rtol=1e-9)
    low, high = fit.interval()[0]
    assert high - fit.values[0] > 1.05 * (fit.values[0] - low), "the mean of exponential outcomes"
    constant = clustered_fit(**known | {"outcome": np.ones(len(known["outcome"]))})
    np.testing.assert_allclose(constant.interval(), [[1.0, 1.0], [0.0, 0.0]], atol=1e-9)


def test_a_coefficient_that_rests_on_one_person_or_on_nobody_has_no_interval():
    assert np.isinf(clustered_fit(**two_arms(1, 9)).interval()).all()
    known = two_arms(5, 5)
    nobody = np.hstack([known["design"], np.zeros((len(known["outcome"]), 1))])
    one = np.hstack([known["design"], (known["person"] == 9)[:, None]])
    for design in (nobody, one):
        fit = clustered_fit(**known | {"design": design, "names": "abc"})
        assert np.isinf(fit.interval()[2]).all()
        np.testing.assert_allclose(fit.standard_errors[0], clustered_fit(**known).standard_errors[0])
        assert np.isfinite(fit.interval()[:2]).all()


def test_effects_come_back_exactly_whatever_the_probabilities_and_the_control_variables():
    """Without noise the weighted and centred fit is exact if the control variables are right."""
    generator, person, size = rows(1)
    chances = generator.uniform(0.1, 0.8, size)
    treated, old = generator.random(size) < chances, generator.random(size)
    moderators = np.stack([np.ones(size), old], axis=1)
    effect = excursion_effect(
        outcome=2.0 - old + treated * (0.3 + 0.5 * old),
        treatment=treated,
        probabilities=np.stack([1.0 - chances, chances], axis=1),
        person=person,
        moderators=moderators,
    )
    np.testing.assert_allclose(effect.values, [0.3, 0.5], atol=1e-10)


def test_a_wrong_control_model_biases_nothing_on_average():
    """Probabilities depend on the state, as does the outcome: without weights the effect would be off by a third."""
    found = []
    for seed in range(60):
        generator, person, size = rows(seed, people=30, most=30)
        ill = generator.random(size) < 0.5
        chances = np.where(ill, 0.8, 0.2)
        treated = generator.random(size) < chances
        outcome = 0.2 * treated + 0.6 * ill + generator.normal(scale=0.1, size=size)
        chances = np.stack([1.0 - chances, chances], axis=1)
        effect = excursion_effect(outcome=outcome, treatment=treated, probabilities=chances, person=person)
        found.append(effect.values[0])
    assert abs(np.mean(found) - 0.2) < 4 * np.std(found) / np.sqrt(len(found))


def test_whatever_cannot_be_fitted_is_refused():
    known = {"outcome": [1.0, 2.0, 3.0], "treatment": [0, 1, 0], "person": [1, 2, 3]}
    with pytest.raises(ValueError, match="`probabilities` positive"):
        excursion_effect(**known, probabilities=[[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]])
    with pytest.raises(ValueError, match="2 people are too few for 2 coefficients"):
        excursion_effect(**known | {"person": [1, 2, 2]}, probabilities=[[0.5, 0.5]] * 3)
    with pytest.raises(ValueError, match="finite"):
        excursion_effect(**known | {"outcome": [1.0, np.nan, 3.0]}, probabilities=[[0.5, 0.5]] * 3)


def test_a_table_without_a_row_is_refused_in_a_sentence():
    for estimate in (earned, arm_difference):
        with pytest.raises(ValueError, match="0 people are too few"):
            estimate(trial(), table(count=22).iloc[:0].assign(arm=[], episode=[], step=[]))


def table(count=4000, seed=0):
    """Decisions of 40 people with three actions, by probabilities that depend on the state; some are not available."""
    generator, names = np.random.default_rng(seed), trial().actions
    state = generator.choice(2, count)
    chances = np.array([[0.6, 0.2, 0.2], [0.2, 0.5, 0.3]])[state]
    chances[::7] = [1.0, 0.0, 0.0]  # a cap leaves nothing else
    drawn = np.array([generator.choice(3, p=row) for row in chances])
    reward = np.array([0.2, 0.5, 0.3])[drawn] + 0.2 * state
    chances[::11], drawn[::11] = np.nan, -1
    found = {f"probability_{name}": chances[:, place] for place, name in enumerate(names)}
    return pandas.DataFrame(
        {
            "person": [f"p{place % 40}" for place in range(count)],
            "episode": np.arange(count) // 2,
            "step": np.arange(count) % 2,
            "state": np.array(trial().states)[state],
            "drawn": [None if place < 0 else names[place] for place in drawn],
            "reward": reward + generator.normal(scale=0.1, size=count),
            "withdrawn": False,
            **found,
        }
    )


@pytest.mark.parametrize(("action", "effect"), [("reminder", 0.3), ("call", 0.1)])
def test_an_action_is_compared_where_both_could_be_drawn(action, effect):
    found = treatment_effect(trial(), table(), action, by="state")
    low, high = found.interval(0.999).T
    assert len(found.names) == 2
    assert (low < effect).all()
    assert (effect < high).all()
    assert (high - low < 0.1).all()


def test_a_weekly_budget_lowers_the_fixed_probabilities_to_what_the_control_group_plays():
    budget = "decisions_per_week = 14\nmean_per_week = { reminder = 6 }\n\n[context]"
    limited = Trial.parse(
        EXAMPLE.replace("[context]", budget).replace("floor = 0.2", "floor = 0.2\n[people]\ncontrol = 0.999999")
    )
    fixed = fixed_probabilities(limited, np.ones(2, dtype=bool))
    np.testing.assert_allclose(fixed, [8 / 14, 6 / 14])
    desk = Desk(limited, Database(":memory:"))
    for day in range(7):
        opened = json.loads(desk.call("open", {"person": "p1", "occasion": f"{day}", "context": "alone"}).text)
        assert opened["source"] == "control"
        for step in range(2):
            desk.call("decide", {"episode": opened["episode"], "step": step, "state": "took it"})
        desk.call("close", {"episode": opened["episode"]})
    played = decisions(limited, desk.store.read())[["probability_nothing", "probability_reminder"]]
    np.testing.assert_allclose(played, np.tile(fixed, (14, 1)))
    np.testing.assert_allclose(fixed_probabilities(limited, np.array([[True, False]])), [[1.0, 0.0]])


def test_the_fixed_probabilities_are_valued_within_the_rules():
    """Where a cap leaves one action, or nothing is drawn, the fixed policy does the same: the weight is 1."""
    frame = table()
    weights = fixed_weights(trial(), frame)
    both = (np.arange(4000) % 77 == 0) & (np.arange(4000) % 2 == 0)
    assert (weights[both] == 1.0).all()
    assert weights[1::2].mean() == pytest.approx(1.0, abs=0.05)
    assert weights[0::2].mean() == pytest.approx(1.0, abs=0.05)
    reverse = frame.sample(frac=1.0, random_state=0)
    np.testing.assert_array_equal(fixed_weights(trial(), reverse), weights[reverse.index])
    found = earned(trial(), frame)
    fixed = 0.5 * 0.2 + 0.3 * 0.5 + 0.2 * 0.3 + 0.1  # where all can be drawn, in the mean of both states
    low, high = found.interval(0.999)[0]
    assert low < 6 / 7 * fixed + 1 / 7 * 0.3 < high


@pytest.mark.slow
def test_intervals_cover_with_few_people_and_a_policy_that_learns_from_all_of_them():
    """Student's with n - p degrees of freedom covers 91 % of the differences between such small arms."""
    for name, each in covered(SHAPES["few people"], seed=0, trials=400).items():
        assert sum(each) >= scipy.stats.binom.ppf(1e-3, len(each), 0.95), name
