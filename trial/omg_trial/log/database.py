"""Events in a database: a SQLite file, or PostgreSQL by its URL. One schema, one connection, one writer.

SQLite has a rollback journal and `synchronous = FULL`: what was acknowledged survives a power cut. (Below version
3.51.3 two connections in WAL mode can damage the file.) The writer holds a lock, on a file beside SQLite's, or an
advisory one of PostgreSQL. A second writer is refused.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import filelock
import sqlalchemy as sql
from sqlalchemy.exc import SQLAlchemyError

from omg_cmdp.validation import instance_of
from omg_trial.keys.ring import KeyFileError, KeyRing
from omg_trial.log.addresses import key_path, parse_url, set_up_to_read, set_up_to_write
from omg_trial.log.events import FIRST_HASH, Event, Row, link
from omg_trial.log.schema import AFTER, BY_KEYS, EVENTS, HASH_OF, HOLDS_LOCK, LAST_SNAPSHOT, LOCK, SCHEMA, SNAPSHOTS

FETCHED = 1000
"""Rows that are read at a time."""


class StoreError(RuntimeError):
    """Events cannot be kept now: nothing of this batch was, or will be, unless it is found there later."""


class DamagedLogError(StoreError):
    """The store holds something else than what was written to it."""


class InUseError(StoreError):
    """Another process writes to the database."""


class Snapshot(NamedTuple):
    """A state as bytes, after an event with this number and hash: a cache, which may be missing or wrong."""

    number: int
    hash: str
    content: bytes


class Database:
    """An append-only log of events, and the last snapshot.

    Parameters
    ----------
    url : path or str
        The name of a SQLite file, or `postgresql://...`; ":memory:" lasts as long as the object, for rehearsals.
    writing : bool, default True
        False only reads, also beside a service that writes.
    keys : path or None, default None
        The key file of the trial. By default it lies beside a SQLite file, with the ending .keys; keys of ":memory:"
        are in memory, and a server's must be named.

    Examples
    --------
    >>> import tempfile
    >>> from omg_trial.desk import Desk
    >>> from omg_trial.trial_file import EXAMPLE, Trial
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with contextlib.closing(Database(f"{folder}/trial.db")) as database:
    ...         desk = Desk(Trial.parse(EXAMPLE), database)
    ...         [event.kind for event in database.read()]
    ['founded', 'started']
    """

    def __init__(
        self, url: str | os.PathLike[str], *, writing: bool = True, keys: str | os.PathLike[str] | None = None
    ) -> None:
        instance_of("writing", writing, bool)
        self.url = parse_url(url)
        self.writing = writing
        is_sqlite = self.url.get_backend_name() == "sqlite"
        self._file = self.url.database if is_sqlite else None
        self._is_server, self._in_memory = not is_sqlite, is_sqlite and self._file is None
        self.folder = Path(self._file).absolute().parent if self._file else Path()
        """A folder on the disk that must not be full."""
        self._connection: sql.Connection | None = None
        self._locks: list[filelock.BaseFileLock] = []
        self._forgotten: weakref.finalize[[], Database]  # closes the file of an object that nobody has closed
        # No pool: one connection holds the lock, and a lost one must not come back by itself.
        # Threads share it, one after the other: a reader must not roll back what another one is about to commit.
        self._one_at_a_time = threading.RLock()
        options = {"check_same_thread": False} if is_sqlite else {}
        self._engine = sql.create_engine(self.url, poolclass=sql.pool.NullPool, connect_args=options)
        self.keys = KeyRing(key_path(self._file, keys))
        """The secret of the trial, and the keys of its people."""
        if is_sqlite:
            sql.event.listen(self._engine, "connect", set_up_to_write if writing else set_up_to_read)
        self.reopen()

    def reopen(self) -> None:
        """Connect, take the lock, and check that the tables are ours."""
        with self._one_at_a_time:
            if self._in_memory and self._connection is not None:
                return  # it would be empty afterwards
            self.close()
            try:
                if self.writing and self._file is not None:  # nobody else's to read
                    os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))
                self._connection = self._engine.connect()
                self._forgotten = weakref.finalize(self, self._connection.close)
                if self.writing:
                    self._take_locks(self._connection)
                    SCHEMA.create_all(self._connection)
                    self._connection.commit()
                    self._check_safe(self._connection)
                _check(self._connection)
            except (SQLAlchemyError, OSError, UnicodeError) as error:
                self.close()
                raise StoreError(f"the database cannot be opened: {_reason(error)}") from None
            except BaseException:
                self.close()
                raise

    def found(self) -> None:
        """Make the secret of a trial that is founded here."""
        if self._is_server and self.keys.path is None:
            raise ValueError("name a file for the keys of the trial (--keys, `keys`): they are not kept on a server")
        is_new = not self.keys.secret
        with _writing_keys():
            self.keys.found()
        if is_new and self.keys.path is not None:
            self._take_lock("key file", self.keys.path)

    def close(self) -> None:
        """Let go of the database."""
        with self._one_at_a_time:
            if self._connection is not None:
                self._forgotten.detach()
                with contextlib.suppress(SQLAlchemyError):
                    self._connection.invalidate()
                    self._connection.close()
                self._connection = None
            while self._locks:
                self._locks.pop().release(force=True)

    def read(self, after: int = 0) -> Iterator[Event]:
        """Yield the events after one with this number, in order; `verified` shows whether they are as written."""
        return (Event(*row, ring=self.keys) for row in self.rows(after))

    def rows(self, after: int = 0, together: int = FETCHED) -> Iterator[Row]:
        """Yield the same as they are kept; `together` are read at a time."""
        while some := self._rows(AFTER, number=after, most=together):
            yield from some
            if len(some) < together:
                return
            after = some[-1][0]

    def append(self, events: Sequence[Event]) -> None:
        """Keep all events, or none and raise `StoreError`; they are durable when this returns."""
        names = [column.name for column in EVENTS.columns]
        rows = [dict(zip(names, event.row, strict=True)) for event in events]
        with _writing_keys():
            self.keys.save()  # before the events that need them
        with self._connected() as connection:
            if self._is_server and not connection.execute(HOLDS_LOCK).scalar():
                connection.rollback()
                how = "a pooler stands between, such as PgBouncer in transaction mode; connect directly, or by sessions"
                raise StoreError(f"the connection does not hold the lock that it took: {how}")
            connection.execute(EVENTS.insert(), rows)
            # In the same transaction: an older copy may have been put over the file since the last one.
            before = events[0].number - 1
            found = connection.execute(HASH_OF, {"number": before}).scalar() if before else FIRST_HASH
            if found is None or link(found, events[0].row) != events[0].hash:
                connection.rollback()
                raise DamagedLogError(f"event {before}, which was written, is not in the database: it was replaced")
            connection.commit()

    def answered(self, keys: Sequence[str]) -> dict[str, Event]:
        """Return the events that answer calls with these keys, by key."""
        rows: list[Row] = self._rows(BY_KEYS, keys=keys) if keys else []
        return {str(row[4]): Event(*row, ring=self.keys) for row in rows}

    def keep(self, snapshot: Snapshot) -> None:
        """Keep a snapshot in the place of older ones."""
        with self._connected() as connection:
            connection.execute(SNAPSHOTS.delete())
            connection.execute(SNAPSHOTS.insert(), [snapshot._asdict()])
            connection.commit()

    def forget(self, aliases: Iterable[str]) -> bool:
        """Destroy the keys of these people, and the snapshot, which has their contexts; return whether there were any.

        The snapshot's key goes with theirs: a copy of it somewhere else cannot be read any more either.
        """
        held = [alias for alias in aliases if self.keys.holds(alias)]
        with _writing_keys():
            for alias in held:
                self.keys.destroy(alias)
        if held:
            with self._connected() as connection:
                connection.execute(SNAPSHOTS.delete())
                connection.commit()
        return bool(held)

    def snapshot(self) -> Snapshot | None:
        """Return the last snapshot."""
        rows = self._rows(LAST_SNAPSHOT)
        return Snapshot(*rows[0]) if rows else None

    def _rows(self, query: sql.Select[Any], **values: Any) -> list[Any]:
        with self._connected() as connection:
            rows = list(connection.execute(query, values).all())
            connection.rollback()  # nothing is held while nobody asks
            return rows

    def _check_safe(self, connection: sql.Connection) -> None:
        """Refuse a server that may lose what was acknowledged, and a file whose index has lost a key that a row has."""
        if self._file is not None:
            found = connection.execute(sql.text("PRAGMA integrity_check(1)")).scalar()
            if found != "ok":
                raise StoreError(f"the database {self._file} is damaged: {found}; restore a backup")
        for name in ("fsync", "full_page_writes", "synchronous_commit") if self._is_server else ():
            if connection.execute(sql.text(f"SHOW {name}")).scalar() == "off":
                raise StoreError(f"PostgreSQL has {name} = off: what was acknowledged could be lost; set it to on")
        connection.rollback()

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sql.Connection]:
        """Yield the connection to one thread; whatever fails closes it, and is a `StoreError`."""
        with self._one_at_a_time:
            if self._connection is None:
                raise StoreError("the database is closed")
            try:
                yield self._connection
            except (SQLAlchemyError, OSError, UnicodeError) as error:
                self.close()
                raise StoreError(f"the database does not answer: {_reason(error)}") from None

    def _take_locks(self, connection: sql.Connection) -> None:
        """Take the locks, which the system releases when the process ends, however it ends."""
        if self._is_server and not connection.execute(sql.text(f"SELECT pg_try_advisory_lock({LOCK})")).scalar():
            raise InUseError(f"the database {self.url.database} is in use by another process")
        if self._file is not None:
            self._take_lock("database", Path(self._file))
        if self.keys.secret and self.keys.path is not None:  # a copy of the log may be served beside it, to try it out
            self._take_lock("key file", self.keys.path)

    def _take_lock(self, what: str, path: Path) -> None:
        # Not of a thread: the service's own thread reopens what another one has opened.
        # Beside the file itself, also if a symbolic link leads to it.
        lock = filelock.FileLock(f"{path.resolve()}.lock", timeout=0, mode=0o600, thread_local=False)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise InUseError(f"the {what} {path} is in use by another process") from None
        self._locks.append(lock)


@contextlib.contextmanager
def _writing_keys() -> Iterator[None]:
    """Make a `StoreError` of whatever fails; a key file that was replaced is as bad as a log that was."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"the key file cannot be written: {_reason(error)}") from None
    except KeyFileError as error:
        raise DamagedLogError(str(error)) from None


def _check(connection: sql.Connection) -> None:
    """Refuse a database whose tables are not ours."""
    found = sql.inspect(connection)
    for table in SCHEMA.sorted_tables:
        there = found.get_columns(table.name) if found.has_table(table.name) else []
        columns = {column["name"] for column in there}
        if columns != set(table.columns.keys()):
            rule = f"have a table {table.name} with the columns {', '.join(table.columns.keys())}"
            raise StoreError(f"the database must {rule}, got {', '.join(sorted(columns)) or 'none'}")
    connection.rollback()


def _reason(error: BaseException) -> str:
    """Return what the driver says, without the statement and its parameters, which may hold a person's data."""
    cause = getattr(error, "orig", None) or error
    return f"{type(cause).__name__}: {str(cause).splitlines()[0][:200]}" if str(cause) else type(cause).__name__
