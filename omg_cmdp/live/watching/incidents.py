"""What the service does every minute: close episodes that are overdue, and note what has changed, as events."""

from __future__ import annotations

import datetime
import secrets

from omg_cmdp.live.desk import Asked, Desk
from omg_cmdp.live.rules import moment
from omg_cmdp.live.watching.checks import findings
from omg_cmdp.live.watching.process import Process
from omg_cmdp.live.watching.verdicts import GREEN
from omg_cmdp.live.watching.view import View


def tick(desk: Desk, process: Process) -> None:
    """Close what is overdue, and note the checks whose colour is not the one that was noted last."""
    if desk.lost:
        return  # nothing can be kept
    close_overdue(desk)
    process.measure()
    view = View.of(desk.trial, desk.state, desk.clock(), process)
    for finding in findings(view):
        if finding.severity != view.noted.get(finding.check, GREEN):
            desk.note(finding.severity, finding.check, finding.message)


def close_overdue(desk: Desk) -> None:
    """Close the episodes in which nothing has happened for too long: what was seen of them counts."""
    until = desk.clock() - datetime.timedelta(hours=desk.trial.watch.close_after_hours)
    overdue = [number for number in desk.state.open if moment(desk.state.episodes[number].touched) <= until]
    asked = [Asked("close", {"episode": number, "cause": "overdue"}, secrets.token_hex(16)) for number in overdue]
    if asked:
        desk.answer(asked)
