"""The course of a trial, as the page draws it: day by day, week by week of each person, and rewards by action."""

from __future__ import annotations

import bisect
import collections
import datetime
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from omg_cmdp.contexts import context_from_json
from omg_cmdp.oracles.feature_map import Category, Number
from omg_trial.analysis.clustered import clustered_fit
from omg_trial.episodes import DecidedStep
from omg_trial.people.participants import CONTROL
from omg_trial.rules import moment
from omg_trial.trial_file.trial import Trial
from omg_trial.watching.view import WEEK, TrialView

DAYS = 60
FEWEST_PEOPLE = 5
"""Fewest people whose mean reward has an interval."""
PARTS = 3
"""Parts of a column's range, whose rewards are shown apart."""


def days(view: TrialView) -> list[dict[str, Any]]:
    """Return the last days, by the clock of the trial, those without a decision too."""
    by_day: dict[datetime.date, list[DecidedStep]] = collections.defaultdict(list)
    for each in view.steps:
        by_day[_date(view, each.time)].append(each)
    if not by_day:
        return []
    last = _date(view, view.now)
    count = min((last - min(by_day)).days + 1, DAYS)
    shown = [last - datetime.timedelta(days=back) for back in reversed(range(max(count, 1)))]
    enrolled = sorted(_date(view, moment(each.enrolled)) for each in view.state.people.values())
    return [
        {"day": day.isoformat(), "enrolled": bisect.bisect(enrolled, day), **_day(view, by_day[day])} for day in shown
    ]


def budgets(view: TrialView) -> list[dict[str, Any]]:
    """Return, for each budget, what finished episodes of the learning arm were expected to cost, by all probabilities.

    `planned` is the mean over the episodes in which every step was drawn; None if there is none.
    """
    budgets = view.trial.budgets
    whole = [
        [budgets.expected(choice.state, choice.probabilities) for choice in record.choices.values()]
        for record in view.records
        if record.arm != CONTROL
        and len(record.choices) == view.trial.space.horizon
        and all(choice.probabilities for choice in record.choices.values())
    ]
    planned = np.sum(whole, axis=1).mean(axis=0).tolist() if whole else [None] * len(budgets.names)
    rows = zip(budgets.names, planned, budgets.most.tolist(), strict=True)
    return [{"name": name, "planned": cost, "most": most, "episodes": len(whole)} for name, cost, most in rows]


