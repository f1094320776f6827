"""Every check is green on a healthy trial, can fire, and is noted once; episodes that are overdue are closed."""

import datetime
import json
import re
import time
from pathlib import Path
from unittest import mock

import pytest

from omg_trial import learning, service
from omg_trial.desk import Desk
from omg_trial.replay import replay
from omg_trial.watching.checks import CHECKS, findings
from omg_trial.watching.incidents import tick
from omg_trial.watching.losses import Losses
from omg_trial.watching.process import Process
from omg_trial.watching.view import TrialView
from trial.tests.trials import TEXT, Clock, desk, person, trial

ROOT = Path(__file__).parents[2]
NAMES = ("Zaphod", "Trillian", "Marvin")
WATCH = """
[watch]
least_share = 0.02
streak = 12
"""


class Scene:
    """A desk with its clock and its counters, and an app that does what it should."""

    def __init__(self, extra=WATCH, text=TEXT):
        self.clock = Clock()
        with mock.patch("secrets.token_hex", return_value="of this study"):  # the same draws every time
            self.desk = desk(extra, clock=self.clock, text=text)
        self.process = Process(self.clock)
        self.process.memory, self.process.disk = 100.0, 1e6
        self.process.measure = lambda: None

    def open(self, name=NAMES[0]):
        body = {"person": name, "context": person(NAMES.index(name) if name in NAMES else 0)}
        return json.loads(self.desk.call("open", body).text)["episode"]

    def decide(self, episode, step, state="took it", **more):
        return json.loads(self.desk.call("decide", {"episode": episode, "step": step, "state": state, **more}).text)

    def report(self, episode, step, state="took it", **more):
        outcome = {"reward": float(state == "took it"), "next_state": state, **more}
        self.desk.call("report", {"episode": episode, "step": step, **outcome})

    def day(self, name=NAMES[0], steps=4, **more):
        """Play an episode to its end."""
        episode, state = self.open(name), "took it"
        for step in range(steps):
            told = self.decide(episode, step, state, **more)
            state = "took it" if (told["action"] != "nothing") == bool(step % 2) else "missed it"
            self.report(episode, step, state)
        self.desk.call("close", {"episode": episode})
        return episode

    def learn(self):
        self.desk.call("learn", {})
        self.desk.learn_here()

    def healthy(self, days=9):
        for _ in range(days):
            for name in NAMES:
                self.day(name)
            self.learn()
            self.clock.forward(days=1)
        return self

    def tick(self):
        tick(lambda task: task(self.desk), self.process)

    def look(self):
        view = TrialView.of(self.desk.trial, self.desk.state, self.clock(), self.process)
        return {finding.check: finding for finding in findings(view)}


def test_a_healthy_trial_is_green():
    scene = Scene("[actions.most_per_week]\ncall = 28\n" + WATCH)
    assert {found.severity for found in scene.look().values()} == {"green"}
    scene.healthy()
    assert {check: found for check, found in scene.look().items() if found.severity != "green"} == {}
    scene.tick()
    assert scene.desk.state.incidents == []


def test_who_has_dropped_out_is_not_expected():
    scene = Scene("", EXPECTED)
    scene.desk.call("close", {"episode": scene.open(), "cause": "dropped out"})
    scene.clock.forward(days=8)
    assert scene.look()["expected decisions"].severity == "green"


def test_labels_are_described_by_themselves():
    scene = Scene(text=LABELS)
    scene.desk.call("open", {"person": NAMES[0], "context": "young"})
    assert scene.look()["support"].severity == "green"


# What goes wrong: how, in which trial, and how bad it is.


def clipped(scene):
    """A fixed, very large γ: the plan is greedy, and only the floor explores."""
    for _ in range(12):
        scene.day()
        scene.learn()


def abandoned(scene):
    for _ in range(3):
        scene.desk.call("close", {"episode": scene.open()})


def few_of_an_action(scene):
    scene.healthy(2)


def too_much(scene):
    scene.day(steps=2, action="call")


def too_little(scene):
    scene.day(action="nothing")
    scene.clock.forward(days=7)


