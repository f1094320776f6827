"""Every minute the service closes overdue episodes, and notes the checks whose colour has changed, as events."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from omg_trial.desk import Desk
from omg_trial.rules import moment
from omg_trial.watching.checks import Finding, findings
from omg_trial.watching.losses import watch
from omg_trial.watching.process import Process
from omg_trial.watching.verdicts import GREEN, SEVERITIES
from omg_trial.watching.view import TrialView

CALM = datetime.timedelta(minutes=10)
"""For how long a check must be better before that is noted."""


def tick(at_desk: Callable[[Callable[[Desk], Any]], Any], process: Process) -> tuple[TrialView, list[Finding], bool]:
    """Close what is overdue, and note the checks whose colour is not the one that was noted last.

    Return what was seen, what the checks have found, and whether it could not be noted: the store is lost.

    `at_desk` calls a function with the desk, between two batches. The checks run outside of it: nobody waits for them.
    """
    process.measure()
    at_desk(close_overdue)
    view: TrialView = at_desk(lambda desk: watch(desk, process))
    found = findings(view)
    changed = _changed(view, found)
    if changed:
        at_desk(lambda desk: note(desk, changed))
    view.state.incidents, lost = at_desk(lambda desk: (list(desk.state.incidents), desk.lost))
    return view, found, lost


def _changed(view: TrialView, found: list[Finding]) -> list[Finding]:
    """Return what has become worse, and what has been better for a while: a check that flaps is noted once."""
    noted, better = {each.check: each.severity for each in view.state.incidents}, view.process.better
    for each in found:
        if SEVERITIES.index(each.severity) < SEVERITIES.index(noted.get(each.check, GREEN)):
            better.setdefault(each.check, view.now)
        else:
            better.pop(each.check, None)
    other = [each for each in found if each.severity != noted.get(each.check, GREEN)]
    return [each for each in other if view.now - better.get(each.check, view.now - CALM) >= CALM]


def close_overdue(desk: Desk) -> None:
    """Close the episodes in which nothing has happened for too long: what was seen of them counts.

    While an allowance holds, the app may act without a network, and what it did must still count in the week.
    """
    now, after = desk.clock(), datetime.timedelta(hours=desk.trial.watch.close_after_hours)
    under_way = [desk.state.episodes[number] for number in desk.state.open]
    silent = [each for each in under_way if moment(each.touched) <= now - after]
    overdue = [each for each in silent if each.allowance is None or now > moment(each.allowance.until)]
    requests = [desk.prepare("close", {"episode": each.number, "cause": "overdue"}) for each in overdue]
    if requests and not desk.lost:
        desk.answer(requests)


def note(desk: Desk, changed: list[Finding]) -> None:
    """Keep what the checks have found, if anything can be kept."""
    for each in changed:
        if not desk.lost:
            desk.record("incident", each._asdict())
