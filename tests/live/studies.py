"""A small study, and a clock that is set by hand."""

import datetime

from omg_cmdp.live.desk import Desk
from omg_cmdp.live.store import MemoryStore
from omg_cmdp.live.trial import Trial

TEXT = """
[study]
name = "adherence"
horizon = 4
time_zone = "Europe/Berlin"

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
    return Desk(trial(extra, text), MemoryStore() if store is None else store, clock=clock or Clock())


def person(number):
    return {"age": 20 + (37 * number) % 70, "lives": "alone" if number % 3 else "with others"}
