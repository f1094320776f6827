"""What the page shows: a trial in numbers, and the history of one person."""

from __future__ import annotations

import collections
import datetime
import math
from typing import Any

import numpy as np

from omg_cmdp.contexts import context_from_json
from omg_cmdp.oracles.feature_map import Category
from omg_trial.desk import Desk
from omg_trial.episodes import Record
from omg_trial.handlers.handled import find_person
from omg_trial.trial_file.trial import Trial
from omg_trial.watching.checks import findings
from omg_trial.watching.losses import losses
from omg_trial.watching.value import values
from omg_trial.watching.view import TrialView, WatchedStep

MOST_ROWS = 200
DAYS = 60
FEWEST_PEOPLE = 5
"""Fewest people of a day whose mean reward has an interval."""


def overview(view: TrialView) -> dict[str, Any]:
    """Return what the page shows, as JSON has it."""
    trial = view.trial
    under_way = [record for record in view.records if record.closed is None]
    return {
        "trial": trial.name,
        "time": view.now.astimezone(datetime.UTC).isoformat(timespec="seconds"),
        "zone": trial.zone.key,
        "event": view.state.number,
        "hash": view.state.hash,
        "version": view.state.version.number,
        "states": trial.states,
        "actions": trial.actions,
        "horizon": trial.space.horizon,
        "floor": trial.floor.probability,
        "reward_range": trial.reward_range,
        "context": _context(trial),
        "people": len(view.state.people),
        "arms": collections.Counter(each.arm for each in view.state.people.values()),
        "halted": None if view.state.halted is None else view.state.halted._asdict(),
        "halted_actions": {trial.actions[each]: halt._asdict() for each, halt in view.state.halted_actions.items()},
        "paused": sum(each.paused is not None for each in view.state.people.values()),
        "waiting": _waiting(view),
        "withdrawn": len(view.state.withdrawn),
        "episodes": len(view.state.episodes),
        "episodes_under_way": len(under_way),
        "rewards_overdue": len(view.overdue),
        "checks": [finding._asdict() for finding in findings(view)],
        "under_way": [_under_way(record) for record in reversed(under_way[-MOST_ROWS:])],
        "overdue": [_overdue(trial, step) for step in view.overdue[:MOST_ROWS]],
        "days": _days(view),
        "value": values(trial, view.records),
        "lost": None if (lost := losses(view)) is None else lost.record(),
        "versions": [change._asdict() for change in reversed(view.state.changes)],
        "incidents": [incident._asdict() for incident in reversed(view.state.incidents[-MOST_ROWS:])],
    }


def history(desk: Desk, person: str) -> dict[str, Any]:
    """Return everything that is known of a person."""
    state, trial = desk.state, desk.trial
    episodes = [_episode(trial, state.episodes[number]) for number in reversed(find_person(desk.inputs(), person))]
    about = state.people[person]._asdict()
    account, halt = about.pop("account"), about.pop("paused")
    return {
        "person": person,
        **about,
        "paused": None if halt is None else halt._asdict(),
        "week": account._asdict(),
        "episodes": episodes,
    }


def _waiting(view: TrialView) -> dict[str, Any] | None:
    """Return the model that waits to be published; the findings of the checks are beside it."""
    waits = view.state.waiting
    return None if waits is None else {"version": waits.number, "episodes": len(waits.dataset), "time": waits.time}


def _episode(trial: Trial, record: Record) -> dict[str, Any]:
    steps = [_step(trial, record, step) for step in sorted({*record.choices, *record.outcomes})]
    known = {name: vars(record)[name] for name in ("opened", "closed", "version", "source", "cause", "certificate")}
    return {"episode": record.number, **known, "context": context_from_json(record.context), "steps": steps}


def _step(trial: Trial, record: Record, step: int) -> dict[str, Any]:
    choice, outcome = record.choices.get(step), record.outcomes.get(step)
    found: dict[str, Any] = {"step": step, "decision": None, "outcome": None}
    if choice is not None:
        names = {"state": trial.states[choice.state], "action": trial.action_name(choice.action)}
        found["decision"] = {**choice._asdict(), **names}
    if outcome is not None:
        after = None if outcome.next_state is None else trial.states[outcome.next_state]
        found["outcome"] = {**outcome._asdict(), "next_state": after}
    return found


def _context(trial: Trial) -> dict[str, Any]:
    """Return what a context is made of, for the form that asks for its policy."""
    if trial.features is None:
        return {"labels": trial.labels}
    return {
        "columns": [
            {"name": each.column, "labels": each.labels}
            if isinstance(each, Category)
            else {"name": each.column, "low": each.low, "high": each.high}
            for each in trial.features.columns
        ]
    }


def _under_way(record: Record) -> dict[str, Any]:
    known = {name: vars(record)[name] for name in ("person", "opened", "touched", "version", "source", "cause")}
    return {"episode": record.number, **known, "steps": len(record.choices)}


def _overdue(trial: Trial, step: WatchedStep) -> dict[str, Any]:
    known = {"person": step.person, "episode": step.episode, "step": step.step}
    return {**known, "time": step.choice.time, "action": trial.action_name(step.choice.action)}


def _days(view: TrialView) -> list[dict[str, Any]]:
    """Return the last days, by the clock of the trial, those without a decision too."""
    by_day: dict[datetime.date, list[WatchedStep]] = collections.defaultdict(list)
    for each in view.steps:
        by_day[each.time.astimezone(view.trial.zone).date()].append(each)
    if not by_day:
        return []
    last = view.now.astimezone(view.trial.zone).date()
    count = min((last - min(by_day)).days + 1, DAYS)
    days = [last - datetime.timedelta(days=back) for back in reversed(range(max(count, 1)))]
    return [_day(view.trial, day, by_day.get(day, [])) for day in days]


def _day(trial: Trial, day: datetime.date, steps: list[WatchedStep]) -> dict[str, Any]:
    taken = collections.Counter(each.choice.action for each in steps)
    chances = [each.choice.probability for each in steps if each.choice.probability is not None]
    return {
        "day": day.isoformat(),
        "decisions": len(steps),
        "actions": [taken[action] for action in range(len(trial.actions))],
        "fallbacks": sum(each.choice.cause is not None for each in steps),
        "probability": [float(each) for each in np.quantile(chances, [0.0, 0.5, 1.0])] if chances else None,
        "reward": _reward(trial, steps),
    }


def _reward(trial: Trial, steps: list[WatchedStep]) -> dict[str, Any] | None:
    """Return the mean over people of each one's mean, with Student's interval over people."""
    of_people: dict[str, list[float]] = collections.defaultdict(list)
    for each in steps:
        if each.outcome is not None and each.outcome.reward is not None:
            of_people[each.person].append(each.outcome.reward)
    if not of_people:
        return None
    means = np.array([sum(each) / len(each) for each in of_people.values()])
    found = {"mean": float(means.mean()), "people": len(means), "low": None, "high": None}
    if len(means) >= FEWEST_PEOPLE:
        from scipy.special import stdtrit

        width = float(stdtrit(len(means) - 1, 0.975)) * float(means.std(ddof=1)) / math.sqrt(len(means))
        low, high = trial.reward_range
        found |= {"low": max(float(means.mean()) - width, low), "high": min(float(means.mean()) + width, high)}
    return found
