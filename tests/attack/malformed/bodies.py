"""What reads the body of a call or of an answer: the desk, a client, a follower. A body is a file here."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import httpx

from omg_trial.client.client import Client
from omg_trial.contract import Refusal
from omg_trial.operation import copies
from omg_trial.replay import replay
from omg_trial.web.calls import JSON, json_object
from trial.tests import trials

CALLS: dict[str, dict[str, Any]] = {
    "open": {
        "person": "p1",
        "context": trials.person(1),
        "occasion": "monday",
        "device_time": "2026-11-02T10:00+01:00",
    },
    "decide": {"episode": 3, "step": 0, "state": "took it", "available": True},
    "report": {"episode": 3, "step": 0, "reward": 1.0, "next_state": "took it", "revision": 0},
    "close": {"episode": 3, "cause": "finished"},
    "enrol": {
        "person": "p1",
        "arm": "learning",
        "zone": "Asia/Tokyo",
        "consent_from": "2026-01-01",
        "end": "2027-01-01",
    },
    "pause": {"person": "p1", "cause": "on holiday"},
    "resume": {"person": "p1", "cause": "back"},
    "roll back": {"version": 0, "cause": "x"},
    "acknowledge": {"incident": 4, "note": "seen"},
}
"""A valid body of each kind; who or what a call is about is in its path, and here in the body."""
FAILED = 500
"""From this status on the service is at fault."""
EVENTS = 100
"""Events after which a desk is checked, and another one made."""


class Desks:
    """A desk with a person under way, and another one after some events; its log must replay."""

    @functools.cached_property
    def _at(self) -> Any:
        at = trials.desk()
        at.call("open", {"person": "p0", "context": trials.person(0)})
        at.record("incident", {"severity": "yellow", "check": "gaps", "message": "an episode lacks a step"})
        at.call("learn", {})
        at.learn_here()
        return at

    def read(self, name: str) -> Callable[[Path], None]:
        """Return a function that reads a body as the service does, and answers the call."""

        def read(path: Path) -> None:
            if self._at.state.number > EVENTS:
                found = replay(self._at.trial, self._at.store.read()).differences
                del self._at
                assert not found, found
            fields = json_object({b"content-type": JSON.encode()}, path.read_bytes())
            try:
                self._at.call(name, fields)
            except Refusal as refusal:
                if refusal.status >= FAILED:
                    raise RuntimeError(refusal.message) from refusal
                raise

        return read


def write_answer(path: Path) -> None:
    """Write how a service answers an opening: the head of its log in a line, and the body."""
    opened = trials.desk().call("open", {"person": "p1", "context": trials.person(1)})
    path.write_text(f"{opened.mark}\n{opened.text}", encoding="utf-8")


def read_answer(path: Path) -> None:
    """Open an episode with this answer, and go on without a network."""
    head, _, text = path.read_bytes().partition(b"\n")
    answers = [httpx.Response(200, content=text, headers=[(b"Log-Head", head)])]

    def answer(_: httpx.Request) -> httpx.Response:
        if not answers:
            raise httpx.ConnectError("no network")
        return answers.pop()

    transport = httpx.MockTransport(answer)
    with Client("http://service", "token", patience=1e-9, transport=transport) as client:
        opened = client.open("p1", "alone")
        with contextlib.suppress(ConnectionError):
            client.decide(opened["episode"], 0, "took it")
        client.report(3, 0, reward=1.0)


def write_events(path: Path) -> None:
    """Write the events of a log as a service gives them to a follower."""
    at = trials.desk()
    trials.Trialist(at, seed=0).play(2)
    path.write_text("".join(f"{json.dumps(event.row)}\n" for event in at.store.read()), encoding="utf-8")


def read_events(path: Path) -> None:
    """Follow a service that gives these events."""
    lines = path.read_bytes().splitlines(keepends=True)

    class Opener:
        @staticmethod
        def open(request: urllib.request.Request, **_: Any) -> io.BytesIO:
            after = int(request.full_url.rpartition("=")[2])
            return io.BytesIO(b"".join(lines[after:]))

    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(mock.patch.object(copies, "no_redirects", Opener))
        stack.enter_context(contextlib.closing(copies.Follower("http://service", folder, "token"))).catch_up()
