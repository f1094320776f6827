"""What the team has pre-specified beside the policy: when nobody is bothered, and how often an action is taken.

A rule changes the probabilities before the action is drawn, and says so: what is logged is exact.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from omg_cmdp.validation import FloatArray
from omg_trial.episodes import Choice
from omg_trial.study.trial import Trial


class Ruled(NamedTuple):
    """Probabilities (A,) after all rules, and which rules have changed them."""

    probabilities: FloatArray
    rules: tuple[str, ...]


def ruled(trial: Trial, row: FloatArray, state: int, now: datetime.datetime, choices: Iterable[Choice]) -> Ruled:
    """Return the probabilities of actions in `state`, given what the person was told before."""
    if trial.window is not None and not trial.window.holds(now.astimezone(trial.zone).time()):
        return Ruled(np.eye(1, len(row), trial.window.outside)[0], ("window",))
    if not (trial.limits.most or trial.limits.least):
        return Ruled(row, ())
    week = week_of(trial, now)
    taken = [choice.action for choice in choices if week_of(trial, moment(choice.time)) == week]
    forced = _forced(trial, taken, state)
    if forced is not None:
        return Ruled(forced, ("least per week",))
    spent = [action for action, most in trial.limits.most.items() if taken.count(action) >= most]
    if not spent or not row[spent].any():
        return Ruled(row, ())
    allowed = trial.space.admissible[state].copy()
    allowed[spent] = False
    if not allowed.any():
        return Ruled(row, ("most per week cannot be kept",))
    # The share of what is spent goes where the study's fixed probabilities would go; if they go nowhere, evenly.
    instead = trial.fallback * allowed if (trial.fallback * allowed).any() else allowed.astype(np.float64)
    lost = row[spent].sum()
    kept = np.where(allowed, row, 0.0) + lost * instead / instead.sum()
    return Ruled(kept / kept.sum(), ("most per week",))


def _forced(trial: Trial, taken: list[int], state: int) -> FloatArray | None:
    """Return the probabilities if the rest of the week is needed for actions that were taken too seldom."""
    missing = np.array(
        [max(trial.limits.least.get(each, 0) - taken.count(each), 0) for each in range(len(trial.actions))]
    )
    missing *= trial.space.admissible[state]
    left = (trial.limits.decisions_per_week or 0) - len(taken)
    return missing / missing.sum() if missing.sum() >= max(left, 1) else None


def week_of(trial: Trial, time: datetime.datetime) -> tuple[int, int]:
    """Return the year and week of a moment, by the clock of the study."""
    return time.astimezone(trial.zone).isocalendar()[:2]


def moment(text: str) -> datetime.datetime:
    """Return the time of an event."""
    return datetime.datetime.fromisoformat(text)
