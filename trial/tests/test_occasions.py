"""A decision point exists once: nobody can open, look, close and open again until the draw is the wished one."""

import json

import pytest

from omg_trial.contract import Refusal
from omg_trial.desk import Desk
from omg_trial.export import decisions
from omg_trial.replay import replay
from omg_trial.watching.checks import findings
from omg_trial.watching.process import Process
from omg_trial.watching.view import TrialView
from trial.tests.trials import TEXT, Clock, desk, person

ONLINE = TEXT.replace("offline = true\n", "")


def opened(at, name="p1", occasion=None, key=None):
    body = {"person": name, "context": person(1)} | ({} if occasion is None else {"occasion": occasion})
    return json.loads(at.call("open", body, key).text)


def test_opening_again_until_the_draw_is_as_wished_is_in_vain():
    """Two hundred attempts: every one has the draws of the first."""
    at = desk()
    draws = []
    for _ in range(200):
        answer = opened(at)
        draws.append(answer["drawn"])
        at.call("close", {"episode": answer["episode"]})
    assert all(each == draws[0] for each in draws)
    assert len({json.dumps(opened(at, f"q{number}")["drawn"]) for number in range(20)}) > 5


def test_an_occasion_is_opened_once_for_ever():
    at = desk()
    first = opened(at, occasion="2026-11-02")
    again = opened(at, occasion="2026-11-02")
    assert {**again, "event": None} == {**first, "event": None}
    with pytest.raises(Refusal, match="has episode 3 under way") as refused:
        opened(at, occasion="2026-11-03")
    assert refused.value.status == 409
    at.call("close", {"episode": first["episode"]})
    with pytest.raises(Refusal, match="the occasion of this person is episode 3, which is closed") as refused:
        opened(at, occasion="2026-11-02")
    assert refused.value.status == 409
    other = opened(at, occasion="2026-11-03")
    assert other["drawn"] != first["drawn"] or other["episode"] != first["episode"]
    assert opened(at, "p2", "2026-11-02")["episode"] != first["episode"]
    later = Desk(at.trial, at.store, clock=Clock())
    with pytest.raises(Refusal, match="which is closed"):
        opened(later, occasion="2026-11-02")


def test_another_context_for_the_same_occasion_is_refused():
    at = desk()
    opened(at, occasion="one")
    with pytest.raises(Refusal, match="`context`: the occasion was opened with another one"):
        at.call("open", {"person": "p1", "occasion": "one", "context": person(2)})


def test_a_draw_depends_on_the_occasion_and_not_on_when_it_was_opened():
    """Two logs with one secret: the same person and occasion have the same numbers, whatever happened before."""
    found = []
    for busy in (False, True):
        at = desk()
        at.state.secret = "the same"
        for number in range(5 if busy else 0):
            opened(at, f"q{number}")
        found.append(opened(at, occasion="2026-11-02")["drawn"])
    assert found[0] == found[1]


def test_an_occasion_without_a_name_is_used_up_by_its_first_decision():
    """What was decided is in the log for all to see; the next episode is another decision point."""
    at = desk()
    names = []
    for _ in range(3):
        episode = opened(at)["episode"]
        at.call("decide", {"episode": episode, "step": 0, "state": "took it"})
        at.call("close", {"episode": episode})
        names.append(at.state.episodes[episode].occasion)
    assert len(set(names)) == 3


@pytest.mark.parametrize("wrong", ["", "#1", "a b", "x" * 101, 3])
def test_a_wrong_name_of_an_occasion_is_refused(wrong):
    with pytest.raises(Refusal, match="`occasion`"):
        desk().call("open", {"person": "p1", "occasion": wrong, "context": person(1)})


def test_the_draws_are_told_only_to_an_app_that_must_act_offline():
    assert opened(desk(text=ONLINE))["drawn"] is None
    assert opened(desk())["drawn"] is not None


def test_a_replay_is_equal_and_the_export_names_occasions():
    at = desk()
    for name in ("p1", "p2"):
        for occasion in ("monday", None):
            episode = opened(at, name, occasion)["episode"]
            opened(at, name, occasion) if occasion else None
            at.call("decide", {"episode": episode, "step": 0, "state": "took it"})
            at.call("close", {"episode": episode})
    assert replay(at.trial, at.store.read()).differences == []
    assert decisions(at.trial, at.store.read())["occasion"].tolist() == 2 * ["monday", "#1"]


def test_openings_that_come_to_nothing_turn_a_check():
    at, clock = desk(), Clock()
    for _ in range(6):
        at.call("close", {"episode": opened(at)["episode"]})
    view = TrialView.of(at.trial, at.state, clock(), Process(clock))
    [found] = [each for each in findings(view) if each.check == "abandoned openings"]
    assert found.severity == "yellow"
    assert "6 of 6" in found.message
