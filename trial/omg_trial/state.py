"""The state of a trial: a fold of its events. Nothing here asks a model, draws a number or looks at a clock."""

from __future__ import annotations

import bisect
import dataclasses
import datetime
from dataclasses import field
from typing import Annotated, Any

from pydantic import PlainSerializer

from omg_cmdp.validation import UNEXPECTED
from omg_trial.episodes import Allowance, Dataset, KeptPlan, Record, SharedExample, StepDecision, StepOutcome
from omg_trial.incident import Incident
from omg_trial.keys.marks import alias_of
from omg_trial.log.events import FIRST_HASH, FORMAT, Event
from omg_trial.people.participants import CONTROL, Halt, Participant, week_of
from omg_trial.versions import KEPT_CHANGES, KEPT_VERSIONS, Change, LearningTask, Version

LONG_REST = datetime.timedelta(days=1)
"""Time between the last event and a start in which an app is not believed to have been silent."""
Body = dict[str, Any]
"""The body of an event."""
Names = Annotated[set[str], PlainSerializer(sorted)]


@dataclasses.dataclass
class State:
    """A fold of all events so far. A snapshot has all of it, by the types of the fields."""

    missing_reward: float | None = None
    """The trial's rule for rewards that never came."""
    number: int = 0
    hash: str = FIRST_HASH
    time: str = ""
    trial: str | None = None
    """Digest of the trial file."""
    secret: str = ""
    software: Body = field(default_factory=dict)
    """Version and commit of the software that was started last."""
    machine: Body = field(default_factory=dict)
    """The machine on which it runs, and the time since when."""
    since: str = ""
    episodes: dict[int, Record] = field(default_factory=dict)
    of_person: dict[str, list[int]] = field(default_factory=dict)
    people: dict[str, Participant] = field(default_factory=dict)
    """Everybody who was enrolled and has not withdrawn, also those without an episode."""
    halted: Halt | None = None
    """The pause or the stop of the whole trial."""
    halted_actions: dict[int, Halt] = field(default_factory=dict)
    withdrawn: Names = field(default_factory=set)
    erased: Names = field(default_factory=set)
    """Aliases."""
    open: dict[int, None] = field(default_factory=dict)
    """Episodes that are under way, in the order in which they were opened."""
    plans: dict[str, KeptPlan] = field(default_factory=dict)
    """The last certified plan of each person."""
    examples: dict[int, SharedExample] = field(default_factory=dict)
    """What can be learned from closed episodes, in any order; see `dataset`."""
    versions: list[Version] = field(default_factory=lambda: [Version(0, (), "", "")])
    latest: int = 0
    """The highest number that a version has had."""
    waiting: Version | None = None
    """A model that has passed its checks, and waits until somebody publishes it."""
    learning: LearningTask | None = None
    changes: list[Change] = field(default_factory=list)
    """The last changes of the version; earlier ones are in the log."""
    incidents: list[Incident] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    """The day of the last digest, by channel."""
    closed_since: int = 0
    """Episodes that were closed since learning began last."""
    stale: bool = False
    """Whether learning must begin again: somebody has withdrawn since, or it did not end."""

    @property
    def version(self) -> Version:
        """The version in use."""
        return self.versions[-1]

    def apply(self, event: Event) -> None:
        """Fold one more event into the state."""
        before, self.number, self.hash, self.time = self.time, event.number, event.hash, event.time
        # One method for each kind of event, called `_on_` and the kind.
        try:
            getattr(self, f"_on_{event.kind.replace(' ', '_')}")(event, event.body)
            if event.kind == "started" and before:
                self._leave_out(datetime.datetime.fromisoformat(event.time) - datetime.datetime.fromisoformat(before))
        except UNEXPECTED as error:
            raise event.unexpected(error) from error

    def last_plan(self, context: str) -> KeptPlan | None:
        """Return the newest plan for a context, by its text, among the last plans of all people, if there is one."""
        plans = [plan for plan in self.plans.values() if plan.context == context]
        return max(plans, key=lambda plan: plan.episode, default=None)

    def next_occasion(self, person: str) -> str:
        """Return the decision point of an opening without a name: an earlier one in which nothing was decided counts.

        Whoever opens, looks, closes and opens again has the same random numbers, and so the same draws.
        """
        return f"#{sum(bool(self.episodes[number].choices) for number in self.of_person.get(person, ()))}"

    def dataset(self) -> tuple[Dataset, int]:
        """Return the examples of closed episodes, in the order in which these were opened, and how many are settled."""
        found = tuple(example for _, example in sorted(self.examples.items()))
        # Examples before the first open episode keep their places: later ones may still be inserted among the rest.
        first = next(iter(self.open), None)
        return found, len(found) if first is None else bisect.bisect_left(found, first, key=lambda each: each.episode)

    def _on_founded(self, event: Event, body: Body) -> None:
        if body["format"] != FORMAT:
            raise ValueError(f"the log has format {body['format']}, and this version reads format {FORMAT}")
        self.trial, self.secret, _ = body["trial"], body.get("secret", ""), body["file"]  # no secret without the keys

    def _on_started(self, event: Event, body: Body) -> None:
        if body["machine"] != self.machine:
            self.machine, self.since = body["machine"], event.time
        self.software = body["software"]
        if self.learning is not None:  # it ended with the process
            self.learning, self.stale = None, True

    def _leave_out(self, rest: datetime.timedelta) -> None:
        """Leave a long rest out of the silence of open episodes: nobody could call, or the clock is ahead by it."""
        for record in [self.episodes[number] for number in self.open] if rest > LONG_REST else []:
            touched = datetime.datetime.fromisoformat(record.touched) + rest
            record.touched = touched.isoformat(timespec="microseconds")

    def _on_opened(self, event: Event, body: Body) -> None:
        names = ("person", "occasion", "context", "version", "source", "cause", "certificate", "arm", "available")
        known = {name: body[name] for name in names}
        known["allowance"] = body["allowance"] and Allowance(**body["allowance"])
        record = Record(number=event.number, opened=event.time, touched=event.time, policy=body["policy"], **known)
        self.episodes[record.number], self.open[record.number] = record, None
        self.of_person.setdefault(record.person, []).append(record.number)
        self.people.setdefault(record.person, Participant(arm=record.arm, zone=body["zone"], enrolled=event.time))
        if record.source == "plan":
            self.plans[record.person] = KeptPlan(record.number, record.context, body["policy"])

    def _on_decided(self, event: Event, body: Body) -> None:
        record = self._touch(event, body)
        known = {name: body[name] for name in StepDecision._fields if name in body}
        lists = {name: tuple(body[name] or ()) for name in ("rules", "probabilities", "closed")}
        record.choices[body["step"]] = StepDecision(**known | lists | {"time": event.time})
        person, week = self.people[record.person], week_of(datetime.datetime.fromisoformat(body["local"]))
        chances = body["probabilities"] if body["available"] else None
        self.people[record.person] = person.decided(week, body["action"], chances)
        self._learn_from(record)

    def _on_reported(self, event: Event, body: Body) -> None:
        record = self._touch(event, body)
        known = record.outcomes.get(body["step"], StepOutcome())
        record.outcomes[body["step"]] = known.revised(body["reward"], body["next_state"], body["revision"])
        self._learn_from(record)

    def _on_closed(self, event: Event, body: Body) -> None:
        record = self._touch(event, body)
        record.closed, record.policy, record.allowance = body["cause"], None, None  # these are in the log
        self.open.pop(record.number, None)
        self._learn_from(record)
        self.closed_since += 1

    def _touch(self, event: Event, body: Body) -> Record:
        """Return the episode of an event, which is now the last of its events."""
        record = self.episodes[body["episode"]]
        record.touched = event.time
        return record

    _on_reopened = _touch

    def _on_withdrawn(self, event: Event, body: Body) -> None:
        self.withdrawn.add(body["person"])
        self._take_out(body["person"])

    def _on_erased(self, event: Event, body: Body) -> None:
        self.erased.add(body["person"])
        for person in [each for each in (*self.people, *self.withdrawn) if alias_of(self.secret, each) in self.erased]:
            self.withdrawn.discard(person)
            self._take_out(person)
        self.learning = None  # what it learns from may be gone; it begins again

    def has_left(self, person: str) -> bool:
        """Return whether somebody has withdrawn or was erased."""
        return person in self.withdrawn or alias_of(self.secret, person) in self.erased

    def _take_out(self, person: str) -> None:
        """Take the person out of everything: what is left is as if they had never been there."""
        for number in self.of_person.pop(person, []):
            del self.episodes[number]
            self.open.pop(number, None)
            self.examples.pop(number, None)
        self.plans.pop(person, None)
        self.people.pop(person, None)
        self.waiting = None if self.waiting is None else self.waiting.without(person)
        # A new list: a view of the moment before keeps the old one.
        self.versions = [each.without(person) for each in self.versions]
        self.stale = True

    def _on_learning(self, event: Event, body: Body) -> None:
        self.learning = LearningTask(event.number, *self.dataset())
        self.closed_since, self.stale = 0, False

    def _on_learned(self, event: Event, body: Body) -> None:
        assert self.learning is not None
        self.latest = body["version"]
        # Somebody may have withdrawn while the model learned; `stale` then makes it learn again without them.
        version = Version(self.latest, self.learning.dataset, body["model"], event.time)
        for person in {each.person for each in version.dataset}:
            version = version.without(person) if self.has_left(person) else version
        if body["published"]:
            self.versions = [*self.versions, version][-KEPT_VERSIONS:]
        elif body["cause"] is None:
            self.waiting = version
        verdict = "published" if body["published"] else "waiting" if body["cause"] is None else "refused"
        self._changed(Change(event.time, self.latest, len(version.dataset), verdict, body["cause"]))
        self.learning = None

    def _on_published(self, event: Event, body: Body) -> None:
        assert self.waiting is not None
        self.versions = [*self.versions, self.waiting][-KEPT_VERSIONS:]
        self.waiting = None
        self._changed(Change(event.time, body["version"], len(self.version.dataset), "published", body["cause"]))

    def _on_rolled_back(self, event: Event, body: Body) -> None:
        self.versions = [each for each in self.versions if each.number <= body["version"]]
        self._changed(Change(event.time, body["version"], len(self.version.dataset), "rolled back to", None))
        self.learning = None

    def _changed(self, change: Change) -> None:
        self.changes = [*self.changes, change][-KEPT_CHANGES:]

    def _on_enrolled(self, event: Event, body: Body) -> None:
        """Take a person in, or change what is known of one; arm, pauses and the week stay."""
        names = ("zone", "consent_from", "consent_to", "end")
        known = self.people.get(body["person"]) or Participant(arm=body["arm"], zone="", enrolled=event.time)
        self.people[body["person"]] = known._replace(**{name: body[name] for name in names})

    def _on_paused(self, event: Event, body: Body) -> None:
        """Pause, stop or resume a person, an action, or the whole trial."""
        halt = None if event.kind == "resumed" else Halt(event.kind, body["cause"], event.time)
        if body["person"] is not None:
            self.people[body["person"]] = self.people[body["person"]]._replace(paused=halt)
        elif body["action"] is None:
            self.halted = halt
        else:
            rest = {action: other for action, other in self.halted_actions.items() if action != body["action"]}
            self.halted_actions = rest if halt is None else {**rest, body["action"]: halt}

    _on_stopped = _on_resumed = _on_paused

    def _on_repeated(self, event: Event, body: Body) -> None:
        self.episodes[body["episode"]].repeats += 1

    def _on_incident(self, event: Event, body: Body) -> None:
        self.incidents.append(Incident(event.number, event.time, body["severity"], body["check"], body["message"]))

    def _on_alerted(self, event: Event, body: Body) -> None:
        if "digest" in body:
            self.digests = {**self.digests, body["channel"]: body["digest"]}
        else:
            place, known = self.find_incident(body["incident"])
            self.incidents[place] = known._replace(alerted=(*known.alerted, body["channel"]))

    def _on_acknowledged(self, event: Event, body: Body) -> None:
        place, known = self.find_incident(body["incident"])
        self.incidents[place] = known._replace(note=body["note"])

    def find_incident(self, number: int) -> tuple[int, Incident]:
        """Return the place of an incident among all, and the incident; `KeyError` if there is none."""
        place = bisect.bisect_left(self.incidents, number, key=lambda each: each.number)
        if place == len(self.incidents) or self.incidents[place].number != number:
            raise KeyError(number)
        return place, self.incidents[place]

    def _on_clock_corrected(self, event: Event, body: Body) -> None:
        """Go on from the time of this event, which may be before those that are there; what is open was seen now."""
        for number in self.open:
            self.episodes[number].touched = event.time

    def _on_snapshot(self, event: Event, body: Body) -> None:
        """Change nothing: the digest of a snapshot is there to be compared."""

    _on_looked = _on_snapshot

    def _learn_from(self, record: Record) -> None:
        """Put together what can be learned from an episode that is closed; late outcomes change it.

        Nothing is learned from the control group: the arms stay independent of each other.
        """
        if record.closed is None or record.arm == CONTROL:
            return
        example = record.example(self.missing_reward)
        if example is not None:
            self.examples[record.number] = example
        else:  # an outcome that came late contradicts the first decisions
            self.examples.pop(record.number, None)
