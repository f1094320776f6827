"""What the team has pre-specified beside the policy: when nobody is bothered, and how often an action is taken.

A rule changes the probabilities before the action is drawn, and says so: what is logged is exact. An action that a rule
closes cannot be drawn, and the event says that too; every action that is open keeps the floor.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from omg_cmdp.validation import FloatArray
from omg_trial.people.budgets import budget_bounds, keep_within
from omg_trial.people.participants import Halt, WeekAccount
from omg_trial.trial_file.trial import Trial


class Adjusted(NamedTuple):
    """Probabilities (A,) after all rules."""

    chances: FloatArray
    rules: tuple[str, ...] = ()
    """Rules that have changed them."""
    closed: tuple[int, ...] = ()
    """Actions that the state admits, and that a rule closes."""
    available: bool = True
    """Whether there is something to draw: not if a rule leaves one action only, for whatever time."""


def apply_rules(
    trial: Trial,
    row: FloatArray,
    state: int,
    local: datetime.datetime,
    account: WeekAccount,
    halted: Mapping[int, Halt],
) -> Adjusted:
    """Return the probabilities of actions in `state`, by the person's own clock and what the week has had."""
    # The window comes first: at night nobody is asked, whatever the week still needs.
    if trial.window is not None and not trial.window.holds(local.time()):
        only = np.eye(1, len(row), trial.actions.index(trial.window.outside))[0]
        return _only(trial, only, state, "window")
    limits, admissible = trial.limits, trial.space.admissible[state]
    if not limits.any and not halted:
        return Adjusted(row)
    # The least comes before the most: an action cannot be both missing and used up, by the checks of the file.
    forced = _forced(trial, account, state, halted)
    if forced is not None:
        return _only(trial, forced, state, "least per week")
    spent = [action for action, most in limits.most.items() if account.taken.count(action) >= most]
    lower, upper = budget_bounds(limits, account, row, trial.floor.probability)
    closed = upper <= 0.0
    over, closed[[*spent, *halted]] = closed & (row > 0.0), True
    lower, upper = np.where(closed | ~admissible, 0.0, lower), np.where(closed, 0.0, upper)
    free = admissible & ~closed
    free[list(limits.capped)] = False
    # What is too much goes where the trial's fixed probabilities would go; if they go nowhere, evenly.
    instead = trial.fallback * free if (trial.fallback * free).any() else free.astype(np.float64)
    kept = keep_within(row, lower, upper, instead)
    rules = [f"{halt.kind} action" for action, halt in halted.items() if row[action]]
    rules += ["most per week"] if row[spent].any() else []
    rules += ["mean per week"] if over.any() or ((kept != row) & ~closed & ~free).any() else []
    rules += ["least per week"] if not rules and (kept != row).any() else []  # nothing else may have changed it
    shut = closed & admissible
    alone = bool(shut.any() and (admissible & ~shut).sum() == 1)
    return Adjusted(kept, tuple(dict.fromkeys(rules)), tuple(np.flatnonzero(shut).tolist()), not alone)


def _only(trial: Trial, chances: FloatArray, state: int, rule: str) -> Adjusted:
    """Return probabilities outside of which everything is closed."""
    closed = trial.space.admissible[state] & (chances == 0.0)
    return Adjusted(chances, (rule,), tuple(np.flatnonzero(closed).tolist()), bool(np.count_nonzero(chances) > 1))


def _forced(trial: Trial, account: WeekAccount, state: int, halted: Mapping[int, Halt]) -> FloatArray | None:
    """Return the probabilities if the rest of the week is needed for actions that were taken too seldom."""
    missing = np.zeros(len(trial.actions), dtype=int)
    for action, least in trial.limits.least.items():
        possible = trial.space.admissible[state, action] and action not in halted
        missing[action] = max(least - account.taken.count(action), 0) * possible
    left = (trial.limits.decisions_per_week or 0) - len(account.taken)
    return missing / missing.sum() if missing.sum() >= max(left, 1) else None


def moment(text: str) -> datetime.datetime:
    """Return the time of an event."""
    return datetime.datetime.fromisoformat(text)
