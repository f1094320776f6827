"""The desk: it answers calls, one after the other, and every answer is an event before anybody hears it."""

from __future__ import annotations

import contextlib
import datetime
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.provenance import provenance
from omg_trial.answers import happening
from omg_trial.calls import OlderLog, Refusal, parse
from omg_trial.deciding import Situation
from omg_trial.learning import Lesson, Trainer
from omg_trial.log.events import Event, canonical, digest, verified
from omg_trial.log.store import Store
from omg_trial.rules import moment
from omg_trial.snapshots import frozen_state, thawed_state
from omg_trial.study.trial import Trial
from omg_trial.versions import Learning

FORMAT = 1
LONGEST_KEY = 200
RECENT = 10_000
"""So many answers are remembered, for calls that are repeated soon; the store has all."""


class Asked(NamedTuple):
    """A call as it arrives. `key` makes it one call, however often it is sent."""

    name: str
    body: dict[str, Any]
    key: str | None
    seen: str | None = None
    """The `mark` of the last event that the caller knows of."""


class Answer(NamedTuple):
    """What is answered: a JSON text."""

    text: str
    mark: str
    """Of the event that holds this answer."""


class Desk:
    """Answers calls. Not for two threads at once; `service.py` sees to that.

    With a store that has events already, it goes on from there. `clock` tells the time.
    """

    def __init__(
        self,
        trial: Trial,
        store: Store,
        *,
        clock: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self.trial, self.store = trial, store
        self.trainer = Trainer(trial)
        self.clock = clock
        self._batch: list[Event] = []
        self._keys: dict[str, Event] = {}
        self._recent: dict[str, Event] = {}
        self._load()
        if self.state.number and self.state.study != trial.digest:
            raise ValueError(f"the database must be of the study {trial.name!r}, as its file is now, got another one")
        with self._all_or_nothing():
            if not self.state.number:
                self._happen("founded", self._founding())
            self._start()

    def _founding(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "name": self.trial.name,
            "study": self.trial.digest,
            "content": self.trial.content,
            "secret": secrets.token_hex(32),
        }

    def _start(self) -> None:
        """Note what is run, and with what file: thresholds may differ from those of the file that founded the log."""
        self._happen("started", {"software": provenance(), "file": digest(self.trial.content)})

    def _load(self) -> None:
        """Fold the log, from the last snapshot on if there is one that fits."""
        self.state, arrays = thawed_state(self.trial, self.store)
        if arrays is not None:
            self.trainer.remember(self.state.version.dataset, arrays)
        for event in verified(self.store.read(self.state.number), self.state.hash, self.state.number):
            self.state.apply(event)
        self.agent: ModelAgent = self.trainer.train(self.state.version.dataset, len(self.state.version.dataset))

    def call(self, name: str, body: dict[str, Any], key: str | None = None) -> Answer:
        """Answer one call; `Refusal` if it is refused."""
        [answer] = self.answer([Asked(name, body, key or secrets.token_hex(16))])
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def answer(self, batch: Sequence[Asked]) -> list[Answer | Refusal]:
        """Answer some calls in their order. All that they change is on disk when this returns, or nothing is."""
        if self.lost:
            self.recover()
        answers: list[Answer | Refusal] = []
        with self._all_or_nothing():
            for asked in batch:
                try:
                    answers.append(self._answered(asked))
                except Refusal as refusal:
                    answers.append(refusal)
        return answers

    def _answered(self, asked: Asked) -> Answer:
        if not asked.key or len(asked.key) > LONGEST_KEY or not asked.key.isprintable():
            raise Refusal(400, f"the key of a call must be a text of 1 to {LONGEST_KEY} characters")
        self._check_seen(asked.seen)
        call, request = parse(self.trial, asked.name, asked.body), digest([asked.name, asked.body])
        before = self._keys.get(asked.key) or self._recent.get(asked.key) or self.store.answered(asked.key)
        if before is not None:
            if before.request != request:
                raise Refusal(422, "the key was used for another call: a new call needs a new key")
            assert before.answer is not None
            return Answer(before.answer, before.mark)
        at = self.situation()
        kind, body, answer = happening(at, call)
        event = self._happen(kind, body, now=at.now, key=asked.key, request=request, answer=answer)
        if kind == "rolled back":
            self.agent = self.trainer.train(self.state.version.dataset)
        assert event.answer is not None
        return Answer(event.answer, event.mark)

    def _check_seen(self, seen: str | None) -> None:
        """Refuse whoever has seen more than the log has: an older backup was restored, say."""
        head = f"{self.state.number}:{self.state.hash}"
        if seen is not None and seen != head and self.store.mark(int(seen.partition(":")[0])) != seen:
            raise OlderLog(seen, head)

    def _happen(
        self,
        kind: str,
        body: dict[str, Any],
        now: datetime.datetime | None = None,
        key: str | None = None,
        request: str | None = None,
        answer: dict[str, Any] | None = None,
    ) -> Event:
        """Let something have happened: an event of the batch, and the state after it."""
        number, time = self.state.number + 1, (now or self._now()).isoformat(timespec="microseconds")
        text = None if answer is None else canonical({**answer, "event": number})
        event = Event(number, time, kind, body, key, request, text).chained(self.state.hash)
        self.state.apply(event)
        self._batch.append(event)
        if key is not None:
            self._keys[key] = event
        return event

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Keep what happens here, when all of it has happened."""
        try:
            yield
            if self._batch:
                self.store.append(self._batch)
            self._recent.update(self._keys)
            self._batch, self._keys = [], {}
            while len(self._recent) > RECENT:
                self._recent.pop(next(iter(self._recent)))
        except BaseException:
            self.lost = True  # the state is ahead of the store
            raise

    lost = False
    """Whether something has failed half-way, so that the state must be read anew."""

    def recover(self) -> None:
        """Connect to the store again, and go on from what it holds."""
        self._batch, self._keys, self._recent = [], {}, {}
        self.store.reopen()
        self._load()
        self.lost = False
        with self._all_or_nothing():
            self._start()

    def situation(self) -> Situation:
        """Return what an answer depends on now."""
        return Situation(self.trial, self.state, self.agent, self._now())

    def _now(self) -> datetime.datetime:
        """Return the time of the next event: not before that of the last one, whatever the clock says."""
        now = self.clock().astimezone(datetime.UTC)
        return max(now, moment(self.state.time)) if self.state.time else now

    def learning_due(self) -> bool:
        """Return whether the study wants to learn now."""
        due = 0 < self.trial.learn_after <= self.state.closed_since
        return self.state.learning is None and (due or self.state.stale)

    def taught(self, learning: Learning, lesson: Lesson) -> None:
        """Publish what was learned, or say why not."""
        if self.state.learning is None or self.state.learning.number != learning.number:
            return  # begun by a process that has ended, or before a roll-back
        published, version = lesson.refusal is None, self.state.latest + 1
        body = {"version": version, "model": lesson.model, "published": published, "cause": lesson.refusal}
        with self._all_or_nothing():
            self._happen("learned", {**body, "learning": learning.number, "episodes": len(learning.dataset)})
            if not published:
                self._happen("incident", {"severity": "yellow", "check": "model refused", "message": lesson.refusal})
        if published:
            self.agent = lesson.agent

    def learn_here(self) -> None:
        """Learn at once, in this thread: for tests, replays and small studies."""
        learning = self.state.learning
        if learning is not None:
            self.taught(learning, self.trainer.learn(learning))

    def note(self, severity: str, check: str, message: str) -> None:
        """Note an incident."""
        with self._all_or_nothing():
            self._happen("incident", {"severity": severity, "check": check, "message": message})

    def snapshot(self) -> None:
        """Keep the state, so that the next start need not fold all events."""
        self.store.keep(frozen_state(self.state, self.agent))
