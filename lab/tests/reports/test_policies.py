"""The policies of a report: the contexts that tell most, pictures that say what the numbers say, and who differs."""

import dataclasses
import re

import numpy as np
import pytest

from lab.tests.reports.test_page import shown
from lab.tests.studies.examples import results_of
from omg_cmdp.runs.advice import Advice
from omg_lab.reports.policies import (
    chosen,
    described,
    distance,
    policies_table,
    shown_policies,
)
from omg_lab.reports.scenarios import scenarios
from omg_lab.shown import Names

NAMES = Names(("mild", "severe"), ("wait", "act"), ("age",))


def advice(*shares, context=0.5, sure=1.0, visits=1.0):
    """Return advice for one step and two states: the shares of action 0."""
    policy = np.array([[[share, 1.0 - share] for share in shares]])
    best = policy.argmax(axis=2)
    likely = np.broadcast_to(visits, best.shape).astype(float)
    numbers = {"lead": np.full(best.shape, 0.25), "sure": np.full(best.shape, sure), "visits": likely}
    place = {"context": context, "steps": np.array([0]), "states": np.arange(2)}
    return Advice(**place, policy=policy, best=best, runner_up=1 - best, **numbers)


def test_policies_differ_in_the_share_of_decisions_that_do():
    assert distance(advice(1.0, 1.0), advice(1.0, 1.0)) == 0.0
    assert distance(advice(1.0, 1.0), advice(0.0, 0.0)) == 1.0
    assert distance(advice(1.0, 1.0), advice(1.0, 0.5)) == 0.25
    assert distance(advice(1.0, 1.0, visits=[[3.0, 1.0]]), advice(0.0, 1.0)) == 0.75
    unknown = dataclasses.replace(advice(1.0, 1.0), visits=None)
    assert distance(unknown, advice(0.0, 1.0)) == 0.5


def test_of_many_contexts_those_are_shown_where_agents_differ_most():
    own = [advice(share, share, context=i) for i, share in enumerate((0.0, 0.5, 0.9, 1.0, 0.2))]
    rival = [advice(share, share, context=i) for i, share in enumerate((0.3, 0.5, 0.9, 0.5, 0.3))]
    shown = chosen({"omg": own, "greedy": rival})
    assert list(shown) == ["A", "B", "C"]
    assert [each["omg"].context for each in shown.values()] == [0, 3, 4]
    assert all(each["greedy"].context == each["omg"].context for each in shown.values())


def test_alone_an_agent_is_shown_in_the_first_contexts():
    own = [advice(share, share, context=i) for i, share in enumerate((0.0, 0.6, 0.9, 1.0))]
    assert [each["omg"].context for each in chosen({"omg": own}).values()] == [0, 1, 2]


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_contexts_are_all_shown_in_their_order(count):
    own = [advice(0.5, 0.5, context=i) for i in range(count)]
    found = chosen({"omg": own, "greedy": own})
    assert [each["omg"].context for each in found.values()] == list(range(count))


@pytest.mark.parametrize(
    ("context", "features", "text"),
    [
        (np.array([0.5, -1.0]), (), "0.500, −1.00"),
        (0.4, ("success rate",), "success rate 0.400"),
        (3, (), "3"),
        (("b", 2), (), "b, 2"),
        (
            np.full(40, 0.5),
            [f"feature{i}" for i in range(40)],
            ", ".join(f"feature{i} 0.500" for i in range(12)) + ", …",
        ),
    ],
)
def test_contexts_are_described_by_their_features(context, features, text):
    assert described(context, features) == text


def test_the_table_says_what_is_next_how_sure_and_who_differs():
    own, same, other = advice(0.9, 0.2), advice(0.6, 0.4), advice(0.9, 0.8)
    found = chosen({"omg": [own], "greedy": [same], "uniform": [other]})
    table = policies_table("x", "omg", found, NAMES)
    assert shown(table)["state"] == ["mild", "severe"]
    assert shown(table)["best action"] == ["wait", "act"]
    assert shown(table)["next best"] == ["act", "wait"]
    assert shown(table)["probability"] == ["90 %", "80 %"]
    assert shown(table)["lead"] == ["0.250", "0.250"]
    assert shown(table)["sure"] == ["100 %", "100 %"]
    assert shown(table)["agents that differ"] == ["–", "uniform"]
    assert table.rows[1]["other_agents"] == "uniform"


@pytest.fixture(scope="module")
def kept():
    results = results_of(episodes=40, seeds=1)
    scenario = next(each for each in scenarios(results) if each.world == "treatment")
    return scenario, results, shown_policies(scenario, results.policies)


def test_a_report_shows_three_policies_of_the_first_seed(kept):
    _, results, (figures, (table,), reading) = kept
    assert [figure.name for figure in figures] == [f"treatment--iid-policy-{letter}" for letter in "abc"]
    assert "after 40 episodes (seed 0)" in reading
    assert set(shown(table)["state"]) == {"mild", "moderate", "severe"}
    assert set(shown(table)["best action"]) <= {"wait", "drug A", "drug B"}
    assert all(
        re.match(r"The context is age .*, weight .*, kidneys .*, heart .*\. In \d+ % of", f.caption) for f in figures
    )
    assert all("uniform in " in figure.caption for figure in figures)
    picture = figures[0].svg()
    assert all(f">{name}<" in picture for name in ("mild", "moderate", "severe", "wait", "drug A", "drug B"))
    advised = results.policies["treatment--iid--omg--0"].advice
    letters = dict.fromkeys(row["context"] for row in table.rows)
    features = results.policies["treatment--iid--omg--0"].names.features
    assert set(letters) <= {described(each.context, features) for each in advised}
    assert len(letters) == 3


def test_the_policies_kept_are_those_of_the_agent_at_its_end():
    """The decoy's OMG plays its own best action nearly always; uniform play is uniform."""
    results = results_of(episodes=40, seeds=1)
    for run, (kept, _) in results.policies.items():
        assert len(kept) == 6
        for each in kept:
            np.testing.assert_allclose(each.policy.sum(axis=2), 1.0, atol=5e-6)
            if "uniform" in run:
                assert np.ptp(each.policy) < 1e-5
            if "greedy" in run:
                np.testing.assert_array_equal(each.policy.argmax(axis=2), each.best)


def test_states_and_actions_without_names_have_whole_numbers():
    table = policies_table("x", "omg", chosen({"omg": [advice(0.9, 0.2)]}), Names((), (), ()))
    assert shown(table)["state"] == ["0", "1"]
    assert shown(table)["best action"] == ["0", "1"]
    assert shown(table)["step"] == ["0", "0"]


def test_nothing_is_shown_where_no_state_has_a_choice(kept):
    scenario, results, _ = kept
    bare = {run: each._replace(advice=[]) for run, each in results.policies.items()}
    assert shown_policies(scenario, bare) == ([], [], "")