def at_night(scene):
    scene.clock.forward(hours=14)
    scene.day()


def no_plan(scene):
    def fail(context):
        raise ValueError("no plan")

    scene.desk.agent.decide = fail
    scene.day()


def other_actions(scene):
    for name in NAMES[:2]:  # now and then a call is what was drawn
        episode = scene.open(name)
        for step in range(4):
            scene.decide(episode, step, action="call")


def chosen(scene):
    """Whoever is to be called is not available."""
    for number in range(100):
        body = {"person": f"q{number}", "context": person(number)}
        told = json.loads(scene.desk.call("open", body).text)
        for step in range(4):
            scene.decide(told["episode"], step, available=told["drawn"][step][0] != "call")
        scene.desk.call("close", {"episode": told["episode"]})


def gap(scene):
    episode = scene.open()
    scene.decide(episode, 0)
    scene.decide(episode, 2)
    scene.desk.call("close", {"episode": episode})


def wrong_device(scene):
    scene.decide(scene.open(), 0, device_time="2026-11-02T09:10:00+00:00")


def again(scene):
    episode = scene.open()
    for _ in range(3):
        scene.decide(episode, 0)


def silence(scene):
    scene.decide(scene.open(), 0)
    scene.clock.forward(days=3)


def too_few(scene):
    scene.day()
    scene.clock.forward(days=8)
    scene.day(steps=2)


def too_many(scene):
    scene.day()
    scene.clock.forward(days=8)
    scene.day()
    scene.day()


def no_rewards(scene):
    episode = scene.open()
    for step in range(4):
        scene.decide(episode, step)
    scene.clock.forward(days=3)


def unasked(scene):
    episode = scene.open()
    scene.report(episode, 3)
    scene.desk.call("close", {"episode": episode})


def contradiction(scene):
    episode = scene.open()
    scene.decide(episode, 0)
    scene.report(episode, 0, "missed it")
    scene.decide(episode, 1, "took it")


def impossible(scene):
    scene.decide(scene.open(), 0, "missed it")


def strange(context):
    def go(scene):
        scene.desk.call("open", {"person": NAMES[0], "context": context})

    return go


def refused_model(scene):
    scene.day()
    scene.learn()


def misfit(scene):
    scene.process.misfit = "The model does not fit: use `intercept=True`."


def never_learned(scene):
    scene.day()
    scene.clock.forward(days=8)


def set_back(scene):
    scene.day()
    scene.clock.forward(days=-1)


def refused(*causes):
    def go(scene):
        for cause in causes:
            scene.process.refuse(cause)

    return go


def out_of_memory(scene):
    scene.process.memory = 1e5


def disk_full(scene):
    scene.process.disk = 10.0


GREEDY = TEXT.replace("floor = 0.1", "floor = 0.1\ngamma = 1e9")
LABELS = TEXT[: TEXT.index("[context.columns]")] + '[context]\nlabels = ["young", "old"]\n[rewards]\n[dynamics]\n'


def mail_server_down(scene):
    scene.process.unsent["e-mail"] = "ConnectionRefusedError"


def all_is_known(scene):
    """Judge the trial by somebody else, to whom everything is settled."""
    told = Losses(episodes=10, total=1.0, week=0.1, settled=1.0, reason="")
    scene.process.losses = mock.Mock(look=lambda view: told)


