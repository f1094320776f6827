"""Alerts: incidents and a daily digest are sent to the team by every channel, each minute until they are taken.

Delivery is an event, so that a start sends nothing twice and forgets nothing. No decision waits for a mail server.
"""

from __future__ import annotations

import datetime
import functools
import logging
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from omg_trial.desk import Desk
from omg_trial.incident import Incident
from omg_trial.operation.channels import Channel, Message
from omg_trial.rules import moment
from omg_trial.state import State
from omg_trial.watching.checks import Finding
from omg_trial.watching.process import Process
from omg_trial.watching.verdicts import GREEN
from omg_trial.watching.view import TrialView

QUIET = datetime.timedelta(hours=1)
"""For how long a check that was told of, and was better since, is not told of again in the same colour."""
LONGEST_SENDING = 60.0
"""Seconds after which a server that has not answered whole does not take the message, whatever it sends meanwhile."""

_log = logging.getLogger("omg_trial")


class Due(NamedTuple):
    """A message that is due, and what its delivery is recorded as."""

    key: Hashable
    message: Message
    record: dict[str, Any] | None
    """None if nothing can be recorded: the store is lost, and that is what the message says."""


class Courier:
    """Sends what is due by one channel, in a thread of its own.

    Parameters
    ----------
    channel : Channel
        Where to send.
    at_desk : callable
        Calls a function with the desk, between two batches.
    process : Process
        Hears of messages that cannot be sent.
    """

    def __init__(self, channel: Channel, at_desk: Callable[[Callable[[Desk], Any]], Any], process: Process) -> None:
        self.name = channel.name
        self._channel, self._at_desk, self._process = channel, at_desk, process
        self._sent: set[Hashable] = set()
        self._began, self._thread = time.monotonic(), threading.Thread()

    def look(self, view: TrialView, found: Sequence[Finding], lost: bool) -> None:
        """Send everything that is due now."""
        incidents = _due_incidents(view, self.name) + (_unkept(view, found) if lost else [])
        alerts = [_alert(view, each) for each in incidents if each.severity in view.trial.alerts.severities]
        self.hand_over([*alerts, *_digest(view, found, self.name)])

    def hand_over(self, due: list[Due]) -> None:
        """Begin to send what was not sent yet, unless the thread is still at what was due before."""
        if self._thread.is_alive():
            if time.monotonic() - self._began > LONGEST_SENDING:
                self._process.unsent[self.name] = "no whole answer"
            return
        self._sent &= {each.key for each in due}  # what is no longer due may come again
        new = [each for each in due if each.key not in self._sent]
        self._thread = threading.Thread(target=self._send, args=(new,), name=f"omg-trial {self.name}", daemon=True)
        self._thread.start()

    def _send(self, due: list[Due]) -> None:
        """Send messages until one is not taken, and record each."""
        for each in due:
            self._began = time.monotonic()
            try:
                self._channel.send(each.message)
            except Exception as error:  # whatever a server may do: only its kind, as it may hold an address
                self._process.unsent[self.name] = cause = type(error).__name__
                _log.warning("an alert was not taken by %s: %s; again in a minute", self.name, cause)
                return
            self._process.unsent.pop(self.name, None)
            self._sent.add(each.key)
            try:
                self._at_desk(functools.partial(self._record, each.record))
            except Exception as error:
                _log.error("a delivery was not recorded: %s", type(error).__name__)

    def _record(self, body: dict[str, Any] | None, desk: Desk) -> None:
        if body is not None and not desk.lost:
            desk.record("alerted", {"channel": self.name, **body})


def _due_incidents(view: TrialView, channel: str) -> list[Incident]:
    """Return the last incident of each check that was neither sent by this channel nor acknowledged.

    A check that flaps is told of once in `QUIET`: what is bad again is sent if it lasts.
    """
    last = {each.check: each for each in view.state.incidents}
    told = {(each.check, each.severity): each.time for each in view.state.incidents if channel in each.alerted}
    due = [each for each in last.values() if channel not in each.alerted and each.note is None]
    before = [told.get((each.check, each.severity)) for each in due]
    # What was told by a clock that was ahead, and was corrected since, keeps nothing quiet.
    lately = [time is not None and datetime.timedelta() <= view.now - moment(time) < QUIET for time in before]
    return [each for each, quiet in zip(due, lately, strict=True) if not quiet]


def _unkept(view: TrialView, found: Sequence[Finding]) -> list[Incident]:
    """Return what the checks have found and nobody could write down: it has no number."""
    noted = {each.check: each.severity for each in view.state.incidents}
    new = [each for each in found if each.severity != noted.get(each.check, GREEN)]
    return [Incident(0, view.now.isoformat(), each.severity, each.check, each.message) for each in new]


def _alert(view: TrialView, incident: Incident) -> Due:
    number, time, severity, check, message, *_ = incident
    facts = {"trial": view.trial.name, "severity": severity, "check": check, "message": message}
    how = f"Incident {number}, {time}. Acknowledge it on the page of the service."
    if not number:
        how = f"{time}. It could not be written to the log."
    subject, text = f"[{view.trial.name}] {severity}: {check}", f"{message}.\n\n{how}\n"
    told = Message(subject, text, {**facts, "incident": number or None})
    return Due(number or (check, severity), told, {"incident": number} if number else None)


def _digest(view: TrialView, found: Sequence[Finding], channel: str) -> list[Due]:
    """Return the digest of today, if it is time and this channel has not sent it."""
    now, at = view.now.astimezone(view.trial.zone), view.trial.alerts.digest
    day = now.date().isoformat()
    if at is None or now.time() < at or view.state.digests.get(channel) == day:
        return []
    bad = [each for each in found if each.severity != GREEN]
    facts = {"trial": view.trial.name, "digest": day, "not_green": {each.check: each.severity for each in bad}}
    text = "\n".join([*_numbers(view), "", *_open_questions(view.state, bad)])
    return [Due(("digest", day), Message(f"[{view.trial.name}] {day}", f"{text}\n", facts), {"digest": day})]


def _numbers(view: TrialView) -> list[str]:
    state, since = view.state, view.now - datetime.timedelta(days=1)
    decided = sum(each.time > since for each in view.steps)
    version = f"Version {state.version.number} of the model"
    if state.waiting is not None:
        version += f"; version {state.waiting.number} waits until somebody publishes it"
    return [
        f"{len(state.of_person)} people, {len(state.withdrawn)} withdrawn, {len(state.open)} episodes under way.",
        f"{decided} decisions in 24 hours; {len(view.overdue)} rewards are overdue.",
        f"{version}. Head of the log: {state.number}:{state.hash}",
    ]


def _open_questions(state: State, bad: Sequence[Finding]) -> list[str]:
    waiting = [each for each in state.incidents if each.severity != GREEN and each.note is None]
    lines = [f"{each.severity}: {each.check}: {each.message}." for each in bad] or ["All checks are green."]
    if waiting:
        lines.append(f"{len(waiting)} incidents are not acknowledged, the last of {waiting[-1].time}.")
    return lines
