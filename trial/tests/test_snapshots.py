"""Snapshots: a start from one is a start from the first event, wherever it was taken."""

import functools
import gc
import json
import weakref

import numpy as np
import pytest

from omg_trial.contract import KeyedCall, Refusal
from omg_trial.contract.calls import Look
from omg_trial.desk import Desk
from omg_trial.learning import Trainer, model_digest
from omg_trial.log.database import Database
from omg_trial.replay import replay
from omg_trial.snapshots import pack_state, set_aside, unpack_state
from omg_trial.state import State
from trial.tests.trials import Clock, Trialist, desk, person, trial

LEARNS = "[learning]\nafter_episodes = 3\n"
STEERED = LEARNS + 'publish = "by hand"\n[people]\ncontrol = 0.3\n'


class Wild:
    """Does anything at any time: everything that can become an event, learning that does not end, restarts."""

    def __init__(self, seed):
        self.draw = np.random.default_rng(seed)
        self.store, self.clock = Database(":memory:"), Clock()
        self.desk = desk(STEERED if seed % 2 else LEARNS, store=self.store, clock=self.clock)

    def play(self, calls):
        for _ in range(calls):
            what = self.draw.choice(
                [
                    "open",
                    "decide",
                    "report",
                    "close",
                    "withdraw",
                    "learn",
                    "learned",
                    "roll back",
                    "start",
                    "note",
                    "keep",
                    "steer",
                ],
                p=[0.22, 0.24, 0.19, 0.12, 0.02, 0.04, 0.06, 0.02, 0.02, 0.02, 0.01, 0.04],
            )
            self.clock.forward(minutes=int(self.draw.integers(90)))
            try:
                self._do(str(what))
            except Refusal:
                continue
        return self.desk

    def _do(self, what):
        at, pick = self.desk, self.draw.integers
        known = list(at.state.episodes) or [1]
        episode, name = int(known[pick(len(known))]), f"p{pick(6)}"
        state, can = ("took it", "missed it")[pick(2)], {"available": bool(pick(8))}
        if what == "learned":
            at.learn_here()
        elif what == "start":
            back = bool(pick(2))
            self.clock.forward(days=-3 * back)
            self.desk = Desk(at.trial, self.store, clock=self.clock, correct_clock=back)
        elif what == "steer":
            self._steer(name)
        elif what == "keep":
            at.answer([KeyedCall(Look(what="overview"), None, f"look {at.state.number}", actor="analyst")])
            at.snapshot()
        elif what == "note":
            at.record("incident", {"severity": "yellow", "check": "support", "message": "something is wrong"})
            number = at.state.incidents[-1 - int(pick(min(2, len(at.state.incidents))))].number
            at.record("alerted", {"channel": "webhook", **({"incident": number} if pick(2) else {"digest": "today"})})
            at.call("acknowledge", {"incident": number, "note": "seen"})
        elif what == "open":
            named = {"occasion": f"o{pick(3)}"} if pick(2) else {}
            at.call("open", {"person": name, "context": person(int(name[1:])), **named, **can})
        elif what == "decide":
            at.call("decide", {"episode": episode, "step": int(pick(4)), "state": state, **can})
        elif what == "report":
            more = {"next_state": state} if pick(2) else {}
            number = {"revision": int(pick(2)), "reward": float(pick(2))}
            at.call("report", {"episode": episode, "step": int(pick(4)), **number, **more})
        elif what == "close":
            at.call("close", {"episode": episode})
        elif what == "withdraw":
            gone = {"cause": "asked to"} if pick(2) else {}
            at.call("erase" if gone else "withdraw", {"person": name, **gone})
        elif what == "learn":
            at.call("learn", {})
        else:
            at.call("roll back", {"version": int(pick(4))})

    def _steer(self, name):
        at, pick = self.desk, self.draw.integers
        what = ("enrol", "pause", "resume", "resume", "stop", "publish")[pick(6)]
        if what == "enrol":
            at.call(what, {"person": name, "zone": ("Asia/Tokyo", None)[pick(2)], "end": ("2027-01-01", None)[pick(2)]})
        elif what == "publish":
            at.call(what, {"version": at.state.latest, "cause": "it is better"})
        else:
            about = ({}, {"person": name}, {"action": "call"})[pick(3) if what != "stop" else 1 + pick(2)]
            at.call(what, {**about, "cause": "somebody said so"})


