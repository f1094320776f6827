"""A small trial, and a clock that is set by hand."""

import datetime
import hashlib
import json

import numpy as np

from omg_trial.desk import Desk
from omg_trial.log import events
from omg_trial.log.database import Database
from omg_trial.trial_file.trial import Trial

TEXT = """
[trial]
name = "adherence"
horizon = 4
time_zone = "Europe/Berlin"
offline = true

[states]
names = ["took it", "missed it"]

[actions]
names = ["nothing", "reminder", "call"]
fallback = { nothing = 0.5, reminder = 0.3, call = 0.2 }

[context.columns]
age = { low = 20, high = 90 }
lives = { labels = ["alone", "with others"] }

[rewards]

[dynamics]

[exploration]
floor = 0.1
"""


class Clock:
    """Shows the time that it was set to."""

    def __init__(self):
        self.now = datetime.datetime(2026, 11, 2, 9, 0, tzinfo=datetime.UTC)

    def __call__(self):
        return self.now

    def forward(self, **amount):
        self.now += datetime.timedelta(**amount)


def trial(extra="", text=TEXT):
    return Trial.parse(text + extra)


def desk(extra="", store=None, clock=None, text=TEXT):
    return Desk(trial(extra, text), Database(":memory:") if store is None else store, clock=clock or Clock())


def person(number):
    return {"age": 20 + (37 * number) % 70, "lives": "alone" if number % 3 else "with others"}


def digest(state):
    """A digest of everything that decides what happens next; not of who has withdrawn, nor of incidents."""
    records = [
        [
            *(record.number, record.person, record.context, record.opened, record.version, record.source),
            *(record.cause, record.certificate, record.policy, record.closed),
            sorted(record.choices.items()),
            sorted(record.outcomes.items()),
        ]
        for record in state.episodes.values()
    ]
    plans = {person: [plan.episode, plan.policy] for person, plan in state.plans.items()}
    versions = [[version.number, *version.dataset] for version in state.versions]
    content = events.canonical([state.trial, records, plans, versions, state.dataset()])
    return hashlib.sha256(content.encode()).hexdigest()


def without(events, person):
    """The log as it would be had this person never been there: fewer events, with the same numbers."""
    kept, theirs = [], set()
    for event in events:
        if event.body.get("person") == person:
            theirs.add(event.number)
        elif event.body.get("episode") not in theirs:
            kept.append(event)
    return kept


class Trialist:
    """Plays people and their app: episodes of any length, some overlapping, outcomes that are late or never come."""

    def __init__(self, at, *, seed, people=10, overlapping=1):
        self.desk, self.people, self.overlapping = at, people, overlapping
        self.generator = np.random.default_rng(seed)
        self.under_way = {}

    def play(self, episodes):
        for _ in range(episodes):
            while len(self.under_way) < self.overlapping:
                name = f"p{self.generator.integers(self.people)}"
                if name not in self.under_way:
                    self._open(name)
            self._advance(self.generator.choice(sorted(self.under_way)))
        for name in sorted(self.under_way):
            self._advance(name)

    def _open(self, name):
        answer = self.desk.call("open", {"person": name, "context": person(int(name[1:]))})
        self.under_way[name] = json.loads(answer.text)["episode"]

    def _advance(self, name):
        episode, state = self.under_way.pop(name), "took it"
        late = []
        for step in range(int(self.generator.integers(1, 5))):
            told = json.loads(self.desk.call("decide", {"episode": episode, "step": step, "state": state}).text)
            helped = {"nothing": 0.4, "reminder": 0.7, "call": 0.8}[told["action"]]
            state = "took it" if self.generator.random() < helped else "missed it"
            outcome = {"episode": episode, "step": step, "reward": float(state == "took it"), "next_state": state}
            if self.generator.random() < 0.2:
                late.append(outcome)
            elif self.generator.random() < 0.9:
                self.desk.call("report", outcome)
        self.desk.call("close", {"episode": episode, "cause": "finished"})
        for outcome in late:
            self.desk.call("report", outcome)
        if self.desk.learning_due():
            self.desk.call("learn", {})
            self.desk.learn_here()
