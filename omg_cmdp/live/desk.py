"""The desk: it answers calls, one after the other, and every answer is an event before anybody hears it."""

from __future__ import annotations

import contextlib
import datetime
import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.contexts import context_from_json
from omg_cmdp.live import calls
from omg_cmdp.live.calls import OlderLog, Refusal, parse
from omg_cmdp.live.chance import uniform
from omg_cmdp.live.events import Event, canonical, digest, verified
from omg_cmdp.live.learning import Lesson, Trainer
from omg_cmdp.live.rules import moment, ruled
from omg_cmdp.live.snapshots import frozen_state, thawed_state
from omg_cmdp.live.state import Choice, Learning, Record
from omg_cmdp.live.store import Store
from omg_cmdp.live.trial import Trial
from omg_cmdp.provenance import provenance
from omg_cmdp.sampling import draw_index
from omg_cmdp.validation import FloatArray

FORMAT = 1
LONGEST_KEY = 200
RECENT = 10_000
"""So many answers are remembered, for calls that are repeated soon; the store has all."""


class Asked(NamedTuple):
    """A call as it arrives. `key` makes it one call, however often it is sent."""

    name: str
    body: dict[str, Any]
    key: str | None
    by: str = "app"
    """The role of whoever asks."""
    seen: str | None = None
    """The `mark` of the last event that the caller knows of."""


