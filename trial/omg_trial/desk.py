"""The desk: it answers calls, one after the other, and every answer is an event before anybody hears it."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import logging
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.provenance import provenance
from omg_trial.clock import SteadyClock, check_clock
from omg_trial.contract import KEY, KEY_RULE, Answer, Contract, KeyedCall, OlderLog, Refusal
from omg_trial.contract.models import call_content
from omg_trial.decisions import DecisionInputs
from omg_trial.handlers.handled import check_bound
from omg_trial.handlers.table import handle
from omg_trial.keys.marks import commitment
from omg_trial.learning import Lesson, Trainer
from omg_trial.log.database import DamagedLogError, Database, Snapshot, StoreError
from omg_trial.log.events import FORMAT, BrokenChainError, Chain, Event, canonical, verified
from omg_trial.log.machine import machine
from omg_trial.log.traces import trace
from omg_trial.replay import check_software, check_store, nameless
from omg_trial.rules import moment
from omg_trial.snapshots import pack_state, restore_state, without_collection
from omg_trial.trial_file.trial import Trial
from omg_trial.versions import LearningTask

_log = logging.getLogger("omg_trial")


class Desk:
    """Answers the calls of a trial, one after the other; each answer is an event in the store before anybody hears it.

    It is not for two threads at once; `Service` sees to that.

    Parameters
    ----------
    trial : Trial
        The trial; a store belongs to one.
    store : Database
        Where events are kept. If it has some already, the desk goes on from there.
    clock : callable or None, default None
        Tells the time, with its zone; None is a `SteadyClock` of the system.
    correct_clock : bool, default False
        Whether the clock is right although it is behind the log, or far ahead of it: that is recorded.
    new : bool or None, default None
        Whether a trial is founded: True refuses a store that has one, False an empty one, None neither.

    Examples
    --------
    >>> import json
    >>> from omg_trial.log.database import Database
    >>> from omg_trial.trial_file import EXAMPLE, Trial
    >>> desk = Desk(Trial.parse(EXAMPLE), Database(":memory:"))
    >>> opened = json.loads(desk.call("open", {"person": "p1", "context": "alone"}).text)
    >>> opened["episode"], opened["source"], opened["version"]
    (3, 'plan', 0)
    """

    def __init__(
        self,
        trial: Trial,
        store: Database,
        *,
        clock: Callable[[], datetime.datetime] | None = None,
        correct_clock: bool = False,
        new: bool | None = None,
    ) -> None:
        self.trial, self.store, self.contract, self.trainer = trial, store, Contract(trial), Trainer(trial)
        self.clock, self._started = SteadyClock() if clock is None else clock, True
        self.lost = False  # whether something has failed half-way, so that the state must be read anew
        self.damage: str | None = None  # why nothing is answered any more: the store holds something else than written
        self._batch: list[Event] = []
        self._load()
        check_store(trial, self.state, store, new)
        with self._all_or_nothing():
            if not self.state.number:
                store.found()
                known = {"name": trial.name, "trial": trial.digest, "file": trial.text}
                self._record("founded", {"format": FORMAT, **known, "commitment": commitment(store.keys.secret)})
            self._correct_clock(correct_clock)
            for alias in nameless(self.state):
                self._record("erased", {"person": alias, "cause": "erased after this copy of the log was made"})
            self.agent: ModelAgent = self.trainer.train(self.state.version.dataset)
            check_software(trial, self.state, self.agent, provenance())
            self._started = False
            self._start()

    def _correct_clock(self, correct: bool) -> None:
        """Refuse a clock that contradicts the log; or record that it is right."""
        now, last = self.clock().astimezone(datetime.UTC), moment(self.state.time)
        most = self.trial.watch.close_after_hours if self.state.open or correct else float("inf")
        if (event := check_clock(now, last, most, correct)) is not None:
            self._record(*event, now=now)

    def _start(self) -> None:
        """Record the software and the file, once: thresholds may differ from those of the file that founded the log."""
        if not self._started:
            self._started = True
            file = hashlib.sha256(self.trial.text.encode()).hexdigest()
            self._record("started", {"software": provenance(), "machine": machine(), "file": file})

    def _load(self, *heads: str) -> None:
        """Verify the log, which must end with one of `heads` if there are any; fold it, from its last snapshot on."""
        with without_collection():
            chain = Chain(self.store.rows() if heads or self.store.snapshot() else ())  # else all are read below
            if heads and chain.head not in heads:
                cause = f"the database ends with {len(chain)}: perhaps a replica lags, or somebody else writes to it"
                raise self._damaged(f"the service had written event {heads[0].partition(':')[0]}, {cause}")
            self.chain = chain
            self.state, arrays = restore_state(self.trial, self.store, self.chain)
            if arrays is not None:
                self.trainer.remember(self.state.version.dataset, arrays)  # saves learning everything again
            for event in verified(self.store.read(self.state.number), self.state.hash, self.state.number):
                self.state.apply(event)
                if event.number > len(self.chain):
                    self.chain.add(event)
        self.store.forget(self.state.erased)  # a key file from before may have been restored

    def prepare(self, name: str, fields: Mapping[str, Any], key: str | None = None) -> KeyedCall:
        """Return a checked call by its name and fields, such as "decide"; `Refusal` if something is wrong with it.

        A call without a `key` gets a new one.
        """
        if key is not None and not KEY.fullmatch(key):
            raise Refusal(400, f"the key of a call must be {KEY_RULE}")
        return KeyedCall(*self.contract.parse(name, fields), key or secrets.token_hex(16))

    def call(self, name: str, fields: Mapping[str, Any], key: str | None = None) -> Answer:
        """Answer one call, as `prepare` makes it; `Refusal` if it is refused."""
        [answer] = self.answer([self.prepare(name, fields, key)])
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def answer(self, batch: Sequence[KeyedCall]) -> list[Answer | Refusal]:
        """Answer some calls in their order. All that they change is on disk when this returns, or nothing is."""
        answers: list[Answer | Refusal] = []
        with self._all_or_nothing():
            keys = [self.store.keys.mark("key", request.key) for request in batch]
            known = self._stored(keys)  # one may also come twice in this batch
            for key, request in zip(keys, batch, strict=True):
                if key not in known:
                    self._start()  # after a failure; not before, as a stored answer must need no room on the disk
                number = self.state.number
                try:
                    answers.append(self._answer(request, key, known))
                except Refusal as refusal:
                    answers.append(refusal)
                except Exception as error:
                    if isinstance(error, StoreError) or self.state.number != number:
                        raise  # half-way: the state must be read anew
                    # Nothing has changed: the others of the batch are answered. Memory and files may be there again.
                    status = 503 if isinstance(error, (MemoryError, OSError)) else 500
                    answers.append(Refusal(status, f"it failed unexpectedly, and was not done: {type(error).__name__}"))
                    _log.error("a %s failed: %s", type(request.call).__name__, trace(error))
        return answers

    def _answer(self, request: KeyedCall, key: str, known: dict[str, Event]) -> Answer:
        if request.seen is not None and not self.chain.has(request.seen):  # an older backup was restored, say
            raise OlderLog(request.seen, self.chain.head)
        call, target, ring = request.call, request.target, self.store.keys
        _, fields = content = call_content(self.trial, call, target)
        if request.bound is not None:
            check_bound(self.inputs(), fields, request.bound)
        person = None if call.name == "erase" else fields.get("person")  # whose key it destroys
        asked, warning = canonical(content), None
        if person is not None and ring.has_erased(person) and (key in known or not self.state.has_left(person)):
            raise Refusal(410, "the person was erased")  # perhaps after this copy of the log was made
        if (event := known.get(key)) is None:
            at = self.inputs()
            kind, body, answer = handle(at, call, target)
            text, body = canonical(answer.model_dump()), {**body, "actor": request.actor}
            mark = ring.mark_call(person, asked, add=True)
            event = known[key] = self._record(kind, body, at.now, key=key, request=mark, answer=text)
            if kind == "opened" and body["cause"] is not None:  # it names no person, and no context
                warning = f"episode {event.number}: {body['source']} ({body['cause']})"
            if kind in ("rolled back", "published"):
                self.agent = self.trainer.train(self.state.version.dataset)
        elif not (event.request or "").startswith(f"{ring.mark_call(person, asked)}:"):  # worse than no answer
            raise Refusal(422, "the key was used for another call: a new call needs a new key")
        assert event.answer is not None
        return Answer(event.answer, event.mark, warning)

    def _stored(self, keys: Sequence[str]) -> dict[str, Event]:
        """Return the events that answer calls with these keys, if they are those that were written."""
        found = self.store.answered(keys)
        for event in found.values():
            self.check_written(event)
        return found

    def check_written(self, event: Event) -> None:
        """Refuse an event of the store that is not the one that was written; nothing is answered from then on."""
        if not self.chain.holds(event):
            raise self._damaged(f"event {event.number} was changed after it was written")

    def _damaged(self, what: str) -> DamagedLogError:
        """Note that the log is not the one that was written; nothing is answered from then on."""
        self.damage = self.damage or f"{what}; nothing is answered until somebody has looked at the database"
        self.lost = True  # nothing is recorded either
        return DamagedLogError(self.damage)

    def _record(self, kind: str, body: dict[str, Any], now: datetime.datetime | None = None, **call: str) -> Event:
        """Add an event to the batch, and apply it to the state; one of a call has its `key`, `request` and `answer`."""
        # A rule was applied at `now`; the event must say the same time, or a replay would apply it at another one.
        number, time = self.state.number + 1, (now or self._now()).isoformat(timespec="microseconds")
        text = canonical(self.store.keys.seal(body))
        event, before = Event(number, time, kind, text, **call, ring=self.store.keys), self.state.hash
        event = event.marked(before).chained(before)
        self.state.apply(event)
        self._batch.append(event)
        return event

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Keep the events of this block together, or none of them; what was lost before is read anew first."""
        if self.lost or self.damage is not None:
            self.recover()
        try:
            yield
            if self._batch:
                self.store.append(self._batch)
            for event in self._batch:
                self.chain.add(event)
            self._batch = []
            if self.store.forget(self.state.erased):
                self.trainer = Trainer(self.trial)  # the one before remembers what it has learned from
        except BaseException as error:
            self.lost = True  # the state is ahead of the store
            if isinstance(error, DamagedLogError):
                self._damaged(str(error))
            raise

    def recover(self) -> None:
        """Connect to the store again, and go on from what it holds."""
        if self.damage is not None:
            raise DamagedLogError(self.damage)
        self.store.reopen()
        # The last transaction may have been kept although nobody heard of it; nothing else can have changed.
        try:
            self._load(self.chain.head, *(event.mark for event in self._batch[-1:]))
        except (BrokenChainError, DamagedLogError) as error:
            raise self._damaged(str(error)) from None
        self.agent = self.trainer.train(self.state.version.dataset)
        self._batch = []
        self.lost = self._started = False

    def inputs(self) -> DecisionInputs:
        """Return everything that an answer depends on now, besides the call."""
        return DecisionInputs(self.trial, self.state, self.agent, self._now())

    def _now(self) -> datetime.datetime:
        """Return the time of the next event: not before that of the last one, whatever the clock says."""
        now = self.clock().astimezone(datetime.UTC)
        return max(now, moment(self.state.time)) if self.state.time else now

    def learning_due(self) -> bool:
        """Return whether the trial file wants learning to begin now."""
        enough = 0 < self.trial.learn_after <= self.state.closed_since
        return self.state.learning is None and (enough or self.state.stale)

    def publish_model(self, task: LearningTask, lesson: Lesson) -> None:
        """Publish what was learned, or record why not."""
        with self._all_or_nothing():
            self._start()
            if self.state.learning is None or self.state.learning.number != task.number:
                return  # begun by a process that has ended, or before a roll-back
            published, version = lesson.refusal is None and not self.trial.by_hand, self.state.latest + 1
            body = {"version": version, "model": lesson.model, "published": published, "cause": lesson.refusal}
            self._record("learned", {**body, "learning": task.number, "episodes": len(task.dataset)})
            if lesson.refusal is not None:
                self._record("incident", {"severity": "yellow", "check": "model refused", "message": lesson.refusal})
        if published:
            self.agent = lesson.agent

    def learn_here(self) -> None:
        """Learn at once, in this thread: for tests, rehearsals and small trials."""
        if (task := self.state.learning) is not None:
            self.publish_model(task, self.trainer.learn(task))

    def record(self, kind: str, body: dict[str, Any]) -> None:
        """Record what the service itself has found or done."""
        with self._all_or_nothing():
            self._start()
            self._record(kind, body)

    def snapshot(self) -> None:
        """Keep the state, so that the next start need not fold all events. Its digest is an event."""
        with self._all_or_nothing():
            self._start()
            number, before, whole = self.state.number, self.state.hash, pack_state(self.state, self.agent)
            content = self.store.keys.seal_snapshot(whole)
            self._record("snapshot", {"digest": hashlib.sha256(content).hexdigest()})
        self.store.keep(Snapshot(number, before, content))
