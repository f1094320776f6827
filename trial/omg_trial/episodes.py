"""An episode as it is known: what was decided, what came of it, and what can be learned from it."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from pydantic import PlainSerializer, PlainValidator, SerializationInfo

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.trajectory import Trajectory

PolicyTable = list[list[list[float]]]
"""A policy (H, S, A), as JSON has it."""


class StepDecision(NamedTuple):
    """The decision of one step."""

    state: int
    action: int | None
    """None if nothing was done for somebody who was not available."""
    probability: float | None
    """None if the app did something else than what was drawn, or nothing was drawn."""
    version: int
    time: str
    source: str
    """Where the policy comes from: a value of `decisions.PolicySource`."""
    cause: str | None
    """Why it is not a fresh plan; None if it is."""
    rules: tuple[str, ...]
    """Rules that have changed the probabilities."""
    probabilities: tuple[float, ...] = ()
    """Probabilities of all actions, from which the action was drawn; empty if nothing was."""
    available: bool = True
    """Whether there was something to draw."""
    closed: tuple[int, ...] = ()
    """Actions that the state admits, and that a rule closed."""
    local: str = ""
    """The time by the person's own clock."""
    drift: float | None = None
    """Seconds by which the clock of the device was ahead; None if it did not say, or has acted before."""


class StepOutcome(NamedTuple):
    """The outcome of a step, as far as it is known; of several reports of a value the highest revision counts."""

    reward: float | None = None
    next_state: int | None = None
    revisions: tuple[int, int] = (-1, -1)
    """Revisions of the reward and of the next state; -1 before the first report."""

    def revised(self, reward: float | None, next_state: int | None, revision: int) -> StepOutcome:
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
    """The part of an episode that is learned from: plain numbers, the same whenever they are put together."""

    episode: int
    person: str
    context: str
    """As JSON."""
    states: tuple[int, ...]
    actions: tuple[int, ...]
    rewards: tuple[float | None, ...]

    def trajectory(self, context: Context) -> Trajectory:
        """Return the example as a trajectory, which agents learn from; `context` is what its text means to them."""
        return Trajectory(context=context, states=self.states, actions=self.actions, rewards=self.rewards)


def _place(example: Example, info: SerializationInfo) -> int:
    places: Any = info.context
    return int(places.setdefault(example, len(places)))


SharedExample = Annotated[Example, PlainSerializer(_place), PlainValidator(lambda place, info: info.context[place])]
"""In a snapshot it is a place among all examples: twenty versions have the same ones."""
Dataset = tuple[SharedExample, ...]


class Allowance(NamedTuple):
    """What an app may do without a network although a person's week has limits; `handlers.allowances` makes it."""

    until: str
    policy: PolicyTable
    """Probabilities (H, S, A) that keep the limits, whatever states follow."""
    rules: list[list[list[str]]]
    closed: list[list[list[int]]]
    """Rules that have changed them, and actions that these close, (H, S)."""
    week: str
    """The week whose limits they keep, by the person's own clock."""

    def holds(self, when: datetime.datetime, week: str) -> bool:
        """Return whether it is about a decision; another zone or a corrected clock may lead into another week."""
        return when <= datetime.datetime.fromisoformat(self.until) and self.week == week


@dataclasses.dataclass
class Record:
    """An episode, as far as it is known."""

    number: int
    """Number of the event with which it was opened; it is the name of the episode."""
    person: str
    occasion: str
    """Name of the decision point; if the app gave none, # and the number of those before in which it decided."""
    context: str
    opened: str
    version: int
    source: str
    cause: str | None
    """Why the policy is not a fresh plan; None if it is."""
    certificate: float | None
    policy: PolicyTable | None
    """(H, S, A), while the episode is open."""
    arm: str = "learning"
    available: bool = True
    """Whether anything is drawn in it."""
    allowance: Allowance | None = None
    choices: dict[int, StepDecision] = dataclasses.field(default_factory=dict)
    outcomes: dict[int, StepOutcome] = dataclasses.field(default_factory=dict)
    closed: str | None = None
    """Why it was closed; None while it is open."""
    touched: str = ""
    """Time of the last event in it."""
    repeats: int = 0
    """Number of steps that were asked for again, under another key."""

    def steps(self) -> Iterator[DecidedStep]:
        """Yield the decisions, in their order, with what is known of their outcomes."""
        for number, choice in sorted(self.choices.items()):
            yield DecidedStep(self, number, choice, self.outcomes.get(number, StepOutcome()))

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
        for _, step, choice, outcome in self.steps():
            after = self.next_state(step)
            # No model knows what nothing at all does.
            if step != len(actions) or after is None or choice.action is None:
                break
            states.append(choice.state)
            actions.append(choice.action)
            rewards.append(missing_reward if outcome.reward is None else outcome.reward)
            last = after
        if not actions:
            return None
        return Example(self.number, self.person, self.context, (*states, last), tuple(actions), tuple(rewards))


class DecidedStep(NamedTuple):
    """A decision in its episode, and what came of it."""

    record: Record
    number: int
    choice: StepDecision
    outcome: StepOutcome

    @property
    def person(self) -> str:
        """The person it was for."""
        return self.record.person

    @property
    def time(self) -> datetime.datetime:
        """When it was decided."""
        return datetime.datetime.fromisoformat(self.choice.time)


class KeptPlan(NamedTuple):
    """The last certified plan of a person."""

    episode: int
    context: str
    policy: PolicyTable
