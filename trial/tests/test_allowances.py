"""Without a network for days, with weekly limits: an allowance keeps them on every path, and nobody else can use it."""

import itertools
import json

import numpy as np
import pytest

from omg_trial.client import Client, UnreachableError
from omg_trial.client import outbox as kept
from omg_trial.contract import Refusal
from omg_trial.decisions import grant_allowance
from omg_trial.desk import Desk
from omg_trial.people.participants import Participant
from omg_trial.replay import replay
from omg_trial.rules import moment
from omg_trial.verify import verify
from omg_trial.watching.incidents import close_overdue
from trial.tests.network import ADDRESS, LOST, wired
from trial.tests.trials import TEXT, Clock, desk, person, trial

LIMITED = TEXT.replace("horizon = 4", "horizon = 6\nallowances = true").replace(
    "[context.columns]",
    "most_per_week = { call = 2 }\nmean_per_week = { reminder = 3.0 }\ndecisions_per_week = 12\n\n[context.columns]",
)
STATES = ("took it", "missed it")


def opened(at, name, **more):
    return json.loads(at.call("open", {"person": name, "context": person(1), **more}).text)


def test_the_limits_hold_on_every_path():
    """Of 64 paths of states, for some people: the hard limit, and the budget by the sum of probabilities."""
    at = desk(text=LIMITED)
    seen = []
    for number in range(80):  # whose draws differ in every run
        told = opened(at, f"p{number}")
        policy = np.array(told["policy"])
        assert policy.sum(axis=2) == pytest.approx(1.0)
        for path in itertools.product(range(2), repeat=6):
            calls = sum(told["drawn"][step][state] == "call" for step, state in enumerate(path))
            spent = np.cumsum([policy[step, state, 1] for step, state in enumerate(path)])
            assert calls <= 2
            assert (spent <= 3.0 * np.arange(1, 7) / 12 + 1e-9).all()
            seen.append(calls)
    assert max(seen) == 2
    assert (np.array(told["policy"])[:, :, 1] >= 0.1 - 1e-9).all()  # the floor


def test_an_episode_is_not_overdue_while_its_allowance_holds():
    """What the app does meanwhile must be kept: it counts in the week, and the next allowance is the smaller for it."""
    clock = Clock()
    at = desk("[watch]\nclose_after_hours = 24\n", clock=clock, text=LIMITED)
    told = opened(at, "p1")
    proof = {"device_time": clock.now.isoformat(), "allowance": told["allowance"]["signature"]}
    clock.forward(days=6)
    close_overdue(at)
    at.call(
        "decide", {"episode": told["episode"], "step": 0, "state": "took it", "action": told["drawn"][0][0], **proof}
    )
    assert len(at.state.people["p1"].accounts[0].taken) == 1
    clock.forward(days=2)  # the week has ended
    close_overdue(at)
    assert not at.state.open


def test_what_a_week_has_saved_may_be_spent_in_an_allowance():
    """Every step pays a twelfth of 3 into the account: three steps at 0.1 leave 0.7 to the fourth."""
    at = desk(text=LIMITED)
    policy = np.tile([0.8, 0.1, 0.1], (6, 2, 1))
    policy[3:] = [0.3, 0.6, 0.1]
    someone = Participant(arm="learning", zone="Europe/Berlin", enrolled="")
    made = np.array(grant_allowance(at.inputs(), someone, "p1", "#1", policy).policy)
    np.testing.assert_allclose(made[:, :, 1].T, 2 * [[0.1, 0.1, 0.1, 0.6, 0.35, 0.25]], atol=1e-12)


def test_what_was_done_without_a_network_has_its_exact_probability(tmp_path, monkeypatch):
    clock = Clock()
    at = desk(text=LIMITED, clock=clock)
    monkeypatch.setattr(kept, "_now", clock)
    with wired(tmp_path, at=at) as (wire, token):
        with Client(ADDRESS, token, patience=0.05, transport=wire) as client:
            told = client.open("p1", person(1))
            done = []
            for step in range(4):  # a decision a day
                wire.faults.append(LOST)
                clock.forward(days=1)
                done.append(client.decide(told["episode"], step, STATES[step % 2]))
            clock.forward(days=4)  # the next week
            wire.faults.append(LOST)
            with pytest.raises(UnreachableError):
                client.decide(told["episode"], 4, "took it")
            assert client.send() == 4
            assert client.refused() == []
        events = list(at.store.read())
    decided = [event.body for event in events if event.kind == "decided"]
    assert [each["probability"] for each in decided] == [each["probability"] for each in done]
    assert {each["event"] for each in done} == {None}
    [week] = at.state.people["p1"].accounts
    assert (week.week, week.drawn, len(week.taken)) == ("2026-W45", 4, 4)
    assert replay(trial(text=LIMITED), events).differences == []
    found = verify([event.row for event in events], keys={"secret": at.store.keys.secret.encode()})
    assert (found.problems, found.draws) == ([], 4)


def test_an_allowance_is_signed():
    at = desk(text=LIMITED)
    told = opened(at, "p1")
    other = opened(at, "p2")["allowance"]["signature"]
    acted = {"episode": told["episode"], "step": 0, "state": "took it", "action": told["drawn"][0][0]}
    acted["device_time"] = at.clock().isoformat()
    for signature in (None, other, "0" * 64):
        with pytest.raises(Refusal, match="`allowance`: send the signature") as refused:
            at.call("decide", {**acted, "allowance": signature})
        assert refused.value.status == 409
    made = json.loads(at.call("decide", {**acted, "allowance": told["allowance"]["signature"]}).text)
    assert made["probability"] == told["policy"][0][0][told["actions"].index(made["action"])]
    # With a network the same rows decide, and reopening tells the same.
    step = {"episode": told["episode"], "step": 1, "state": "missed it"}
    assert json.loads(at.call("decide", step).text)["action"] == told["drawn"][1][1]
    assert moment(told["allowance"]["until"]).isoformat() == "2026-11-08T23:00:00+00:00"  # Monday in Berlin