WINDOW = '[window]\nbegin = "08:00"\nend = "20:00"\noutside = "nothing"\n'
EXPECTED = TEXT.replace("fallback =", "decisions_per_week = 4\nfallback =")
WRONG = {
    "clipped": ("clipped probabilities", "yellow", clipped, WATCH, GREEDY),
    "few of an action": ("shares of actions", "yellow", few_of_an_action, "[watch]\nleast_share = 0.4\n", TEXT),
    "too much": ("burden", "red", too_much, "[actions.most_per_week]\ncall = 1\n", TEXT),
    "too little": ("burden", "yellow", too_little, "[actions.least_per_week]\ncall = 1\n", EXPECTED),
    "at night": ("window", "yellow", at_night, WINDOW, TEXT),
    "outside the consent": ("consent", "yellow", refused("consent"), "", TEXT),
    "wrong device": ("device clocks", "yellow", wrong_device, "", TEXT),
    "no plan": ("fallbacks", "red", no_plan, "", TEXT),
    "other actions": ("deviations", "yellow", other_actions, "", TEXT),
    "chosen by the draw": ("draws", "red", chosen, "[people]\ncontrol = 1.0\n", TEXT),
    "looked and closed": ("abandoned openings", "yellow", abandoned, "", TEXT),
    "gap": ("gaps", "yellow", gap, "", TEXT),
    "again": ("repeated decisions", "yellow", again, "", TEXT),
    "silence": ("expected decisions", "yellow", silence, "", TEXT),
    "too few": ("expected decisions", "yellow", too_few, "", EXPECTED),
    "too many": ("expected decisions", "yellow", too_many, "", EXPECTED),
    "all is known": ("settled", "yellow", all_is_known, "[watch]\nsettled = 0.9\n", TEXT),
    "no rewards": ("overdue rewards", "yellow", no_rewards, "", TEXT),
    "unasked": ("unmatched outcomes", "yellow", unasked, "", TEXT),
    "contradiction": ("contradictory states", "yellow", contradiction, "", TEXT),
    "impossible": ("support", "yellow", impossible, "", TEXT),
    "too old": ("support", "yellow", strange({"age": 91}), "", TEXT),
    "a text for a number": ("support", "yellow", strange({"age": "old"}), "", TEXT),
    "unknown label": ("support", "yellow", strange({"lives": "abroad"}), "", TEXT),
    "wrong values": ("support", "yellow", refused("422"), "", TEXT),
    "unknown episode": ("roster", "yellow", refused("404"), "", TEXT),
    "withdrawn": ("roster", "yellow", refused("410"), "", TEXT),
    "refused model": ("model refused", "yellow", refused_model, "", TEXT),
    "misfit": ("model fit", "yellow", misfit, "", TEXT),
    "never learned": ("learning late", "yellow", never_learned, "", TEXT),
    "set back": ("clock", "red", set_back, "", TEXT),
    "not kept": ("store", "red", refused("503"), "", TEXT),
    "older backup": ("restored log", "red", refused("older log"), "", TEXT),
    "no token": ("unauthorised calls", "yellow", refused(*["401"] * 6, *["403"] * 5), "", TEXT),
    "out of memory": ("memory", "yellow", out_of_memory, "", TEXT),
    "disk full": ("disk", "red", disk_full, "", TEXT),
    "alerts are not taken": ("alerts", "yellow", mail_server_down, "", TEXT),
}


def test_every_check_has_something_that_turns_it():
    assert {check for check, *_ in WRONG.values()} == set(CHECKS)


@pytest.mark.parametrize("name", WRONG)
def test_a_check_fires(name, monkeypatch):
    """It does, is noted once, and names nobody; the log replays with it."""
    check, severity, go_wrong, extra, text = WRONG[name]
    if name == "refused model":
        monkeypatch.setattr(learning, "refusal", lambda *_: "not this one")
    scene = Scene(extra, text)
    assert scene.look()[check].severity == "green"
    go_wrong(scene)
    assert scene.look()[check].severity == severity
    for _ in range(3):
        scene.tick()
    noted = [each for each in scene.desk.state.incidents if each.check == check]
    assert [each.severity for each in noted] == [severity]
    assert not any(name in each.message for each in scene.desk.state.incidents for name in NAMES)
    state = replay(scene.desk.trial, scene.desk.store.read()).state
    assert state.incidents == scene.desk.state.incidents


