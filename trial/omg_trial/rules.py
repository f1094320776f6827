"""What the team has pre-specified beside the policy: when nobody is bothered, and how often an action is taken.

A rule changes the probabilities before the action is drawn, and says so: what is logged is exact.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable

import numpy as np

from omg_cmdp.validation import FloatArray
from omg_trial.episodes import StepDecision
from omg_trial.trial_file.trial import Trial

Adjusted = tuple[FloatArray, tuple[str, ...]]
"""Probabilities (A,) after all rules, and the rules that have changed them."""


def apply_rules(
    trial: Trial, row: FloatArray, state: int, now: datetime.datetime, earlier: Iterable[StepDecision]
) -> Adjusted:
    """Return the probabilities of actions in `state`, given what was decided for the person before."""
    # The window comes first: at night nobody is asked, whatever the week still needs.
    if trial.window is not None and not trial.window.holds(now.astimezone(trial.zone).time()):
        return np.eye(1, len(row), trial.actions.index(trial.window.outside))[0], ("window",)
    if not (trial.limits.most or trial.limits.least):
        return row, ()
    week = week_of(trial, now)
    taken = [choice.action for choice in earlier if week_of(trial, moment(choice.time)) == week]
    # The least comes before the most: an action cannot be both missing and used up, by the checks of the file.
    forced = _forced(trial, taken, state)
    if forced is not None:
        return forced, ("least per week",)
    spent = [action for action, most in trial.limits.most.items() if taken.count(action) >= most]
    if not spent or not row[spent].any():
        return row, ()
    allowed = trial.space.admissible[state].copy()
    allowed[spent] = False
    if not allowed.any():
        return row, ("most per week cannot be kept",)
    # The share of what is spent goes where the trial's fixed probabilities would go; if they go nowhere, evenly.
    instead = trial.fallback * allowed if (trial.fallback * allowed).any() else allowed.astype(np.float64)
    lost = row[spent].sum()
    kept = np.where(allowed, row, 0.0) + lost * instead / instead.sum()
    return kept / kept.sum(), ("most per week",)


def _forced(trial: Trial, taken: list[int], state: int) -> FloatArray | None:
    """Return the probabilities if the rest of the week is needed for actions that were taken too seldom."""
    missing = np.zeros(len(trial.actions), dtype=int)
    for action, least in trial.limits.least.items():
        missing[action] = max(least - taken.count(action), 0) * trial.space.admissible[state, action]
    left = (trial.limits.decisions_per_week or 0) - len(taken)
    return missing / missing.sum() if missing.sum() >= max(left, 1) else None


def week_of(trial: Trial, time: datetime.datetime) -> tuple[int, int]:
    """Return the year and week of a moment, by the clock of the trial."""
    return time.astimezone(trial.zone).isocalendar()[:2]


def moment(text: str) -> datetime.datetime:
    """Return the time of an event."""
    return datetime.datetime.fromisoformat(text)
