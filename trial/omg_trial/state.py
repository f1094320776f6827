"""The state of a trial: a fold of its events. Nothing here asks a model, draws a number or looks at a clock."""

from __future__ import annotations

import bisect
from typing import Any, NamedTuple

from omg_trial.episodes import Dataset, Example, KeptPlan, Record, StepDecision, StepOutcome
from omg_trial.log.events import FIRST_HASH, Event

FORMAT = 4
"""Format of the events; 3 named nobody who acted, and had no key file."""
KEPT_VERSIONS = 20
"""Number of published versions kept for roll-back."""
KEPT_CHANGES = 200


Body = dict[str, Any]
"""The body of an event."""


class LearningTask(NamedTuple):
    """Learning that has begun, and what it learns from."""

    number: int
    dataset: Dataset
    settled: int
    """Number of examples, from the first on, that are of episodes before which none is open."""


class Version(NamedTuple):
    """A published model, and what it was learned from."""

    number: int
    dataset: Dataset
    model: str
    """The digest of the model; empty if nobody has learned from this dataset, as somebody has withdrawn since."""
    time: str

    def without(self, person: str) -> Version:
        """Return the version after somebody has withdrawn."""
        rest = tuple(example for example in self.dataset if example.person != person)
        return self if len(rest) == len(self.dataset) else self._replace(dataset=rest, model="")


class Change(NamedTuple):
    """A version that was published, refused, or rolled back to."""

    time: str
    version: int
    episodes: int
    """Number of episodes that it was learned from."""
    verdict: str
    """published, refused, or rolled back to."""
    cause: str | None
    """Why it was refused."""


class Incident(NamedTuple):
    """Something that the team must know of."""

    number: int
    time: str
    severity: str
    check: str
    message: str


