"""The state of a trial: a fold of its events. Nothing here asks a model, draws a number or looks at a clock."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.contexts import context_from_json
from omg_cmdp.live.events import FIRST_HASH, Event, digest
from omg_cmdp.mdp.episode import Trajectory
from omg_cmdp.validation import FloatArray

KEPT_VERSIONS = 20
"""So many published versions can be rolled back to."""


class Choice(NamedTuple):
    """What was decided for one step."""

    state: int
    action: int
    probability: float | None
    """None if something else was done than what was drawn: whoever chose that did not say how likely it was."""
    version: int
    time: str
    rung: str
    cause: str | None
    """Why no higher rung."""
    rules: tuple[str, ...]
    """Those that have changed the probabilities."""


class Outcome(NamedTuple):
    """What came of a step, as far as it is known; of several reports of a value the highest revision counts."""

    reward: float | None = None
    next_state: int | None = None
    revisions: tuple[int, int] = (-1, -1)
    """Of the reward, and of the next state."""

    def revised(self, reward: float | None, next_state: int | None, revision: int) -> Outcome:
        """Return what is known after one more report, in whatever order reports come."""
        of_reward, of_state = self.revisions
        known = self
        if reward is not None and revision > of_reward:
            known, of_reward = known._replace(reward=reward), revision
        if next_state is not None and revision > of_state:
            known, of_state = known._replace(next_state=next_state), revision
        return known._replace(revisions=(of_reward, of_state))

    def contradicts(self, reward: float | None, next_state: int | None, revision: int) -> bool:
        """Return whether a report of the same revision has said something else."""
        pairs = zip((self.reward, self.next_state), (reward, next_state), self.revisions, strict=True)
        return any(value is not None and value != known and revision == own for known, value, own in pairs)


class Example(NamedTuple):
    """What is learned from an episode: plain numbers, the same whenever and wherever they are put together."""

    episode: int
    person: str
    context: str
    """As JSON."""
    states: tuple[int, ...]
    actions: tuple[int, ...]
    rewards: tuple[float | None, ...]

    def trajectory(self) -> Trajectory:
        """Return it as agents want it."""
        context = context_from_json(self.context)
        return Trajectory(context=context, states=self.states, actions=self.actions, rewards=self.rewards)


Dataset = tuple[Example, ...]


@dataclasses.dataclass
class Record:
    """An episode: what is known of it."""

    number: int
    """That of the event with which it was opened; also its name."""
    person: str
    context: str
    opened: str
    version: int
    rung: str
    certificate: float | None
    policy: FloatArray | None
    """(H, S, A), while the episode is open."""
    choices: dict[int, Choice] = dataclasses.field(default_factory=dict)
    outcomes: dict[int, Outcome] = dataclasses.field(default_factory=dict)
    closed: str | None = None
    """Why, if it is."""
    touched: str = ""
    """When something happened in it last."""

    def __post_init__(self) -> None:
        self.touched = self.touched or self.opened

    def next_state(self, step: int) -> int | None:
        """Return the state after a step, as reported or as the next decision tells; None if unknown or in doubt."""
        reported = self.outcomes[step].next_state if step in self.outcomes else None
        seen = self.choices[step + 1].state if step + 1 in self.choices else None
        if reported is not None and seen is not None and reported != seen:
            return None
        return seen if reported is None else reported

    def example(self, missing_reward: float | None) -> Example | None:
        """Return what can be learned: steps from the first on, as long as the state after them is known."""
        states: list[int] = []
        actions: list[int] = []
        rewards: list[float | None] = []
        after: int | None = None
        for step in range(len(self.choices)):
            if step not in self.choices or (after := self.next_state(step)) is None:
                break
            reward = self.outcomes[step].reward if step in self.outcomes else None
            states.append(self.choices[step].state)
            actions.append(self.choices[step].action)
            rewards.append(missing_reward if reward is None else reward)
            last = after
        if not actions:
            return None
        return Example(self.number, self.person, self.context, (*states, last), tuple(actions), tuple(rewards))


class Learning(NamedTuple):
    """Learning that has begun: from what."""

    number: int
    dataset: Dataset
    settled: int
    """How many of the first examples are of episodes before which none is open."""


class Version(NamedTuple):
    """A published model: what it was learned from."""

    number: int
    dataset: Dataset
    model: str
    """The digest of the model."""
    time: str


class Plan(NamedTuple):
    """The last certified plan of a person."""

    episode: int
    context: str
    policy: FloatArray


class Incident(NamedTuple):
    """Something that the team must know of."""

    number: int
    time: str
    severity: str
    check: str
    message: str


class State:
    """What all events so far come to. `missing_reward` is the study's rule for rewards that never came."""

    def __init__(self, missing_reward: float | None = None) -> None:
        self.missing_reward = missing_reward
        self.number, self.hash, self.time = 0, FIRST_HASH, ""
        self.study: str | None = None
        self.secret = ""
        self.episodes: dict[int, Record] = {}
        self.of_person: dict[str, list[int]] = {}
        self.withdrawn: set[str] = set()
        self.open: dict[int, None] = {}
        """Episodes that are under way, in the order in which they were opened."""
        self.plans: dict[str, Plan] = {}
        """By person."""
        self._examples: dict[int, Example] = {}
        self._sorted = True
        self.versions: list[Version] = [Version(0, (), "", "")]
        self.latest = 0
        """The highest number that a version has had."""
        self.learning: Learning | None = None
        self.refused: list[tuple[str, str]] = []
        """When a model was not published, and why."""
        self.incidents: list[Incident] = []
        self.closed_since = 0
        """Episodes that were closed since learning began last."""
        self.stale = False
        """Whether it must begin again: somebody has withdrawn since, or it did not end."""

    @property
    def version(self) -> Version:
        """What is in use."""
        return self.versions[-1]

    def apply(self, event: Event) -> None:
        """Take one more event in."""
        self.number, self.hash, self.time = event.number, event.hash, event.time
        _KINDS[event.kind](self, event, **event.body)

    def last_plan(self, context: str) -> Plan | None:
        """Return the last certified plan for a context, whoever it was made for."""
        plans = [plan for plan in self.plans.values() if plan.context == context]
        return max(plans, key=lambda plan: plan.episode, default=None)

    def dataset(self) -> tuple[Dataset, int]:
        """Return the examples of closed episodes, in the order in which these were opened, and how many are settled."""
        if not self._sorted:
            self._examples, self._sorted = dict(sorted(self._examples.items())), True
        found = tuple(self._examples.values())
        first = next(iter(self.open), None)
        return found, len(found) if first is None else bisect.bisect_left(found, first, key=lambda each: each.episode)

    def digest(self) -> str:
        """Return a digest of everything that decides what happens next; not of who has withdrawn, nor of incidents."""
        records = [_plain(record) for record in self.episodes.values()]
        plans = {person: [plan.episode, plan.policy.tolist()] for person, plan in self.plans.items()}
        versions = [[version.number, *version.dataset] for version in self.versions]
        return digest([self.study, records, plans, versions, self.dataset()])

    def restore(self, record: Record) -> None:
        """Take in a record that is later than all others."""
        self.episodes[record.number] = record
        self.of_person.setdefault(record.person, []).append(record.number)
        if record.closed is None:
            self.open[record.number] = None
        self._learn_from(record)

    def _founded(self, event: Event, *, study: str, secret: str, **_: Any) -> None:
        self.study, self.secret = study, secret

    def _started(self, event: Event, **_: Any) -> None:
        if self.learning is not None:  # it ended with the process
            self.learning, self.stale = None, True

    def _opened(
        self,
        event: Event,
        *,
        person: str,
        context: str,
        policy: list[Any],
        version: int,
        rung: str,
        certificate: float | None,
        **_: Any,
    ) -> None:
        table = np.array(policy)
        self.restore(Record(event.number, person, context, event.time, version, rung, certificate, table))
        if rung == "plan":
            self.plans[person] = Plan(event.number, context, table)

    def _decided(
        self,
        event: Event,
        *,
        episode: int,
        step: int,
        state: int,
        action: int,
        probability: float | None,
        version: int,
        rung: str,
        cause: str | None,
        rules: Sequence[str],
        **_: Any,
    ) -> None:
        record = self.episodes[episode]
        record.choices[step] = Choice(state, action, probability, version, event.time, rung, cause, tuple(rules))
        record.touched = event.time
        self._learn_from(record)

    def _reported(
        self,
        event: Event,
        *,
        episode: int,
        step: int,
        reward: float | None,
        next_state: int | None,
        revision: int,
        **_: Any,
    ) -> None:
        record = self.episodes[episode]
        record.outcomes[step] = record.outcomes.get(step, Outcome()).revised(reward, next_state, revision)
        record.touched = event.time
        self._learn_from(record)

    def _closed(self, event: Event, *, episode: int, cause: str, **_: Any) -> None:
        record = self.episodes[episode]
        record.closed, record.policy, record.touched = cause, None, event.time
        self.open.pop(episode, None)
        self._learn_from(record)
        self.closed_since += 1

    def _withdrawn(self, event: Event, *, person: str, **_: Any) -> None:
        """Take the person out of everything: what is left is as if they had never been there."""
        self.withdrawn.add(person)
        for number in self.of_person.pop(person, []):
            del self.episodes[number]
            self.open.pop(number, None)
            self._examples.pop(number, None)
        self.plans.pop(person, None)
        self.versions = [
            each._replace(dataset=tuple(example for example in each.dataset if example.person != person))
            for each in self.versions
        ]
        self.stale = True

    def _learning(self, event: Event, **_: Any) -> None:
        self.learning = Learning(event.number, *self.dataset())
        self.closed_since, self.stale = 0, False

    def _learned(self, event: Event, *, version: int, model: str, published: bool, cause: str | None, **_: Any) -> None:
        assert self.learning is not None
        self.latest = version
        if published:
            kept = tuple(each for each in self.learning.dataset if each.person not in self.withdrawn)
            self.versions = [*self.versions, Version(version, kept, model, event.time)][-KEPT_VERSIONS:]
        else:
            self.refused.append((event.time, cause or ""))
        self.learning = None

    def _rolled_back(self, event: Event, *, version: int, **_: Any) -> None:
        self.versions = [each for each in self.versions if each.number <= version]
        self.learning = None

    def _repeated(self, event: Event, **_: Any) -> None:
        """Nothing: the step was decided before."""

    def _incident(self, event: Event, *, severity: str, check: str, message: str, **_: Any) -> None:
        self.incidents.append(Incident(event.number, event.time, severity, check, message))

    def _learn_from(self, record: Record) -> None:
        """Put together what can be learned from an episode that is closed; late outcomes change it."""
        if record.closed is None or (example := record.example(self.missing_reward)) is None:
            return
        if record.number not in self._examples:
            self._sorted = self._sorted and record.number > next(reversed(self._examples), 0)
        self._examples[record.number] = example


_KINDS: dict[str, Callable[..., None]] = {
    "founded": State._founded,
    "started": State._started,
    "opened": State._opened,
    "decided": State._decided,
    "repeated": State._repeated,
    "reported": State._reported,
    "closed": State._closed,
    "withdrawn": State._withdrawn,
    "learning": State._learning,
    "learned": State._learned,
    "rolled back": State._rolled_back,
    "incident": State._incident,
}


def _plain(record: Record) -> list[Any]:
    """Return a record as JSON has it; its sizes do not depend on when things were reported."""
    policy = None if record.policy is None else record.policy.tolist()
    head = [
        record.number,
        record.person,
        record.context,
        record.opened,
        record.version,
        record.rung,
        record.certificate,
    ]
    choices = [[step, *choice] for step, choice in sorted(record.choices.items())]
    outcomes = [[step, *outcome] for step, outcome in sorted(record.outcomes.items())]
    return [*head, policy, choices, outcomes, record.closed]
