"""The failures of the guide's table that no other test shows, and that the table is whole."""

import contextlib
import datetime
import json
import math
import re
import sqlite3
import threading
from pathlib import Path

import httpx
import pytest

from omg_trial import decisions, learning
from omg_trial.contract import Refusal
from omg_trial.keys import ring
from omg_trial.log.database import Database, StoreError
from omg_trial.log.events import BrokenChainError
from omg_trial.replay import replay
from omg_trial.service import MOST_WAITING, Busy, Service
from trial.tests.network import ADDRESS, wired
from trial.tests.trials import TEXT, Clock, Trialist, desk, person

ROOT = Path(__file__).parent.parent.parent
WINDOW = '[window]\nbegin = "08:00"\nend = "20:00"\noutside = "nothing"\n'
CALLS = "[context.columns]", "most_per_week = { call = 1 }\n[context.columns]"


def opened(at, name="p1", context=None):
    return json.loads(at.call("open", {"person": name, "context": context or person(1)}).text)


def decided(at, episode, step=0, state="took it", **more):
    return json.loads(at.call("decide", {"episode": episode, "step": step, "state": state, **more}).text)


# The app does not call, or another path.


def test_a_step_that_is_never_asked_for_leaves_a_gap_and_nothing_else():
    """No decision is made up; what was seen before the gap is learned."""
    at = desk()
    episode = opened(at)["episode"]
    decided(at, episode, 0)
    decided(at, episode, 2)
    at.call("report", {"episode": episode, "step": 0, "reward": 1.0, "next_state": "took it"})
    at.call("close", {"episode": episode})
    assert sorted(at.state.episodes[episode].choices) == [0, 2]
    [example] = at.state.dataset()[0]
    assert len(example.actions) == 1


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/episodes"), ("POST", "/action"), ("POST", "/v1/episodes/x/decisions")]
)
def test_a_wrong_path_changes_nothing(tmp_path, method, path):
    at = desk()
    with wired(tmp_path, at=at) as (wire, token):
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "k"}
        with httpx.Client(base_url=ADDRESS, transport=wire) as client:
            answer = client.request(method, path, headers=headers, json={"step": 0, "state": "took it"})
    assert answer.status_code in (404, 405)
    assert "error" in answer.json()
    assert [event.kind for event in at.store.read()] == ["founded", "started"]


# App and service disagree.


def test_who_is_under_way_is_told_to_an_app_that_thinks_otherwise():
    at = desk()
    first = opened(at)["episode"]
    with pytest.raises(Refusal, match=f"has episode {first} under way") as refused:
        opened(at)
    assert refused.value.status == 409
    at.call("close", {"episode": first})
    with pytest.raises(Refusal, match="is closed"):
        decided(at, first)


def test_an_app_restored_from_a_backup_gets_the_decisions_that_were_made():
    at = desk()
    episode = opened(at)["episode"]
    before = [decided(at, episode, step)["action"] for step in range(3)]
    assert [decided(at, episode, step)["action"] for step in range(3)] == before
    assert [event.kind for event in at.store.read()].count("decided") == 3


# Contexts and rewards.


def test_a_missing_column_is_missing_and_one_far_outside_counts_as_the_end_of_its_range():
    at = desk()
    policies = [opened(at, f"p{age}", {"age": age, "lives": "alone"})["policy"] for age in (90, 10**6)]
    assert policies[0] == policies[1]
    assert opened(at, "q", {"lives": "alone"})["source"] == opened(at, "r", {"age": 50})["source"] == "plan"


@pytest.mark.parametrize(("rule", "learned"), [("", None), ("[learning]\nmissing_reward = 0.25\n", 0.25)])
def test_a_reward_that_never_comes_is_what_the_file_says(rule, learned):
    at = desk(rule)
    episode = opened(at)["episode"]
    decided(at, episode)
    at.call("report", {"episode": episode, "step": 0, "next_state": "missed it"})
    at.call("close", {"episode": episode, "cause": "dropped out"})
    [example] = at.state.dataset()[0]
    assert (example.states, example.rewards) == ((0, 1), (learned,))


# Resources.


