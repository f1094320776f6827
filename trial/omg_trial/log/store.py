"""Where events are kept. This one is in memory, for tests and replays; `database.py` has the one that lasts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from omg_trial.log.events import Event


class StoreError(RuntimeError):
    """Events cannot be kept now: nothing of this batch was, or will be, unless it is found there later."""


class Snapshot(NamedTuple):
    """A state as bytes, after an event with this number and hash: a cache, which may be missing or wrong."""

    number: int
    hash: str
    content: bytes


class EventStore(Protocol):
    """An append-only log of events."""

    @property
    def folder(self) -> Path:
        """A folder on the disk that must not be full."""

    def read(self, after: int = 0) -> Iterator[Event]:
        """Yield the events after one with this number, in order."""

    def append(self, events: Sequence[Event]) -> None:
        """Keep all events, or none and raise `StoreError`; they are durable when this returns."""

    def answered(self, key: str) -> Event | None:
        """Return the event that answers a call with this key."""

    def mark(self, number: int) -> str | None:
        """Return the `mark` of the event with this number."""

    def keep(self, snapshot: Snapshot) -> None:
        """Keep a snapshot in the place of older ones."""

    def snapshot(self) -> Snapshot | None:
        """Return the last snapshot."""

    def reopen(self) -> None:
        """Connect again after a `StoreError`."""


class MemoryStore:
    """An `EventStore` in memory, for tests and rehearsals.

    Examples
    --------
    >>> list(MemoryStore().read())
    []
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._keys: dict[str, Event] = {}
        self._snapshot: Snapshot | None = None
        self.folder = Path()

    def read(self, after: int = 0) -> Iterator[Event]:
        """Yield the events after one with this number."""
        yield from self.events[after:]

    def append(self, events: Sequence[Event]) -> None:
        """Keep all events."""
        self.events += events
        self._keys.update({event.key: event for event in events if event.key is not None})

    def answered(self, key: str) -> Event | None:
        """Return the event that answers a call with this key."""
        return self._keys.get(key)

    def mark(self, number: int) -> str | None:
        """Return the `mark` of the event with this number."""
        return self.events[number - 1].mark if 0 < number <= len(self.events) else None

    def keep(self, snapshot: Snapshot) -> None:
        """Keep a snapshot in the place of older ones."""
        self._snapshot = snapshot

    def snapshot(self) -> Snapshot | None:
        """Return the last snapshot."""
        return self._snapshot

    def reopen(self) -> None:
        """Do nothing: memory does not go away."""