class Answer(NamedTuple):
    """What is answered: the status of HTTP, and a JSON text."""

    status: int
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
            self._happen("started", {"software": provenance()})

    def _founding(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "name": self.trial.name,
            "study": self.trial.digest,
            "content": self.trial.content,
            "secret": secrets.token_hex(32),
        }

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
            return Answer(200, before.answer, before.mark)
        kind, body, answer = _HANDLERS[type(call)](self, call)
        event = self._happen(kind, body, key=asked.key, request=request, answer=answer)
        if kind == "rolled back":
            self.agent = self.trainer.train(self.state.version.dataset)
        assert event.answer is not None
        return Answer(200, event.answer, event.mark)

    def _check_seen(self, seen: str | None) -> None:
        """Refuse whoever has seen more than the log has: an older backup was restored, say."""
        head = f"{self.state.number}:{self.state.hash}"
        if seen is not None and seen != head and self.store.mark(int(seen.partition(":")[0])) != seen:
            raise OlderLog(seen, head)

    def _happen(
        self,
        kind: str,
        body: dict[str, Any],
        key: str | None = None,
        request: str | None = None,
        answer: dict[str, Any] | None = None,
    ) -> Event:
        """Let something have happened: an event of the batch, and the state after it."""
        now = self.clock().astimezone(datetime.UTC).isoformat(timespec="microseconds")
        number, time = self.state.number + 1, max(now, self.state.time)
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
            self._happen("started", {"software": provenance()})

    def _now(self) -> datetime.datetime:
        return max(self.clock().astimezone(datetime.UTC), moment(self.state.time))

    # Episodes.

    def _open(self, call: calls.Open) -> tuple[str, dict[str, Any], dict[str, Any]]:
        if call.person in self.state.withdrawn:
            raise Refusal(410, "`person` must be in the study, got one who has withdrawn")
        for number in self.state.of_person.get(call.person, ()):
            if number in self.state.open:
                raise Refusal(409, f"`person` must have no open episode, got one with episode {number} under way")
        rung, cause, policy, certificate, gamma = self._planned(call.context)
        number, version = self.state.number + 1, self.state.version.number
        body = {
            **call._asdict(),
            "policy": policy.tolist(),
            "version": version,
            "rung": rung,
            "cause": cause,
            "certificate": certificate,
            "gamma": gamma,
        }
        answer = {
            "episode": number,
            "version": version,
            "rung": rung,
            "cause": cause,
            "certificate": certificate,
            "horizon": self.trial.space.horizon,
            "states": self.trial.states,
            "actions": self.trial.actions,
            "policy": policy.tolist(),
            "drawn": None if self._changes_rows() else self._drawn(call.person, number, policy),
        }
        return "opened", body, answer

    def _changes_rows(self) -> bool:
        """Whether a step may be decided in another way than by the policy that its episode began with."""
        limits = self.trial.limits
        return bool(self.trial.replan or self.trial.window or limits.most or limits.least)

    def _drawn(self, person: str, episode: int, policy: FloatArray) -> list[list[str]]:
        """Return the action of every step and state, (H, S), as `decide` would answer: for an app without a network."""
        numbers = [uniform(self.state.secret, person, episode, step) for step in range(len(policy))]
        return [
            [self.trial.actions[draw_index(row, number)] for row in rows]
            for rows, number in zip(policy, numbers, strict=True)
        ]

    def _planned(self, context: str) -> tuple[str, str | None, FloatArray, float | None, float | None]:
        """Return the highest rung of the ladder that holds: which, why not a higher one, and the policy."""
        try:
            return "plan", None, *planned(self.trial, self.agent, context)
        except (ArithmeticError, MemoryError, ValueError) as error:
            cause = f"no certified plan: {type(error).__name__}"
        last = self.state.last_plan(context)
        if last is not None:
            return "last plan", cause, last.policy, None, None
        return "fixed", cause, self.trial.fixed_policy(), None, None

    def _record(self, episode: int) -> Record:
        record = self.state.episodes.get(episode)
        if record is None:
            raise Refusal(404, f"`episode` must be one that was opened, got {episode}")
        return record

    def _decide(self, call: calls.Decide) -> tuple[str, dict[str, Any], dict[str, Any]]:
        record = self._record(call.episode)
        if record.closed is not None:
            raise Refusal(409, f"`episode` must be open, got {call.episode}, which is closed")
        if call.action is not None and not self.trial.space.admissible[call.state, call.action]:
            names = self.trial.states[call.state], self.trial.actions[call.action]
            raise Refusal(422, f"`action` must be admissible in the state {names[0]}, got {names[1]}")
        if call.step in record.choices:
            return self._repeated(call, record.choices[call.step])
        assert record.policy is not None
        rung, cause, policy, version = record.rung, None, record.policy, record.version
        if self.trial.replan:
            rung, cause, policy, _, _ = self._planned(record.context)
            version = self.state.version.number
        earlier = (
            [
                choice
                for number in self.state.of_person[record.person]
                for choice in self.state.episodes[number].choices.values()
            ]
            if self._changes_rows()
            else []
        )
        chances, rules = ruled(self.trial, policy[call.step, call.state], call.state, self._now(), earlier)
        drawn = draw_index(chances, uniform(self.state.secret, record.person, record.number, call.step))
        deviates = call.action is not None and call.action != drawn
        action = drawn if call.action is None else call.action
        body = {
            "episode": call.episode,
            "step": call.step,
            "state": call.state,
            "action": action,
            "drawn": drawn,
            "probability": None if deviates else float(chances[drawn]),
            "probabilities": chances.tolist(),
            "version": version,
            "rung": rung,
            "cause": cause,
            "rules": rules,
        }
        return "decided", body, self._told(body)

    def _told(self, body: dict[str, Any]) -> dict[str, Any]:
        fallback = {"rung": body["rung"], "cause": body["cause"], "rules": list(body["rules"])}
        return {
            "episode": body["episode"],
            "step": body["step"],
            "action": self.trial.actions[body["action"]],
            "probability": body["probability"],
            "version": body["version"],
            "fallback": fallback if body["rung"] != "plan" or body["rules"] else None,
        }

    def _repeated(self, call: calls.Decide, made: Choice) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """Answer a step that was decided before, under another key: with the same action."""
        if call.state != made.state:
            names = self.trial.states[made.state], self.trial.states[call.state]
            raise Refusal(409, f"`state` must be {names[0]}, for which step {call.step} was decided, got {names[1]}")
        if call.action is not None and call.action != made.action:
            raise Refusal(409, f"`action` must be {self.trial.actions[made.action]}, as was decided, got another one")
        body = {"episode": call.episode, "step": call.step}
        return "repeated", body, self._told({**body, **made._asdict()})

    def _report(self, call: calls.Report) -> tuple[str, dict[str, Any], dict[str, Any]]:
        record = self._record(call.episode)
        known = record.outcomes.get(call.step)
        if known is not None and known.contradicts(call.reward, call.next_state, call.revision):
            rule = f"be above {call.revision} for a correction of step {call.step}"
            raise Refusal(409, f"`revision` must {rule}, got {call.revision} with other values than before")
        return "reported", call._asdict(), {"episode": call.episode, "step": call.step, "revision": call.revision}

    def _close(self, call: calls.Close) -> tuple[str, dict[str, Any], dict[str, Any]]:
        record = self._record(call.episode)
        if record.closed is not None:
            raise Refusal(409, f"`episode` must be open, got {call.episode}, which is closed")
        return "closed", call._asdict(), call._asdict()

    # People and models.

    def _withdraw(self, call: calls.Withdraw) -> tuple[str, dict[str, Any], dict[str, Any]]:
        if call.person not in self.state.of_person:
            status, got = (410, "one who has withdrawn") if call.person in self.state.withdrawn else (404, "another")
            raise Refusal(status, f"`person` must be in the study, got {got}")
        return "withdrawn", call._asdict(), {"withdrawn": True}

    def _learn(self, call: calls.Learn) -> tuple[str, dict[str, Any], dict[str, Any]]:
        if self.state.learning is not None:
            raise Refusal(409, "learning must have ended before it begins again, got learning under way")
        return "learning", {}, {"learning": self.state.number + 1}

    def _roll_back(self, call: calls.RollBack) -> tuple[str, dict[str, Any], dict[str, Any]]:
        known = [version.number for version in self.state.versions]
        if call.version not in known[:-1]:
            raise Refusal(
                409, f"`version` must be one of {known[:-1]}, those before the one in use, got {call.version}"
            )
        return "rolled back", call._asdict(), call._asdict()

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


def planned(trial: Trial, agent: ModelAgent, context: str) -> tuple[FloatArray, float, float]:
    """Return the policy for a context, with the study's floor; its certificate, and γ."""
    decision = agent.decide(context_from_json(context))
    if not math.isfinite(decision.certificate):
        raise ValueError("a plan has no certificate")
    policy = trial.floor.policy(decision.policy) if trial.floor.probability else decision.policy
    return np.asarray(policy), float(decision.certificate), float(decision.gamma)


_HANDLERS: dict[type, Callable[..., tuple[str, dict[str, Any], dict[str, Any]]]] = {
    calls.Open: Desk._open,
    calls.Decide: Desk._decide,
    calls.Report: Desk._report,
    calls.Close: Desk._close,
    calls.Withdraw: Desk._withdraw,
    calls.Learn: Desk._learn,
    calls.RollBack: Desk._roll_back,
}