@pytest.mark.parametrize("kind", [MemoryError, RuntimeError, KeyError])
def test_a_plan_that_runs_out_of_memory_is_replaced_by_the_fixed_policy(monkeypatch, kind):
    """So is one that fails in any other way: there is always an answer."""

    def failing(*_):
        raise kind

    at, cause = desk(), f"no certified plan: {kind.__name__}"
    monkeypatch.setattr(decisions, "make_plan", failing)
    answer = opened(at)
    assert (answer["source"], answer["cause"]) == ("fixed", cause)
    told = decided(at, answer["episode"])
    assert told["probability"] == {"nothing": 0.5, "reminder": 0.3, "call": 0.2}[told["action"]]
    assert told["fallback"] == {"source": "fixed", "cause": cause, "rules": []}
    assert replay(at.trial, at.store.read()).fallbacks == {f"fixed ({cause})": 1}


@pytest.mark.parametrize("certificate", [math.inf, math.nan])
def test_a_plan_of_which_nothing_is_proven_is_not_used(monkeypatch, certificate):
    at = desk()
    decide = type(at.agent).decide
    monkeypatch.setattr(type(at.agent), "decide", lambda *given: decide(*given)._replace(certificate=certificate))
    answer = opened(at)
    assert (answer["source"], answer["cause"]) == ("fixed", "no certified plan: UncertifiedPlanError")


def test_a_fallback_is_a_warning_that_names_no_person(monkeypatch):
    at, call = desk(), ("open", {"person": "somebody", "context": person(1)})
    monkeypatch.setattr(decisions, "make_plan", lambda *_: 1 / 0)
    told = at.call(*call, "one")
    episode = json.loads(told.text)["episode"]
    assert told.warning == f"episode {episode}: fixed (no certified plan: ZeroDivisionError)"
    assert at.call(*call, "one").warning is None  # it was said when the episode was opened
    assert at.call("decide", {"episode": episode, "step": 0, "state": "took it"}).warning is None
    monkeypatch.undo()
    assert at.call("open", {"person": "other", "context": person(1)}).warning is None


def test_decisions_do_not_wait_for_learning_and_say_which_version_they_are_of(monkeypatch):
    at, may_end, learn = desk(), threading.Event(), learning.Trainer.learn
    Trialist(at, seed=0).play(3)
    version = at.state.version.number
    monkeypatch.setattr(learning.Trainer, "learn", lambda *given: may_end.wait() and learn(*given))
    service = Service(at)
    try:
        service.submit(at.prepare("learn", {}, "learn")).result()
        made = service.submit(at.prepare("open", {"person": "new", "context": person(1)}, "open")).result(timeout=30)
        assert json.loads(made.text)["version"] == version
        assert at.state.learning is not None
    finally:
        may_end.set()
        service.end()


def _fill(service, may_go_on):
    for _ in range(MOST_WAITING + 200):  # of which one batch at most is taken
        service.submit(lambda _: may_go_on.wait())


def test_too_many_calls_are_sent_away_to_come_again():
    service, may_go_on = Service(desk()), threading.Event()
    try:
        with pytest.raises(Busy, match="calls wait") as refused:
            _fill(service, may_go_on)
        assert refused.value.status == 503
    finally:
        may_go_on.set()
        service.end()


# Learning.


def test_learning_from_nothing_is_a_version_like_any_other():
    at = desk()
    assert opened(at)["version"] == 0
    at.call("learn", {})
    at.learn_here()
    answer = opened(at, "p2")
    assert (answer["version"], answer["source"]) == (1, "plan")


# The database.


@pytest.mark.parametrize(
    "damage", ["UPDATE events SET kind = 'repeated' WHERE number = 3", "DELETE FROM events WHERE number = 2"]
)
def test_a_damaged_log_is_not_served(tmp_path, damage):
    store = Database(tmp_path / "x.db")
    Trialist(desk(store=store), seed=0).play(1)
    store.close()
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute(damage)
    connection.close()
    store = Database(tmp_path / "x.db")
    with pytest.raises(BrokenChainError):
        desk(store=store)
    store.close()


# Time.


def at_time(utc, **options):
    clock = Clock()
    clock.now = datetime.datetime.fromisoformat(utc)
    return desk(clock=clock, **options), clock


@pytest.mark.parametrize(
    ("utc", "inside"),
    [
        ("2026-07-01T06:30:00+00:00", True),  # 08:30 in Berlin, in summer
        ("2026-12-01T06:30:00+00:00", False),  # 07:30, in winter
        ("2026-12-01T18:30:00+00:00", True),
        ("2026-07-01T18:30:00+00:00", False),
    ],
)
def test_a_window_is_by_the_clock_of_the_trial_in_summer_and_in_winter(utc, inside):
    at, _ = at_time(utc, extra=WINDOW)
    told = decided(at, opened(at)["episode"])
    assert (told["fallback"] is None) == inside