class State:
    """A fold of all events so far. `missing_reward` is the trial's rule for rewards that never came."""

    def __init__(self, missing_reward: float | None = None) -> None:
        self.missing_reward = missing_reward
        self.number, self.hash, self.time = 0, FIRST_HASH, ""
        self.trial: str | None = None
        """Digest of the trial file."""
        self.secret = ""
        self.software: Body = {}
        """Version and commit of the software that was started last."""
        self.machine: Body = {}
        """The machine on which it runs, and the time since when."""
        self.since = ""
        self.episodes: dict[int, Record] = {}
        self.of_person: dict[str, list[int]] = {}
        self.withdrawn: set[str] = set()
        self.open: dict[int, None] = {}
        """Episodes that are under way, in the order in which they were opened."""
        self.plans: dict[str, KeptPlan] = {}
        """The last certified plan of each person."""
        self._examples: dict[int, Example] = {}
        self._sorted = True
        self.versions: list[Version] = [Version(0, (), "", "")]
        self.latest = 0
        """The highest number that a version has had."""
        self.learning: LearningTask | None = None
        self.changes: list[Change] = []
        """The last changes of the version; earlier ones are in the log."""
        self.incidents: list[Incident] = []
        self.closed_since = 0
        """Episodes that were closed since learning began last."""
        self.stale = False
        """Whether learning must begin again: somebody has withdrawn since, or it did not end."""

    @property
    def version(self) -> Version:
        """The version in use."""
        return self.versions[-1]

    def apply(self, event: Event) -> None:
        """Fold one more event into the state."""
        self.number, self.hash, self.time = event.number, event.hash, event.time
        # One method for each kind of event, called `_on_` and the kind.
        getattr(self, f"_on_{event.kind.replace(' ', '_')}")(event, event.body)

    def last_plan(self, context: str) -> KeptPlan | None:
        """Return the newest plan for a context, by its text, among the last plans of all people, if there is one."""
        plans = [plan for plan in self.plans.values() if plan.context == context]
        return max(plans, key=lambda plan: plan.episode, default=None)

    def next_occasion(self, person: str) -> str:
        """Return the decision point of an opening without a name: an earlier one in which nothing was decided counts.

        Whoever opens, looks, closes and opens again has the same random numbers, and so the same draws.
        """
        return f"#{sum(bool(self.episodes[number].choices) for number in self.of_person.get(person, ()))}"

    def choices_of(self, person: str) -> list[StepDecision]:
        """Return all decisions for a person so far."""
        return [choice for number in self.of_person[person] for choice in self.episodes[number].choices.values()]

    def dataset(self) -> tuple[Dataset, int]:
        """Return the examples of closed episodes, in the order in which these were opened, and how many are settled."""
        if not self._sorted:
            self._examples, self._sorted = dict(sorted(self._examples.items())), True
        found = tuple(self._examples.values())
        # Examples before the first open episode keep their places: later ones may still be inserted among the rest.
        first = next(iter(self.open), None)
        return found, len(found) if first is None else bisect.bisect_left(found, first, key=lambda each: each.episode)

    def restore(self, record: Record) -> None:
        """Take in a record that is later than all others."""
        self.episodes[record.number] = record
        self.of_person.setdefault(record.person, []).append(record.number)
        if record.closed is None:
            self.open[record.number] = None
        self._learn_from(record)

    def _on_founded(self, event: Event, body: Body) -> None:
        if body["format"] != FORMAT:
            raise ValueError(f"the log has format {body['format']}, and this version reads format {FORMAT}")
        self.trial, self.secret = body["trial"], body.get("secret", "")  # empty without the key file

    def _on_started(self, event: Event, body: Body) -> None:
        if body["machine"] != self.machine:
            self.machine, self.since = body["machine"], event.time
        self.software = body["software"]
        if self.learning is not None:  # it ended with the process
            self.learning, self.stale = None, True

    def _on_opened(self, event: Event, body: Body) -> None:
        names = ("person", "occasion", "context", "version", "source", "cause", "certificate")
        known = {name: body[name] for name in names}
        record = Record(number=event.number, opened=event.time, policy=body["policy"], **known)
        self.restore(record)
        if record.source == "plan":
            assert record.policy is not None
            self.plans[record.person] = KeptPlan(record.number, record.context, record.policy)

    def _on_decided(self, event: Event, body: Body) -> None:
        record = self._touch(event)
        known = {name: body[name] for name in StepDecision._fields if name in body}
        lists = {name: tuple(body[name] or ()) for name in ("rules", "probabilities")}
        record.choices[body["step"]] = StepDecision(**known | lists | {"time": event.time})
        self._learn_from(record)

    def _on_reported(self, event: Event, body: Body) -> None:
        record = self._touch(event)
        known = record.outcomes.get(body["step"], StepOutcome())
        record.outcomes[body["step"]] = known.revised(body["reward"], body["next_state"], body["revision"])
        self._learn_from(record)

    def _on_closed(self, event: Event, body: Body) -> None:
        record = self._touch(event)
        record.closed, record.policy = body["cause"], None  # nobody asks for its policy any more: it is in the log
        self.open.pop(record.number, None)
        self._learn_from(record)
        self.closed_since += 1

    def _touch(self, event: Event) -> Record:
        """Return the episode of an event, which is now the last of its events."""
        record = self.episodes[event.body["episode"]]
        record.touched = event.time
        return record

    def _on_withdrawn(self, event: Event, body: Body) -> None:
        """Take the person out of everything: what is left is as if they had never been there."""
        person = body["person"]
        self.withdrawn.add(person)
        for number in self.of_person.pop(person, []):
            del self.episodes[number]
            self.open.pop(number, None)
            self._examples.pop(number, None)
        self.plans.pop(person, None)
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
        for person in {each.person for each in version.dataset} & self.withdrawn:
            version = version.without(person)
        if body["published"]:
            self.versions = [*self.versions, version][-KEPT_VERSIONS:]
        verdict = "published" if body["published"] else "refused"
        self._changed(Change(event.time, self.latest, len(version.dataset), verdict, body["cause"]))

    def _on_rolled_back(self, event: Event, body: Body) -> None:
        self.versions = [each for each in self.versions if each.number <= body["version"]]
        self._changed(Change(event.time, body["version"], len(self.version.dataset), "rolled back to", None))

    def _changed(self, change: Change) -> None:
        self.changes, self.learning = [*self.changes, change][-KEPT_CHANGES:], None

    def _on_reopened(self, event: Event, body: Body) -> None:
        self._touch(event)

    def _on_repeated(self, event: Event, body: Body) -> None:
        self.episodes[body["episode"]].repeats += 1

    def _on_incident(self, event: Event, body: Body) -> None:
        self.incidents.append(Incident(event.number, event.time, body["severity"], body["check"], body["message"]))

    def _on_clock_corrected(self, event: Event, body: Body) -> None:
        """Go on from the time of this event, which may be before those that are there; what is open was seen now."""
        for number in self.open:
            self.episodes[number].touched = event.time

    def _on_snapshot(self, event: Event, body: Body) -> None:
        """Change nothing: the digest of a snapshot is there to be compared."""

    def _learn_from(self, record: Record) -> None:
        """Put together what can be learned from an episode that is closed; late outcomes change it."""
        if record.closed is None:
            return
        example = record.example(self.missing_reward)
        if example is None:  # an outcome that came late contradicts the first decisions
            self._examples.pop(record.number, None)
            return
        if record.number not in self._examples:
            self._sorted = self._sorted and record.number > next(reversed(self._examples), 0)
        self._examples[record.number] = example
