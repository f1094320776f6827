"""Stands in for `sqlite3`, on apsw: its virtual file system sees every write and sync of SQLite, and may fail."""

import contextlib
import os
import sqlite3

import apsw

from trial.tests.disaster.disk import replaced


class Recorder(apsw.VFS):
    """Passes everything on to the file system, and tells `note`; `fail` is asked before each operation."""

    def __init__(self, note=lambda *_: None, fail=lambda _: None):
        super().__init__("recorder", "")
        self.note, self.fail = note, fail

    def xOpen(self, name, flags):  # noqa: N802 - the names are SQLite's
        self.fail("open")
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        file = _File(self, name, flags)
        if path is not None:
            self.note("create", path)
            file.path, file.is_new_journal = (
                path,
                path.endswith("-journal") and bool(flags[0] & apsw.SQLITE_OPEN_CREATE),
            )
        return file

    def xDelete(self, name, syncdir):  # noqa: N802
        self.fail("delete")
        super().xDelete(name, syncdir)
        self.note("delete", name)
        if syncdir:
            self.note("sync folder", os.path.dirname(name))  # noqa: PTH120


class _File(apsw.VFSFile):
    path, is_new_journal = None, False

    def __init__(self, recorder, name, flags):
        self._recorder = recorder
        super().__init__("", name, flags)

    def _tell(self, what, *given):
        if self.path is not None:
            self._recorder.note(what, self.path, *given)

    def xRead(self, amount, offset):  # noqa: N802
        self._recorder.fail("read")
        return super().xRead(amount, offset)

    def xWrite(self, data, offset):  # noqa: N802
        self._recorder.fail("write")
        super().xWrite(data, offset)
        self._tell("write", offset, bytes(data))

    def xTruncate(self, size):  # noqa: N802
        self._recorder.fail("cut")
        super().xTruncate(size)
        self._tell("cut", size)

    def xSync(self, flags):  # noqa: N802
        self._recorder.fail("sync")
        super().xSync(flags)
        self._tell("sync")
        if self.is_new_journal:  # SQLite syncs the folder of a journal that is new
            self.is_new_journal = False
            self._recorder.note("sync folder", os.path.dirname(self.path))  # noqa: PTH120


@contextlib.contextmanager
def _errors():
    try:
        yield
    except apsw.ConstraintError as error:
        raise sqlite3.IntegrityError(str(error)) from error
    except apsw.NoMemError as error:
        raise MemoryError from error
    except (apsw.FullError, apsw.IOError, apsw.BusyError, apsw.CantOpenError, apsw.SQLError) as error:
        raise sqlite3.OperationalError(str(error)) from error
    except apsw.Error as error:
        raise sqlite3.DatabaseError(str(error)) from error


class Connection:
    """As much of `sqlite3.Connection` as the packages use."""

    def __init__(self, name, *, isolation_level="", uri=False, recorder=None, **_):
        self.isolation_level = isolation_level
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | (apsw.SQLITE_OPEN_URI if uri else 0)
        with _errors():
            self.base = apsw.Connection(name, flags=flags, vfs="recorder" if name != ":memory:" else None)

    def cursor(self, *_):
        return Cursor(self)

    def execute(self, *given):
        return Cursor(self).execute(*given)

    def executemany(self, *given):
        return Cursor(self).executemany(*given)

    def executescript(self, text):
        with _errors():
            list(self.base.cursor().execute(text))

    def commit(self):
        self._end("COMMIT")

    def rollback(self):
        self._end("ROLLBACK")

    def _end(self, how):
        with _errors():
            if not self.base.get_autocommit():
                self.base.cursor().execute(how)

    def begin(self, statement):
        """Begin a transaction before a statement that writes, as `sqlite3` does."""
        writes = statement.lstrip()[:7].upper() in ("INSERT ", "UPDATE ", "DELETE ", "REPLACE")
        if writes and self.isolation_level is not None and self.base.get_autocommit():
            self.base.cursor().execute("BEGIN")

    def create_function(self, *_, **__):
        pass

    def close(self):
        self.base.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.commit() if kind is None else self.rollback()


class Cursor:
    """As much of `sqlite3.Cursor` as the packages and SQLAlchemy use."""

    arraysize, description, lastrowid, rowcount = 1, None, None, -1

    def __init__(self, connection):
        self.connection, self._rows = connection, []

    def execute(self, statement, values=()):
        base = self.connection.base
        with _errors():
            self.connection.begin(statement)
            cursor, self.description = base.cursor(), None
            cursor.exec_trace = self._trace
            self._rows = list(cursor.execute(statement, values))
            self.rowcount, self.lastrowid = base.changes(), base.last_insert_rowid()
        return self

    def _trace(self, cursor, *_):
        found = cursor.get_description()
        self.description = [(each[0], *[None] * 6) for each in found] or None
        return True

    def executemany(self, statement, rows):
        for row in rows:
            self.execute(statement, row)
        return self

    def fetchone(self):
        return self._rows.pop(0) if self._rows else None

    def fetchmany(self, size=1):
        some, self._rows = self._rows[:size], self._rows[size:]
        return some

    def fetchall(self):
        return self.fetchmany(len(self._rows))

    def __iter__(self):
        return iter(self.fetchall())

    def close(self):
        pass


@contextlib.contextmanager
def mounted(recorder):
    """Let every new connection be one to the recorder."""
    with replaced(lambda name, **given: Connection(name, recorder=recorder, **given)):
        yield
