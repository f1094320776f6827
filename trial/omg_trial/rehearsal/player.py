"""A simulated app on a virtual clock: it plays a whole trial against a desk, with what a `Script` lets go wrong."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import hashlib
import json
import zoneinfo
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from omg_cmdp.validation import FloatArray
from omg_trial.contract import Refusal
from omg_trial.desk import Desk
from omg_trial.log.database import Database, StoreError
from omg_trial.log.events import Event
from omg_trial.rehearsal.reactions import Model, random_context, reward_range
from omg_trial.rehearsal.script import Script
from omg_trial.trial_file.trial import Trial
from omg_trial.watching.incidents import tick
from omg_trial.watching.process import Process

FIRST_DAY = datetime.date(2026, 11, 2)
"""A Monday, a day after the clocks of America were set."""
Call = tuple[str, dict[str, Any]]
T = TypeVar("T")


class FlakyDatabase(Database):
    """A database that fails now and then: before it has kept a batch, or after it has, so that nobody hears of it."""

    failing: tuple[np.random.Generator, float] | None = None
    failures = 0

    def append(self, events: Sequence[Event]) -> None:
        """Keep all events, or fail."""
        before, after = (False, False) if self.failing is None else self.failing[0].random(2) < self.failing[1]
        self.failures += int(before or after)
        if before:
            raise StoreError("it failed before anything was kept")
        super().append(events)
        if after:
            raise StoreError("it failed after everything was kept")


@dataclasses.dataclass
class Phone:
    """A person, and the app on their phone."""

    name: str
    context: Any
    zone: str
    level: float
    """What the person's expected reward is more than that of others with this context."""
    fraud: bool = False
    here: bool = True
    episode: int | None = None
    state: str = ""


