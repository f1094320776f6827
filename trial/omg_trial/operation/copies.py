"""Copies of a log: a backup, a follower that pulls events, and the way back. Every event of a copy is verified."""

from __future__ import annotations

import contextlib
import itertools
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omg_cmdp.persistence import whole_file
from omg_trial.log.database import Database
from omg_trial.log.events import BrokenChainError, Chain, Event, ending, verified
from omg_trial.log.schema import EVENTS
from omg_trial.operation.channels import TIMEOUT, no_redirects

TOGETHER = 1000
"""Events that are written in one transaction."""


class SourceError(ValueError):
    """The log that is followed cannot be read now."""


def copy_log(source: str, target: str | Path, expect: str | None = None) -> Chain:
    """Copy a log to an empty database, and return its hashes.

    Parameters
    ----------
    source : str
        The database to copy; a service may write to it.
    target : path or str
        A new SQLite file, which is there when it is whole, or an empty database of PostgreSQL.
    expect : str or None
        NUMBER:HASH of an event that must be there.
    """
    if "://" in str(target):
        with contextlib.closing(Database(target)) as store:
            if next(store.read(), None) is not None:
                raise ValueError("there is a log already; name an empty database")
            return _copy(source, store, expect)
    if Path(target).exists():
        raise ValueError(f"{target}: there is something already; name a new file")
    with whole_file(Path(target)) as file:
        with contextlib.closing(Database(file)) as store:
            chain = _copy(source, store, expect)
        file.with_name(f"{file.name}.lock").unlink(missing_ok=True)
    return chain


def _copy(source: str, store: Database, expect: str | None) -> Chain:
    with contextlib.closing(Database(source, writing=False)) as log:
        kept = log.snapshot()
        events = ending(verified(log.read()), 0 if kept is None else kept.number, expect)
        chain = Chain()
        _extend(chain, store, events)
    if not len(chain):
        raise ValueError(f"{source}: nothing has happened there yet")
    return chain


def _extend(chain: Chain, store: Database, events: Iterator[Event]) -> None:
    while some := list(itertools.islice(events, TOGETHER)):
        store.append(some)
        for event in some:
            chain.add(event)


def _event(row: Any) -> Event:
    """Return the event of a row that a service has sent."""
    if not isinstance(row, list) or len(row) != len(EVENTS.columns):
        raise ValueError("no row of a log")
    return Event(*row)


class Follower:
    """Keeps a copy of a log in a folder, and adds what is new in it.

    The copy never loses an event: if the log that is followed lacks one, or has another in its place, that is a
    `BrokenChainError`, and the copy stays as it is.

    Parameters
    ----------
    source : str
        Address of a service, or the URL of its database.
    folder : path
        Where `log.db` is kept.
    token : str, default ""
        A token of the service, with the role follower.
    """

    def __init__(self, source: str, folder: Path, token: str = "") -> None:
        self._source, self._token = source.rstrip("/"), token
        self._is_service = source.startswith(("http://", "https://"))
        if self._is_service and not token:
            raise ValueError("a service asks for a token: set OMG_TRIAL_TOKEN to one with the role follower")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._store = Database(folder / "log.db")
        try:
            self._chain = Chain(self._store.rows())
        except BaseException:
            self._store.close()
            raise

    @property
    def head(self) -> str:
        """NUMBER:HASH of the last event of the copy."""
        return self._chain.head

    def close(self) -> None:
        """Let go of the copy."""
        self._store.close()

    def catch_up(self) -> int:
        """Take in all new events, and return how many there were."""
        before = len(self._chain)
        while self._catch_up_some():
            pass
        return len(self._chain) - before

    def _catch_up_some(self) -> int:
        known = len(self._chain)
        # The last event that is known is asked for again: a log without it is another log, or an older one.
        events = iter(self._fetch(max(known - 1, 0)))
        if known and ((first := next(events, None)) is None or not self._chain.holds(first)):
            raise BrokenChainError(f"the log has no longer the event {self.head}, which the copy has")
        _extend(self._chain, self._store, verified(events, self._chain.hash(known), known))
        return len(self._chain) - known

    def _fetch(self, after: int) -> list[Event]:
        """Return the next events, at most a thousand."""
        if not self._is_service:
            with contextlib.closing(Database(self._source, writing=False)) as log:
                return list(itertools.islice(log.read(after), TOGETHER))
        address, headers = f"{self._source}/v1/events?after={after}", {"Authorization": f"Bearer {self._token}"}
        try:
            with no_redirects().open(urllib.request.Request(address, headers=headers), timeout=TIMEOUT) as answer:
                return [_event(json.loads(line)) for line in answer]
        except urllib.error.HTTPError as error:
            error.close()
            raise SourceError(f"the service answers {error.code}; the token must have the role follower") from None
        except (OSError, RecursionError, TypeError, ValueError) as error:
            raise SourceError(f"the service cannot be read: {type(error).__name__}") from None