def test_a_week_ends_at_midnight_of_the_trial():
    """A Sunday evening, as UTC has it, may be a Monday in Berlin; this one is of the change from summer time."""
    at, clock = at_time("2026-10-25T22:30:00+00:00", text=TEXT.replace(*CALLS))  # 23:30 on Sunday
    first = opened(at)["episode"]
    decided(at, first, 0, action="call")
    assert decided(at, first, 1)["action"] != "call"
    clock.forward(hours=1)
    monday = decided(at, first, 2)
    assert monday["fallback"] is None


# What the page says.


def test_the_table_has_forty_five_failures_and_every_test_that_it_names_is_there():
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md")]
    [table] = [page for page in pages if "| failure | what happens here |" in page]
    rows = re.findall(r"^\| (\d+) \| .* \| .* \| (.*) \|$", table, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 46))
    for number, shown in rows:
        names = re.findall(r"`(\w+)::(\w+)`", shown)
        assert names or shown.startswith("outside: "), number
        for module, name in names:
            [path] = [path for room in ("trial/tests", "tests/attack") for path in (ROOT / room).glob(f"{module}.py")]
            assert f"def {name}(" in path.read_text(encoding="utf-8"), name


@pytest.mark.parametrize(("error", "status"), [(ZeroDivisionError, 500), (MemoryError, 503), (OSError, 503)])
def test_a_call_that_always_fails_after_a_recovery_holds_up_nobody(monkeypatch, caplog, error, status):
    """It comes first each time, as its app sends it again; the others of its batch are answered all the same.

    An app that hears 503 waits and asks again, as memory or files may be there later; others are for somebody to see.
    """
    from omg_trial.handlers import table

    def fail(*_):
        raise error

    at, other = desk(), iter(range(9))
    monkeypatch.setitem(table.ROUTES, "learn", table.ROUTES["learn"]._replace(handler=fail))
    at.lost = True
    for _ in range(2):
        opening = at.prepare("open", {"person": f"p{next(other)}", "context": person(1)})
        failed, answered = at.answer([at.prepare("learn", {}, "always"), opening])
        assert (failed.status, json.loads(answered.text)["source"]) == (status, "plan")
        assert not at.lost
    assert [each.getMessage().partition(" (")[0] for each in caplog.records] == 2 * [
        f"a Learn failed: {error.__name__}"
    ]


def test_a_call_that_fails_half_way_has_never_been():
    """Its event was in the state already: nothing is kept of it, and the same call is then answered."""
    at = desk()
    Trialist(at, seed=0).play(5)
    asked, number, train = at.prepare("roll back", {"version": 0}, "key"), at.state.number, at.trainer.train
    at.trainer.train = lambda _: 1 / 0
    with pytest.raises(ZeroDivisionError):
        at.answer([asked])
    assert len(list(at.store.read())) == number
    at.trainer.train = train
    [answer] = at.answer([asked])
    assert [event.kind for event in at.store.read(number)] == ["started", "rolled back"]
    assert (at.state.version.number, at.answer([asked])) == (0, [answer])


def test_a_phone_whose_person_has_left_is_told_so():
    """Its calls are refused for good: after a 403, as for a wrong token, they would wait for ever."""
    at = desk()
    episode = opened(at)["episode"]
    asked = at.prepare("decide", {"episode": episode, "step": 0, "state": "took it"})._replace(bound="p1")
    at.call("withdraw", {"person": "p1"})
    [refusal] = at.answer([asked])
    assert (refusal.status, refusal.message) == (410, "the person has withdrawn")


def test_a_key_file_that_cannot_be_written_founds_no_trial(tmp_path, monkeypatch):
    """Not even with the same store, whose secret would be in no file; the next process founds it."""

    def fail(*_, **__):
        raise sqlite3.OperationalError("disk I/O error")

    with contextlib.closing(Database(tmp_path / "trial.db")) as store:
        with monkeypatch.context() as patched:
            patched.setattr(ring, "_connect", fail)
            with pytest.raises(StoreError, match="the key file cannot be written: OperationalError: disk I/O error"):
                desk(store=store)
        assert store.keys.secret == ""
        with pytest.raises(StoreError, match="the key file cannot be written"):
            desk(store=store)
        assert list(store.read()) == []
    with contextlib.closing(Database(tmp_path / "trial.db")) as store:
        assert opened(desk(store=store))["episode"] == 3
