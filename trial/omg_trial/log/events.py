"""Events: what happened, in order, each chained to the one before it by a hash. They are the truth; all else is a fold.

    h_n = SHA-256(h_{n-1}, event n)

Whoever keeps one hash can tell later whether anything before it was changed, left out or put in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from omg_cmdp.validation import instance_of

FIRST_HASH = "0" * 64


class BrokenChainError(ValueError):
    """A log that is not as it was written."""


class Event(NamedTuple):
    """Something that happened; `number` counts from 1."""

    number: int
    time: str
    """UTC, with microseconds; never before the event before it."""
    kind: str
    body: dict[str, Any]
    key: str | None = None
    """The key of the call that it answers."""
    request: str | None = None
    """A digest of what was asked."""
    answer: str | None = None
    """What was answered, byte for byte."""
    hash: str = ""

    @property
    def mark(self) -> str:
        """NUMBER:HASH. A log that has this event has all that was before it."""
        return f"{self.number}:{self.hash}"

    def chained(self, before: str) -> Event:
        """Return the event with its hash, after one with the hash `before`."""
        content = canonical([before, *self[:-1]])
        return self._replace(hash=hashlib.sha256(content.encode()).hexdigest())


def canonical(content: Any) -> str:
    """Return the one JSON text of `content`; floats keep every bit, and infinities are refused.

    >>> canonical({"b": 0.1, "a": [1, None]})
    '{"a":[1,null],"b":0.1}'
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(content: Any) -> str:
    """Return the SHA-256 of the canonical text."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def events_in(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events; raise at the first that is none."""
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
            raise BrokenChainError(f"event {number} must follow event {number - 1}, got event {event.number}")
        if event.chained(before) != event:
            raise BrokenChainError(f"event {number} must be as it was written, got one that was changed since")
        before = event.hash
        yield event