def retention(view: TrialView) -> list[dict[str, int]]:
    """Return, for each week since enrolment, how many people have had the whole week, and how many took part in it."""
    found: dict[int, list[bool]] = collections.defaultdict(list)
    for name, person in view.state.people.items():
        first = moment(person.enrolled)
        records = [view.state.episodes[number] for number in tuple(view.state.of_person.get(name, ()))]
        weeks = {(moment(record.opened) - first) // WEEK for record in records if record.choices}
        for week in range((view.now - first) // WEEK):
            found[week].append(week in weeks)
    return [{"week": week + 1, "people": len(each), "took_part": sum(each)} for week, each in sorted(found.items())]


def rewards(view: TrialView) -> list[dict[str, Any]]:
    """Return the reward after each action, for everybody, for the arms, and for the values of each column.

    The mean weighs a reward by 1/probability of its action, over decisions at which every action was possible: actions
    are then compared over the same decisions, whoever was given which (Hájek's estimate). Intervals are over people.
    """
    known = [each for each in view.steps if each.choice.probability is not None and each.outcome.reward is not None]
    known = [each for each in known if min(each.choice.probabilities, default=0.0) > 0.0]
    groups: dict[tuple[str, str], list[DecidedStep]] = {("", ""): known}
    columns = _columns(view.trial)
    groups |= {(name, value): [] for name, (values, _) in columns.items() for value in values}
    for each in known:
        context = context_from_json(each.record.context)
        for group in [("arm", each.record.arm), *((name, place(context)) for name, (_, place) in columns.items())]:
            groups.setdefault(group, []).append(each)

    def after(action: int, steps: list[DecidedStep]) -> dict[str, Any] | None:
        those = [each for each in steps if each.choice.action == action]
        return _reward(view.trial, those, [1.0 / each.choice.probabilities[action] for each in those])

    actions = range(len(view.trial.actions))
    return [
        {"column": column, "value": value, "actions": [after(action, steps) for action in actions]}
        for (column, value), steps in groups.items()
    ]


def _date(view: TrialView, time: datetime.datetime) -> datetime.date:
    return time.astimezone(view.trial.zone).date()


def _day(view: TrialView, steps: list[DecidedStep]) -> dict[str, Any]:
    """Return a day in numbers; a decision whose reward is not overdue is still waiting for it."""
    due = view.now - datetime.timedelta(hours=view.trial.watch.overdue_hours)
    known = [each for each in steps if each.outcome.reward is not None]
    silent = [each for each in steps if each.outcome.reward is None]
    taken = collections.Counter(each.choice.action for each in steps)
    of_person = collections.Counter(each.person for each in known)
    rows = [each.choice.probabilities for each in steps if each.choice.probabilities and each.choice.source != CONTROL]
    return {
        "decisions": len(steps),
        "people": len({each.person for each in steps}),
        "missing": sum(each.time <= due for each in silent),
        "waiting": sum(each.time > due for each in silent),
        "fallbacks": sum(each.choice.cause is not None for each in steps),
        "unavailable": sum(not each.choice.probabilities for each in steps),
        "rules": sum(bool(each.choice.rules and each.choice.probabilities) for each in steps),
        "actions": [taken[action] for action in range(len(view.trial.actions))],
        "chances": [float(each) for each in np.mean(rows, axis=0)] if rows else None,
        # The mean over people of each one's mean.
        "reward": _reward(view.trial, known, [1.0 / of_person[each.person] for each in known]),
    }


def _reward(trial: Trial, steps: list[DecidedStep], weights: list[float]) -> dict[str, Any] | None:
    """Return the weighted mean reward, with its interval if there are enough people for one."""
    if not steps:
        return None
    rewards = np.array([step.outcome.reward for step in steps], dtype=np.float64)
    mean, people = float(np.average(rewards, weights=weights)), [step.person for step in steps]
    counts = {"decisions": len(steps), "people": len(set(people))}
    found: dict[str, Any] = {"mean": mean, **counts, "low": None, "high": None}
    if counts["people"] >= FEWEST_PEOPLE:
        ones = np.ones((len(steps), 1))
        fit = clustered_fit(design=ones, outcome=rewards, weights=weights, person=people, names=["reward"])
        (least, most), (low, high) = fit.interval()[0].tolist(), trial.reward_range
        found |= {"low": max(least, low), "high": min(most, high)}
    return found


def _columns(trial: Trial) -> dict[str, tuple[Sequence[str], Callable[[Any], str]]]:
    """Return, for each column, the values that are shown apart, and what tells which of them a context has."""
    if trial.features is None:
        return {"context": (trial.labels, str)}
    return {str(each.column): (_values(each), functools.partial(_value, each)) for each in trial.features.columns}


def _values(column: Number | Category) -> list[str]:
    """Return labels, or parts of a range."""
    if isinstance(column, Category):
        return [str(label) for label in column.labels]
    ends = np.linspace(column.low, column.high, PARTS + 1)
    return [f"{low:.4g} to {high:.4g}" for low, high in itertools.pairwise(ends)]


def _value(column: Number | Category, context: Any) -> str:
    entry = context.get(column.column)
    if isinstance(column, Category):
        label = column.label(entry)
        return label if label in column.labels else "unknown"
    if type(entry) not in (int, float):
        return "unknown"
    part = (entry - column.low) / (column.high - column.low) * PARTS
    return _values(column)[int(min(max(part, 0), PARTS - 1))]