class Player:
    """Plays a trial. Everything that it draws comes from the seed; so does the secret, and with it every action."""

    def __init__(
        self, trial: Trial, store: FlakyDatabase, model: Model, script: Script, *, people: int, days: int, seed: int
    ) -> None:
        self.trial, self.store, self.model, self.script, self.days = trial, store, model, script, days
        self.generator, self.range = np.random.default_rng([seed, 0]), reward_range(trial)
        self.per_day = decisions_per_day(trial)
        self.now = self._time(0, trial.zone.key)
        zones = (trial.zone.key, *script.zones)
        width = script.spread * (self.range[1] - self.range[0])
        self.phones = [
            Phone(
                name=f"p{number:03}",
                context=random_context(trial, self.generator),
                zone=zones[number % len(zones)],
                level=width * float(np.clip(self.generator.normal(), -2.0, 2.0)),
                fraud=number >= people - script.frauds,
            )
            for number in range(people)
        ]
        self.truth: dict[tuple[int, int], FloatArray] = {}
        """(episode, step) -> the expected reward of each action, and of none, (A + 1,)."""
        self.of_episode: dict[int, tuple[Phone, str, int]] = {}
        """episode -> the person, the first state and the day."""
        self.counts: collections.Counter[str] = collections.Counter()
        self._late: list[tuple[datetime.datetime, Call]] = []
        store.keys.found(hashlib.sha256(f"rehearsal {seed}".encode()).hexdigest())
        self._start()
        self._ask([("enrol", {"person": each.name, "zone": each.zone}) for each in self.phones])

    def play(self) -> None:
        """Play all days."""
        slots = range(self.days * self.per_day)
        zones = sorted({phone.zone for phone in self.phones})
        moments = sorted((self._time(slot, zone), slot, zone) for slot in slots for zone in zones)
        done, today, last = 0.0, -1, moments[-1][2]
        for now, slot, zone in moments:
            self.now, day = now, slot // self.per_day
            if day > today:
                today = day
                self._begin_day(day)
            part = max(done, slot / len(slots))  # slots of two zones may interleave
            self._incidents(done, part)
            done = part
            self._play_slot([phone for phone in self.phones if phone.zone == zone and phone.here], slot, day)
            if zone == last and (slot + 1) % self.trial.space.horizon == 0:
                self._learn(always=not self.trial.learn_after)
        self.now += datetime.timedelta(days=4)
        self._send_late()
        self._learn(always=True)

    def expected(self, phone: Phone, state: str, action: str | None, day: int) -> tuple[float, FloatArray]:
        """Return the expected reward of a person, and the probabilities of the next state."""
        reward, after = self.model(phone.context, state, action, day)
        chances = np.array([after.get(name, 0.0) for name in self.trial.states])
        return float(np.clip(reward + phone.level, *self.range)), chances / chances.sum()

    def _time(self, slot: int, zone: str) -> datetime.datetime:
        """Return when a decision is due by the clock of a zone: the places of a day are spread over twelve hours."""
        day, place = divmod(slot, self.per_day)
        begin = datetime.time(8) if self.trial.window is None else self.trial.window.begin
        local = datetime.datetime.combine(FIRST_DAY + datetime.timedelta(days=day), begin, zoneinfo.ZoneInfo(zone))
        return (local + place * datetime.timedelta(hours=12) / self.per_day).astimezone(datetime.UTC)

    def _start(self) -> None:
        """Start the service from what the store holds: the log is verified, and a sample is planned again."""
        self.counts["start"] += 1
        self.store.failing = None  # somebody looks after it
        self.desk = Desk(self.trial, self.store, clock=lambda: self.now)
        self.store.failing = self.generator, self.script.outage
        self.process = Process(self.desk.clock, self.store.folder)

    def _begin_day(self, day: int) -> None:
        for phone in self.phones:
            if day and phone.here and self.generator.random() < self.script.leave:
                phone.here = False
                self.counts["left"] += 1
                if phone.episode is not None:
                    self._ask([("close", {"episode": phone.episode, "cause": "dropped out"})])
                    phone.episode = None
        self._retry(lambda: tick(lambda task: task(self.desk), self.process))

    def _incidents(self, done: float, part: float) -> None:
        """Do what the script says for a time between two shares of the trial."""
        if any(done < each <= part for each in self.script.restarts):
            self._retry(self.desk.snapshot)
            self._start()
        if self.script.frauds and done < 0.5 <= part:
            for phone in self.phones:
                if phone.fraud:
                    self._remove("withdraw", phone)
        if self.script.erase is not None and done < self.script.erase <= part:
            self._remove("erase", next(phone for phone in self.phones if phone.here))

    def _remove(self, call: str, phone: Phone) -> None:
        self._ask([(call, {"person": phone.name} | ({"cause": "rehearsal"} if call == "erase" else {}))])
        phone.here, phone.episode = False, None
        self.counts[call] += 1

    def _play_slot(self, phones: list[Phone], slot: int, day: int) -> None:
        """Play one decision of everybody whose clock is the same."""
        step, draw = slot % self.trial.space.horizon, self.generator
        if step == 0:
            offline = [each for each in self.script.network if int(each * self.days) == day]
            for phone in phones:
                phone.episode = None
            coming = [each for each in phones if draw.random() >= self.script.skip]
            coming = [each for each in coming if not offline or draw.random() >= 1.0 / 3.0]
            calls = [("open", {"person": each.name, "occasion": f"{slot}", "context": each.context}) for each in coming]
            for phone, answer in zip(coming, self._ask(calls), strict=True):
                if answer is not None:
                    phone.episode = answer["episode"]
                    phone.state = str(draw.choice(self.trial.states, p=self.trial.space.start))
                    self.of_episode[phone.episode] = phone, phone.state, day
        phones = [each for each in phones if each.episode is not None]
        available = draw.random(len(phones)) >= self.script.unavailable
        calls = [
            ("decide", {"episode": each.episode, "step": step, "state": each.state, "available": bool(can)})
            for each, can in zip(phones, available, strict=True)
        ]
        reports: list[Call] = []
        for phone, answer in zip(phones, self._ask(calls), strict=True):
            if answer is not None and phone.episode is not None:
                reports += self._react(phone, phone.episode, step, answer["action"], day)
        self._ask(reports)
        if step == self.trial.space.horizon - 1:
            self._ask([("close", {"episode": each.episode}) for each in phones])
        self._send_late()
        self._learn()

    def _react(self, phone: Phone, episode: int, step: int, action: str | None, day: int) -> list[Call]:
        """Let a person react, and return what the app reports at once."""
        draw, (low, high) = self.generator, self.range
        means = [self.expected(phone, phone.state, each, day)[0] for each in (*self.trial.actions, None)]
        self.truth[episode, step] = np.array(means)
        mean, chances = self.expected(phone, phone.state, action, day)
        # The largest variance that a reward with this mean can have: one end of the range or the other.
        reward = high if phone.fraud or draw.random() * (high - low) < mean - low else low
        phone.state = str(draw.choice(self.trial.states, p=chances))
        outcome: dict[str, Any] = {"episode": episode, "step": step, "next_state": phone.state}
        fate = draw.random()
        if fate < self.script.missing:
            return [("report", outcome)]
        if fate >= self.script.missing + self.script.late:
            return [("report", {**outcome, "reward": reward})]
        hours = datetime.timedelta(hours=float(draw.uniform(1.0, 72.0)))
        self._late.append((self.now + hours, ("report", {**outcome, "reward": reward})))
        return []

    def _send_late(self) -> None:
        due = [call for when, call in self._late if when <= self.now]
        self._late = [each for each in self._late if each[0] > self.now]
        self._ask(due)

    def _learn(self, *, always: bool = False) -> None:
        """Learn if it is due, as the service would, or as somebody does every evening; publish a model that waits."""
        if always and self.desk.state.learning is None:
            self._ask([("learn", {})])
        while self.desk.lost or self.desk.learning_due() or self.desk.state.learning is not None:
            self._retry(lambda: self.desk.learning_due() and self.desk.call("learn", {}))
            self._retry(self.desk.learn_here)
            if self.desk.state.waiting is not None:
                self._ask([("publish", {"version": self.desk.state.waiting.number, "cause": "rehearsal"})])

    def _ask(self, calls: Sequence[Call]) -> list[Any]:
        """Return the answers, None for those that were refused; after an outage all are sent again, with their keys."""
        asked = []
        for name, fields in calls:
            self.counts["call"] += 1
            asked.append(self.desk.prepare(name, fields, f"call-{self.counts['call']}"))
        answers = self._retry(lambda: self.desk.answer(asked)) if asked else []
        self.counts.update(f"refused: {each.message}" for each in answers if isinstance(each, Refusal))
        return [None if isinstance(each, Refusal) else json.loads(each.text) for each in answers]

    def _retry(self, task: Callable[[], T]) -> T:
        """Do something until the store has kept it."""
        while True:
            try:
                if self.store.failures and self.desk.lost:
                    self.desk.recover()
                return task()
            except StoreError:
                self.counts["outage"] += 1


def decisions_per_day(trial: Trial) -> int:
    """Return how often a day somebody is decided for: as the file says, else a whole episode if it is short."""
    horizon = trial.space.horizon
    usual = horizon if horizon <= 4 else 1
    return usual if trial.limits.decisions_per_week is None else max(round(trial.limits.decisions_per_week / 7), 1)
