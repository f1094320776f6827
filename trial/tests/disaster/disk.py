"""A disk under SQLite that fails or ends the process, as the script says, at the n-th statement or commit."""

import contextlib
import dataclasses
import errno
import sqlite3
import sqlite3.dbapi2
from unittest import mock

from trial.tests.disaster.kernel import Crash

ERRORS = {
    "full": lambda: sqlite3.OperationalError("database or disk is full"),
    "broken": lambda: sqlite3.OperationalError("disk I/O error"),
    "no memory": MemoryError,
    "no files": lambda: OSError(errno.EMFILE, "Too many open files"),
}

SYNC, NO_SYNC = "PRAGMA synchronous = FULL", "PRAGMA synchronous = OFF"
"""No power is cut here. The journal stays where it is: by it SQLite notices that its file was moved."""


@dataclasses.dataclass
class Fault:
    """Befalls the process `who` after it has passed `after` points, `times` times; "crash" ends it."""

    who: str
    after: int
    kind: str
    times: int = 1


class Disk:
    """Counts the statements and commits of every process; a commit is a point before it and a point after it."""

    def __init__(self, kernel, crash):
        self._kernel, self._crash, self.faults = kernel, crash, []
        self.points = 0

    def touch(self, owner):
        """Pass a point, or not."""
        if owner is None:
            return
        if owner.dead:
            raise Crash
        self.points += 1
        for fault in [each for each in self.faults if each.who == owner.name]:
            fault.after -= 1
            if fault.after >= 0:
                continue
            fault.times -= 1
            if fault.times <= 0:
                self.faults.remove(fault)
            if fault.kind == "crash":
                self._crash(owner)
                raise Crash
            raise ERRORS[fault.kind]()

    @contextlib.contextmanager
    def mounted(self):
        """Let every connection to SQLite be to this disk."""
        disk, connect = self, sqlite3.connect

        class Cursor(sqlite3.Cursor):
            def execute(self, *given):
                disk.touch(self.connection.owner)
                return super().execute(*given)

            def executemany(self, *given):
                disk.touch(self.connection.owner)
                return super().executemany(*given)

        class Connection(sqlite3.Connection):
            owner = None

            def cursor(self, factory=Cursor):
                return super().cursor(factory)

            def execute(self, statement, *given):
                disk.touch(self.owner)
                return super().execute(NO_SYNC if statement == SYNC else statement, *given)

            def commit(self):
                disk.touch(self.owner)
                super().commit()
                disk.touch(self.owner)

            def __exit__(self, kind, *given):
                if kind is None:
                    self.commit()
                else:
                    self.rollback()

        def connecting(*given, **options):
            connection = connect(*given, **{**options, "factory": Connection})
            connection.owner = disk._kernel.owner
            return connection

        with replaced(connecting):
            yield


@contextlib.contextmanager
def replaced(connect):
    """Let `connect` make every connection to SQLite, SQLAlchemy's too."""
    with mock.patch.object(sqlite3, "connect", connect), mock.patch.object(sqlite3.dbapi2, "connect", connect):
        yield
