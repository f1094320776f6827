"""Events: what happened, in order, each chained to the one before it by a hash. They are the truth; all else is a fold.

    h_n = SHA-256(h_{n-1}, event n)

A hash that was written down shows later whether anything before it was changed, left out or put in.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from omg_cmdp.validation import instance_of

FIRST_HASH = "0" * 64


class BrokenChainError(ValueError):
    """A log that is not as it was written."""


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happened.

    Parameters
    ----------
    number : int
        Counts from 1.
    time : str
        UTC, with microseconds; never before the event before it.
    kind : str
        What happened: opened, decided, reported, ...
    text : str
        The body as canonical JSON. It is encoded once, when the event is made; `body` has it decoded.
    key, request : str or None
        Key of the call that it answers, and a digest of that call.
    answer : str or None
        What was answered, byte for byte.
    hash : str
        SHA-256 of the hash before it and all fields above; see `chained`.

    Examples
    --------
    >>> event = Event(1, "2026-11-02T09:00:00.000000+00:00", "founded", canonical({"name": "adherence"}))
    >>> event.body, event.chained(FIRST_HASH).mark[:10]
    ({'name': 'adherence'}, '1:3800231e')
    """

    number: int
    time: str
    kind: str
    text: str
    key: str | None = None
    request: str | None = None
    answer: str | None = None
    hash: str = ""

    @functools.cached_property
    def body(self) -> dict[str, Any]:
        """The facts of the event, by name."""
        found: dict[str, Any] = json.loads(self.text)
        return found

    @property
    def mark(self) -> str:
        """NUMBER:HASH. A log that has this event has all that was before it."""
        return f"{self.number}:{self.hash}"

    def chained(self, before: str) -> Event:
        """Return the event with its hash, after one with the hash `before`."""
        # The canonical text of [before, number, time, kind, body, key, request, answer], without decoding the body.
        head = canonical([before, self.number, self.time, self.kind])
        tail = canonical([self.key, self.request, self.answer])
        content = f"{head[:-1]},{self.text},{tail[1:]}"
        return dataclasses.replace(self, hash=hashlib.sha256(content.encode()).hexdigest())


def canonical(content: Any) -> str:
    """Return the one JSON text of `content`; floats keep every bit, and infinities are refused.

    >>> canonical({"b": 0.1, "a": [1, None]})
    '{"a":[1,null],"b":0.1}'
    """
    # Sorted keys and no spaces: the same content has the same hash on every machine.
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(content: Any) -> str:
    """Return the SHA-256 of the canonical text."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def events_in(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events; raise at the first object that is no event."""
    try:
        found = iter(events)
    except TypeError:
        raise ValueError(f"`events` must be those of a log, got {type(events).__name__}") from None
    for event in found:
        instance_of("events", event, Event)
        yield event


def verified(events: Iterable[Event], before: str = FIRST_HASH, number: int = 0) -> Iterator[Event]:
    """Yield the events that follow one with this hash and `number`; raise at the first that does not."""
    for event in events_in(events):
        number += 1
        if event.number != number:
            raise BrokenChainError(f"event {event.number} after {number - 1}: events are missing or out of order")
        if event.chained(before).hash != event.hash:
            raise BrokenChainError(f"event {number} was changed after it was written")
        before = event.hash
        yield event
