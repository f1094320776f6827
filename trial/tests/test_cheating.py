"""An app that wants to choose: by the device's time, by who is available, by closing."""

import json
from unittest import mock

import pytest

from omg_trial.contract import Refusal
from omg_trial.export import decisions
from omg_trial.replay import replay
from omg_trial.verify import verify
from omg_trial.watching.checks import findings
from omg_trial.watching.process import Process
from omg_trial.watching.view import TrialView
from trial.tests.test_allowances import LIMITED
from trial.tests.trials import TEXT, Clock, desk, person

ONLINE = TEXT.replace("offline = true\n", "")
RESTS = TEXT.replace("[context.columns]", 'unavailable = "nothing"\n\n[context.columns]', 1)


def opened(at, name="p1", **more):
    return json.loads(at.call("open", {"person": name, "context": person(1), **more}).text)


def decided(at, episode, step=0, **more):
    return json.loads(at.call("decide", {"episode": episode, "step": step, "state": "took it", **more}).text)


def sound(at):
    """The log replays, and the independent verifier finds nothing."""
    assert replay(at.trial, at.store.read()).differences == []
    keys = {"secret": at.store.keys.secret.encode()}
    assert verify((event.row for event in at.store.read()), keys=keys).problems == []


def drawn(at, clock):
    view = TrialView.of(at.trial, at.state, clock(), Process(clock))
    return next(each for each in findings(view) if each.check == "draws")


@pytest.mark.parametrize("text", [LIMITED, TEXT + "[actions.most_per_week]\ncall = 2\n"])
def test_no_week_before_the_opening_has_room_for_what_was_done_since(text):
    """An app says of everything that it was done long ago: the week of the opening has it all, and its limit holds."""
    at, calls = desk(text=text), 0
    for opening in range(6):
        told = opened(at)
        proof = {} if told["allowance"] is None else {"allowance": told["allowance"]["signature"]}
        for step, row in enumerate(told["policy"]):
            action = told["actions"][max(range(3), key=lambda each, row=row: row[0][each])]
            action = action if told["drawn"] is None else told["drawn"][step][0]
            then = f"2025-{opening + 1:02}-{4 * step + 1:02}T09:00:00+00:00"
            made = decided(at, told["episode"], step, action=action, device_time=then, **proof)
            calls += made["action"] == "call" and made["probability"] is not None
        at.call("close", {"episode": told["episode"]})
    [account] = at.state.people["p1"].accounts
    assert account.week == "2026-W45"
    assert calls <= 2
    sound(at)


def test_what_was_done_before_midnight_of_sunday_counts_in_the_week_before():
    clock = Clock()  # a Monday
    at = desk(clock=clock)
    told = opened(at)
    clock.forward(days=7)
    decided(at, told["episode"], 0, action=told["drawn"][0][0], device_time="2026-11-08T23:59:00+01:00")
    decided(at, told["episode"], 1, action=told["drawn"][1][0], device_time="2026-11-30T09:00:00+01:00")
    assert [each.week for each in at.state.people["p1"].accounts] == ["2026-W45", "2026-W46"]
    sound(at)


def test_an_app_with_a_network_does_not_act_by_itself():
    """It could go on after a stop, and choose."""
    at = desk(text=ONLINE)
    episode = opened(at)["episode"]
    at.call("stop", {"cause": "harm"})
    with pytest.raises(Refusal, match="`action`: no app of this trial acts without a network") as refused:
        decided(at, episode, action="reminder")
    assert refused.value.status == 422


def unavailable(at, told):
    """Whoever is to be called is not available."""
    for step in range(4):
        decided(at, told["episode"], step, available=told["drawn"][step][0] != "call")
    at.call("close", {"episode": told["episode"]})


def close_early(at, told):
    """As soon as the next draw is a call, the episode is over."""
    for step in range(4):
        if told["drawn"][step][0] == "call":
            break
        decided(at, told["episode"], step)
    at.call("close", {"episode": told["episode"]})


def open_another(at, told):
    """A call is never made: the app closes, and opens under another name."""
    while told["drawn"][0][0] == "call":
        at.call("close", {"episode": told["episode"]})
        told = opened(at, at.state.episodes[told["episode"]].person, occasion=f"again-{told['episode']}")
    decided(at, told["episode"])
    at.call("close", {"episode": told["episode"]})


def honest(at, told):
    for step in range(4):
        decided(at, told["episode"], step)
    at.call("close", {"episode": told["episode"]})


@pytest.mark.parametrize(
    ("cheat", "people", "colour"),
    [(honest, 100, "green"), (unavailable, 100, "red"), (close_early, 100, "red"), (open_another, 250, "red")],
)
def test_whoever_lets_the_draws_choose_what_is_decided_is_seen(cheat, people, colour):
    clock = Clock()
    at = desk("[people]\ncontrol = 1.0\n", text=RESTS, clock=clock)
    for number in range(people):
        cheat(at, opened(at, f"p{number}"))
    found = drawn(at, clock)
    assert found.severity == colour, found.message
    sound(at)


def test_the_export_counts_the_openings_that_came_to_nothing():
    at = desk()
    for occasion in ("a", "b"):
        at.call("close", {"episode": opened(at, occasion=occasion)["episode"]})
    for occasion in ("c", "d"):
        episode = opened(at, occasion=occasion)["episode"]
        decided(at, episode)
        at.call("close", {"episode": episode})
    decided(at, opened(at, "p2")["episode"])
    table = decisions(at.trial, at.store.read())
    assert dict(zip(table["occasion"], table["abandoned"], strict=True)) == {"c": 2, "d": 0, "#0": 0}


@pytest.mark.parametrize("call", ["pause", "stop", "withdraw"])
def test_a_cause_does_not_name_the_person(call):
    at = desk()
    opened(at, "anna")
    with pytest.raises(Refusal, match="without the person's name"):
        at.call(call, {"person": "anna", "cause": "Anna is ill"})
    at.call(call, {"person": "anna", "cause": "ill"})


def test_a_zone_is_the_same_on_every_machine():
    for name in ("localtime", "posixrules"):
        with pytest.raises(Refusal, match="give a time zone such as"):
            desk().call("enrol", {"person": "p1", "zone": name})


def test_a_zone_is_not_refused_for_good_because_no_file_can_be_opened_now(monkeypatch):
    at = desk()
    monkeypatch.setattr("zoneinfo.ZoneInfo", mock.Mock(side_effect=OSError("too many open files")))
    at.call("enrol", {"person": "p1", "zone": "Asia/Tokyo"})
