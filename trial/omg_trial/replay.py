"""Replay: the log is folded anew, and everything that was computed then is computed again and compared, bit for bit."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.sampling import draw_index
from omg_cmdp.validation import FloatArray, instance_of
from omg_trial.contract.calls import Decide
from omg_trial.decisions import DecisionInputs, PolicySource, decide_step, draw_arm, grant_allowance, make_plan, uniform
from omg_trial.episodes import Dataset
from omg_trial.keys.marks import ALIAS
from omg_trial.keys.ring import KeyFileError
from omg_trial.learning import NO_MEMORY, Trainer, model_digest
from omg_trial.log.database import Database
from omg_trial.log.events import Event, canonical, verified
from omg_trial.log.machine import TOLERANCE, machine
from omg_trial.people.participants import CONTROL, Participant
from omg_trial.rules import moment
from omg_trial.state import State
from omg_trial.trial_file.trial import Trial

SHOWN = 20
SAMPLED = 5
"""Number of the last plans that are made again at every start."""


class Replay:
    """Follows a log with the agent that was in use at each event: how much was computed again, and what differs."""

    def __init__(self, trial: Trial) -> None:
        self.trial, self.state = trial, State(trial.missing_reward)
        self.trainer = Trainer(trial)
        self.agent: ModelAgent = trial.agent()
        self.policies = self.decisions = self.versions = 0
        self.only_drawn = 0
        """Decisions of which only the draw is compared: the person was erased, or nobody knows why planning failed."""
        self.fallbacks: collections.Counter[str] = collections.Counter()
        """Decisions whose policy was not a fresh plan, by its source and cause."""
        self.gone: collections.Counter[str] = collections.Counter()
        """Policies and models that cannot be computed again, as people in them were erased."""
        self.known = True
        """Whether the agent in use is known: it has not learned from anybody who was erased."""
        self.differences: list[str] = []
        """The first twenty."""
        self.exact = self.bits = True
        """Whether the events at hand, and all of them so far, were computed on a machine like this one."""
        self.largest = 0.0
        """Largest difference of a probability that another machine has computed."""

    def _follow(self, event: Event) -> None:
        """Compute an event again, and fold it."""
        check: Callable[[Event], None] | None = getattr(self, f"_check_{event.kind}", None)
        try:
            if check is not None:
                check(event)
        except Exception as error:  # whatever an oracle or the planner may raise: then the log was made by another one
            self._differ(event, f"it cannot be computed again: {type(error).__name__}")
        self.state.apply(event)
        if event.kind == "started":
            self.exact = self.state.machine == machine()
            self.bits = self.bits and self.exact
        # A restart or a roll-back learns again from the version's own data; otherwise the agent is the one published.
        if event.kind in ("started", "rolled back", "published"):
            dataset = self.state.version.dataset
            self.known = not has_erased(dataset)
            if self.known:
                self.agent = self.trainer.train(dataset)

    def _differ(self, event: Event, what: str) -> None:
        if len(self.differences) < SHOWN:
            self.differences.append(f"event {event.number} ({event.kind}): {what}")

    def _same(self, again: Any, logged: Any) -> bool:
        """Compare what was computed; what another machine computed may differ in its last bits."""
        if self.exact or canonical(again) == canonical(logged):
            return canonical(again) == canonical(logged)
        try:
            self.largest = max(self.largest, difference(again, logged))
            return difference(again, logged) <= TOLERANCE
        except (TypeError, ValueError):  # no numbers
            return False

    def _check_founded(self, event: Event) -> None:
        if Trial.parse(event.body["file"]).digest != event.body["trial"]:
            self._differ(event, "the file is not the one that the digest is of")

    def _check_enrolled(self, event: Event) -> None:
        """Draw the arm of somebody who is new, unless it was given."""
        if event.body.get("given") is not None:
            return
        person, at = event.body["person"], DecisionInputs(self.trial, self.state, self.agent, moment(event.time))
        known = self.state.people.get(person)
        if event.body["arm"] != (draw_arm(at, person) if known is None else known.arm):
            self._differ(event, "another arm")

    def _check_opened(self, event: Event) -> None:
        body, is_last = event.body, event.body["source"] == PolicySource.LAST_PLAN
        self._check_enrolled(event)
        erased = body["person"].startswith(ALIAS)
        # Perhaps the last plan was that of somebody who was erased.
        unknown = any(person.startswith(ALIAS) for person in self.state.plans) if is_last else not self.known
        if body["source"] in (PolicySource.FIXED, PolicySource.CONTROL):
            again = self.trial.fixed_policy()
        elif erased or unknown:
            self.gone["policies"] += 1
            again = np.array(body["policy"])
        elif is_last:
            last = self.state.last_plan(body["context"])
            again = np.array([] if last is None else last.policy)
        else:
            again = make_plan(self.trial, self.agent, body["context"]).policy
            self.policies += 1
        if not self._same(again.tolist(), body["policy"]):
            self._differ(event, f"another policy ({body['source']})")
        if self.known and not erased:
            self._check_allowance(event, again)
        if (body["source"] == PolicySource.CONTROL) != (body["arm"] == CONTROL):
            self._differ(event, f"the source {body['source']} in the arm {body['arm']}")
        if body["version"] != self.state.version.number:
            self._differ(event, f"version {body['version']}, in use was {self.state.version.number}")

    def _check_allowance(self, event: Event, policy: FloatArray) -> None:
        body, at = event.body, DecisionInputs(self.trial, self.state, self.agent, moment(event.time))
        person = self.state.people.get(body["person"]) or Participant(arm=body["arm"], zone=body["zone"], enrolled="")
        allowance = grant_allowance(at, person, body["person"], body["occasion"], policy) if body["available"] else None
        for name, value in (body["allowance"] or {"until": None}).items():
            if not self._same(allowance and allowance._asdict()[name], value):
                self._differ(event, f"another allowance ({name})")

    def _check_decided(self, event: Event) -> None:
        trial, body, record = self.trial, event.body, self.state.episodes.get(event.body["episode"])
        if record is None:
            return  # the person has withdrawn since
        self.decisions += 1
        if body["cause"] is not None:
            self.fallbacks[f"{body['source']} ({body['cause']})"] += 1
        if body["step"] in record.choices:
            self._differ(event, "the step was decided before")
        erased, replanned = record.person.startswith(ALIAS), trial.replan and body["drawn"] is not None
        if erased or (replanned and not (self.known and body["cause"] is None)):
            # Why planning failed then is unknown, or the context or zone is gone.
            self.only_drawn += 1
            number = uniform(self.state.secret, record.person, record.occasion, body["step"])
            drawn = None if body["drawn"] is None else draw_index(np.array(body["probabilities"]), number)
            again: dict[str, Any] = {"drawn": drawn}
        else:
            # Of somebody who was not available the log may not say how they acted: whatever it was, nothing was drawn.
            action = trial.actions[body["action"] or 0] if body["acted"] else None
            asked = {name: body[name] for name in ("device_time", "allowance")}
            asked["available"] = body["acted"] or body["rules"] != ["unavailable"]
            call = Decide(step=body["step"], state=trial.states[body["state"]], action=action, **asked)
            again = decide_step(DecisionInputs(trial, self.state, self.agent, moment(event.time)), record, call)
        for name, value in again.items():
            if not self._same(value, body[name]):
                self._differ(event, f"other {name}")

    def _check_learned(self, event: Event) -> None:
        learning = self.state.learning
        if learning is None:
            self._differ(event, "learning had not begun")
            return
        if has_erased(learning.dataset):
            self.gone[f"the model of version {event.body['version']}"] += 1
            self.known = self.known and not event.body["published"]
            return
        if event.body["cause"] == NO_MEMORY and not event.body["published"]:
            return
        lesson = self.trainer.learn(learning)
        self.versions += 1
        passed, published = lesson.refusal is None, lesson.refusal is None and not self.trial.by_hand
        other = self.exact and lesson.model != event.body["model"]  # on another machine its plans are compared
        if (passed, published) != (event.body["cause"] is None, event.body["published"]) or other:
            self._differ(event, "another model")
        if event.body["published"]:
            self.agent, self.known = lesson.agent, True


def has_erased(dataset: Dataset) -> bool:
    """Return whether somebody in the data was erased: their contexts are gone."""
    return any(example.person.startswith(ALIAS) for example in dataset)


def nameless(state: State) -> list[str]:
    """Return the aliases of people whose key is destroyed though the log does not say so: it is an older copy."""
    return [each for each in (*state.people, *state.withdrawn) if each.startswith(ALIAS)]


def difference(one: Any, other: Any) -> float:
    """Return the largest difference between two numbers at the same place.

    >>> difference([0.5, 0.5], [0.25, 0.75])
    0.25
    """
    first, second = np.array(one, dtype=float), np.array(other, dtype=float)
    if first.shape != second.shape:
        raise ValueError(f"shapes {first.shape} and {second.shape}")
    return float(np.abs(first - second).max(initial=0.0))


def check_software(trial: Trial, state: State, agent: ModelAgent, software: dict[str, Any]) -> None:
    """Plan again for the last people who have a plan of the version in use; `ValueError` if that gives another one.

    If the software is not the one that wrote the log, the model in use is learned again too. What the same kind of
    machine has computed must be equal to the bit, the rest up to `TOLERANCE`.
    """
    known = state.version
    if has_erased(known.dataset):  # nobody can learn it again
        return
    ours = state.machine == machine()
    if ours and known.model and known.time > state.since and software != state.software:
        again = Trainer(trial).train(known.dataset)
        if model_digest(again) != known.model:
            raise ValueError(f"this software learns another model of version {known.number}; {_advice(state)}")
    named = [plan for person, plan in state.plans.items() if not person.startswith(ALIAS)]
    plans = [each for each in named if state.episodes[each.episode].version == known.number]
    if known.number and not known.model:  # somebody has withdrawn since: these plans knew them
        return
    for plan in sorted(plans, key=lambda each: each.episode)[-SAMPLED:]:
        exact = ours and state.episodes[plan.episode].opened > state.since
        found = difference(make_plan(trial, agent, plan.context).policy, plan.policy)
        if found > (0.0 if exact else TOLERANCE):
            off = f"a probability of episode {plan.episode} differs by {found:.2g}"
            raise ValueError(f"this software plans in another way: {off}; {_advice(state)}")


def check_store(trial: Trial, state: State, store: Database, new: bool | None) -> None:
    """Refuse a store of another trial, one without its key file, and one that is empty or not against the wish."""
    if new is not None and new != (not state.number):
        found = "has a trial already: without --new it goes on" if new else "is empty: with --new a trial is founded"
        raise ValueError(f"the database {found}; or name another one")
    if state.number and state.trial != trial.digest:
        advice = "use the file that the trial began with, or another database"
        raise ValueError(f"the database does not belong to the trial {trial.name!r} as its file is now; {advice}")
    if state.number and not state.secret:
        raise KeyFileError(f"there is no key file {store.keys.path or ''}: give the one of this log (--keys)")


def _advice(state: State) -> str:
    wrote = f"version {state.software.get('version')}, commit {state.software.get('commit')}"
    return f"go on with the one that wrote the log ({wrote}), and try this one by `omg-trial upgrade`"


def replay(trial: Trial, events: Iterable[Event]) -> Replay:
    """Fold the log anew, compute every plan, draw and model again, and return where that differs from what it says.

    Parameters
    ----------
    trial : Trial
        The trial that the log is of.
    events : iterable of Event
        All events from the first on; `BrokenChainError` if they are not those that were written.

    Examples
    --------
    >>> from omg_trial.desk import Desk
    >>> from omg_trial.log.database import Database
    >>> from omg_trial.trial_file import EXAMPLE
    >>> desk = Desk(Trial.parse(EXAMPLE), Database(":memory:"))
    >>> answer = desk.call("open", {"person": "p1", "context": "alone"})
    >>> found = replay(desk.trial, desk.store.read())
    >>> found.state.number, found.policies, found.differences
    (3, 1, [])
    """
    instance_of("trial", trial, Trial)
    found = Replay(trial)
    for event in verified(events):
        # Equal or not equal can only be said of the trial that ran.
        if event.kind == "founded" and event.body.get("trial") != trial.digest:
            raise ValueError(f"the file of the trial {trial.name!r} is not the trial of this log")
        found._follow(event)
    return found