def test_the_end_of_an_incident_is_noted_once():
    scene = Scene()
    refused("503")(scene)
    contradiction(scene)
    scene.tick()
    scene.report(2 + 1, 0, "took it", revision=1)
    for minutes in (120, 9, 1, 1):
        assert {each.severity for each in scene.desk.state.incidents} == {"yellow", "red"} or minutes == 1
        scene.clock.forward(minutes=minutes)
        scene.tick()
    seen = [(each.check, each.severity) for each in scene.desk.state.incidents]
    both = ["contradictory states", "store"]
    assert seen == [(both[0], "yellow"), (both[1], "red"), (both[0], "green"), (both[1], "green")]


def test_a_start_notes_nothing_again():
    scene = Scene()
    contradiction(scene)
    scene.tick()
    for snapshot in (False, True):
        if snapshot:
            scene.desk.snapshot()
        scene.desk = Desk(scene.desk.trial, scene.desk.store, clock=scene.clock)
        scene.tick()
        assert sum(event.kind == "incident" for event in scene.desk.store.read()) == 1


def test_an_overdue_episode_is_closed_and_learned_from():
    scene = Scene("[watch]\nclose_after_hours = 24\n")
    left, alive = scene.open(NAMES[0]), scene.open(NAMES[1])
    scene.decide(left, 0)
    scene.report(left, 0)
    scene.clock.forward(hours=23)
    scene.decide(alive, 0)
    scene.clock.forward(hours=1)
    scene.tick()
    assert list(scene.desk.state.open) == [alive]
    assert scene.desk.state.episodes[left].closed == "overdue"
    scene.learn()
    assert [example.episode for example in scene.desk.state.version.dataset] == [left]
    assert replay(scene.desk.trial, scene.desk.store.read()).differences == []


def test_nothing_is_noted_while_the_store_is_lost():
    scene = Scene()
    disk_full(scene)
    scene.desk.lost = True
    before = scene.desk.state.number
    scene.tick()
    assert scene.desk.state.number == before


def _noted(desk):
    return [(each.check, each.severity) for each in desk.state.incidents]


def test_the_service_looks_by_itself(monkeypatch):
    monkeypatch.setattr(service, "TICK_SECONDS", 0.01)
    scene = Scene("[watch]\nclose_after_hours = 24\n")
    contradiction(scene)
    scene.clock.forward(days=1)
    running = service.Service(scene.desk)
    try:
        until = time.monotonic() + 20.0
        while not (seen := running.submit(_noted).result()) and time.monotonic() < until:
            time.sleep(0.01)
    finally:
        running.end()
    assert seen == [("contradictory states", "yellow")]
    assert not scene.desk.state.open


def test_what_the_process_counts_is_forgotten_after_an_hour():
    clock = Clock()
    process = Process(clock)
    process.refuse("422")
    process.refuse("422", watched=False)
    assert (process.lately("422"), process.refusals["422"]) == (1, 2)
    clock.forward(minutes=61)
    assert (process.lately("422"), process.refusals["422"]) == (0, 2)
    assert process.disk > 0.0


def test_a_view_stays_as_it_was():
    scene = Scene()
    episode = scene.open()
    view = TrialView.of(scene.desk.trial, scene.desk.state, scene.clock(), scene.process)
    scene.decide(episode, 0)
    assert view.steps == []
    assert view.now == datetime.datetime(2026, 11, 2, 9, 0, tzinfo=datetime.UTC)


def test_the_guide_tells_every_check_and_every_default():
    guide = (ROOT / "docs/trial/watching.md").read_text()
    assert re.findall(r"^\| ([a-z ]+) \| (?!not green)", guide, re.MULTILINE) == list(CHECKS)
    told = {name: float(value) for name, value in re.findall(r"`(\w+) = ([\d.]+)`", guide)}
    assert told == trial().watch.model_dump()


def test_a_check_that_fails_silences_no_other(monkeypatch):
    monkeypatch.setitem(CHECKS, "gaps", lambda view: 1 / 0)
    scene = Scene()
    view = TrialView.of(scene.desk.trial, scene.desk.state, scene.clock(), scene.process)
    found = {each.check: each for each in findings(view)}
    assert found.keys() == CHECKS.keys()
    assert found["gaps"].severity == "red"
    assert found["gaps"].message.startswith("the check itself failed: ZeroDivisionError")