def everything(state):
    """All that a state holds; examples are compared in the order in which they are learned."""
    held = {name: value for name, value in vars(state).items() if name != "examples"}
    return {**held, "open": list(state.open), "dataset": state.dataset()}


@functools.cache
def wild(seed):
    at = Wild(seed).play(220)
    return at.trial, list(at.store.read())


@pytest.mark.parametrize("number", range(8))
def test_a_fold_from_any_snapshot_is_the_fold_of_the_log(number):
    """A snapshot at every event, also amid learning; the state is equal there, and at the end."""
    of, events = wild(number)
    agent, state = of.agent(), State(of.missing_reward)
    folded = []
    for event in events:
        state.apply(event)
        restored, _ = unpack_state(of, pack_state(state, agent))
        assert everything(restored) == everything(state), f"after event {event.number} ({event.kind})"
        folded.append(restored)
    for begun in folded:
        for event in events[begun.number :]:
            begun.apply(event)
        assert everything(begun) == everything(state)
    kinds = {event.kind for event in events}
    assert kinds >= {"founded", "started", "opened", "decided", "reported", "closed", "learning"}


def test_the_random_logs_have_every_kind_of_event():
    found = {event.kind for number in range(8) for event in wild(number)[1]}
    assert found == {name.removeprefix("_on_").replace("_", " ") for name in vars(State) if name.startswith("_on_")}


def test_a_trial_that_was_kept_amid_learning_starts_again():
    at = desk(LEARNS)
    Trialist(at, seed=0).play(4)
    at.call("learn", {})
    at.snapshot()
    at.learn_here()
    again = desk(LEARNS, store=at.store)
    assert again.state.version.number == at.state.version.number
    assert model_digest(again.agent) == model_digest(at.agent)


def test_a_service_that_recovers_amid_learning_goes_on():
    at = desk(LEARNS)
    Trialist(at, seed=0).play(4)
    at.call("learn", {})
    at.snapshot()
    at.learn_here()
    at.lost = True
    assert json.loads(at.call("open", {"person": "late", "context": person(1)}).text)["source"] == "plan"


def test_a_model_with_a_person_who_has_withdrawn_is_not_started_from():
    """The snapshot has the model in use, which still knows the person: it is no model of what is left."""
    at = desk("[learning]\nafter_episodes = 0\n")
    Trialist(at, seed=1, people=4).play(12)
    at.call("learn", {})
    at.learn_here()
    at.call("withdraw", {"person": "p1"})
    at.snapshot()
    again = desk("[learning]\nafter_episodes = 0\n", store=at.store)
    alone = Trainer(trial("[learning]\nafter_episodes = 0\n")).train(again.state.version.dataset)
    assert model_digest(again.agent) == model_digest(alone)
    again.call("open", {"person": "late", "context": person(1)})
    again.call("learn", {})
    again.learn_here()
    assert replay(again.trial, again.store.read()).differences == []


def test_an_outcome_that_contradicts_the_first_decision_takes_the_example_back():
    """In whatever order the two reports come, nothing is learned from an episode whose first step is in doubt."""
    found = []
    for late in (False, True):
        at = desk("[learning]\nafter_episodes = 0\n")
        episode = json.loads(at.call("open", {"person": "p1", "context": person(1)}).text)["episode"]
        for step in range(2):
            at.call("decide", {"episode": episode, "step": step, "state": "took it"})
        calls = [("close", {}), ("report", {"step": 0, "next_state": "missed it"})]
        for name, more in calls if late else calls[::-1]:
            at.call(name, {"episode": episode, **more})
        found.append(at.state.dataset())
    assert found == [((), 0), ((), 0)]


def test_what_is_set_aside_is_searched_again_the_next_time():
    class Loop:
        pass

    one = Loop()
    one.itself, there = one, weakref.ref(one)
    try:
        set_aside()
        del one
        gc.collect()
        assert there() is not None, "it was not left out of the search"
        set_aside()
        assert there() is None, "what was set aside is kept for ever"
    finally:
        gc.unfreeze()