def test_an_action_that_is_paused_for_a_step_leaves_the_limits_of_the_others():
    """Other actions are then drawn than the allowance has counted; what it grants later must not come on top."""
    text = LIMITED.replace("call = 2", "call = 1").replace("mean_per_week = { reminder = 3.0 }\n", "")
    text = text.replace("decisions_per_week = 12\n", "").replace(
        '"nothing", "reminder", "call"', '"reminder", "call", "nothing"'
    )
    at, had = desk(text=text), []
    for number in range(60):
        episode = opened(at, f"p{number}")["episode"]
        at.call("pause", {"action": "reminder", "cause": "wrong texts"})
        at.call("decide", {"episode": episode, "step": 0, "state": "took it"})
        at.call("resume", {"action": "reminder", "cause": "mended"})
        for step in range(1, 6):
            at.call("decide", {"episode": episode, "step": step, "state": "took it"})
        had.append([step.choice.action for step in at.state.episodes[episode].steps()].count(1))
    assert (min(had), max(had)) == (0, 1)
    assert replay(at.trial, at.store.read()).differences == []


def test_a_step_to_which_an_allowance_leaves_one_action_is_no_decision():
    """As without one: available is a step at which two actions are open, and each of these has the floor."""
    both = LIMITED.replace("{ call = 2 }", "{ call = 1, reminder = 1 }").replace("week = 12", "week = 6")
    both = both.replace("mean_per_week = { reminder = 3.0 }\n", "")
    at = desk(text=both)
    for number in range(20):
        episode = opened(at, f"p{number}")["episode"]
        for step in range(6):
            at.call("decide", {"episode": episode, "step": step, "state": STATES[step % 2]})
    found = [event.body for event in at.store.read() if event.kind == "decided"]
    for each in found:
        assert each["available"] == (np.count_nonzero(each["probabilities"]) > 1)
        assert each["closed"] == np.flatnonzero(np.array(each["probabilities"]) == 0.0).tolist()
    assert {(len(each["closed"]), each["available"]) for each in found} == {(0, True), (1, True), (2, False)}


@pytest.mark.parametrize(
    "extra", ['[window]\nbegin = "08:00"\nend = "21:00"\noutside = "nothing"\n', '[learning]\nreplan = "step"\n']
)
def test_what_may_change_later_is_not_allowed_ahead(extra):
    told = opened(desk(extra, text=LIMITED), "p1")
    assert told["allowance"] is told["drawn"] is None


@pytest.mark.parametrize("days", range(7))
def test_an_allowance_ends_with_the_week_in_which_it_was_made(days):
    """On every day of the week, as the next has budgets and limits of its own."""
    clock = Clock()
    clock.forward(days=days)
    until = moment(opened(desk(text=LIMITED, clock=clock), "p1")["allowance"]["until"])
    assert until.isoformat() == "2026-11-08T23:00:00+00:00"  # Monday in Berlin


def test_an_allowance_is_for_the_limits_of_one_week_whatever_zone_or_clock_say():
    """On Monday in Tokyo the person goes to Honolulu, or the clock is set back: that week has had its calls."""
    text = LIMITED.replace("call = 2", "call = 1").replace("mean_per_week = { reminder = 3.0 }\n", "")
    text = text.replace("decisions_per_week = 12\n", "").replace(
        "reminder = 0.3, call = 0.2", "reminder = 0, call = 0.5"
    )
    text += "[people]\ncontrol = 1.0\n"  # every other draw is a call
    for moved in (True, False):
        clock = Clock()
        at, names = desk(text=text, clock=clock), [f"p{number}" for number in range(12)]

        def decide(at, episode, steps):
            for step in range(steps):
                at.call("decide", {"episode": episode, "step": step, "state": "took it"})

        for name in names:
            at.call("enrol", {"person": name, "zone": "Asia/Tokyo"})
            episode = opened(at, name)["episode"]
            decide(at, episode, 6)
            at.call("close", {"episode": episode})
        clock.forward(days=6, hours=7)  # Monday, 1:00 in Tokyo
        told = {name: opened(at, name, occasion="monday") for name in names}
        if moved:
            for name in names:
                at.call("enrol", {"person": name, "zone": "Pacific/Honolulu"})
        else:
            clock.forward(hours=-2)
            at = Desk(at.trial, at.store, clock=clock, correct_clock=True)
        for name in names:
            decide(at, told[name]["episode"], 5)
            # What the phone has done by the allowance has the probability with which it was drawn.
            action = told[name]["drawn"][5][0]
            proof = {"allowance": told[name]["allowance"]["signature"], "device_time": clock().isoformat()}
            acted = {"episode": told[name]["episode"], "step": 5, "state": "took it", "action": action, **proof}
            made = json.loads(at.call("decide", acted).text)
            assert made["probability"] == told[name]["policy"][5][0][told[name]["actions"].index(action)]
            again = opened(at, name, occasion="monday")
            assert (again["allowance"], again["drawn"]) == (None, None)
            [week] = at.state.people[name].accounts
            assert week.taken[:11].count(2) <= 1
        assert replay(at.trial, at.store.read()).differences == []
