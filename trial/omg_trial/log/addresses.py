"""Where a log is kept: the address of its database, its key file, and how SQLite is set up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import SQLAlchemyError

from omg_cmdp.validation import file_path


def parse_url(url: str | os.PathLike[str]) -> sql.URL:
    """Return the address of a database, by a file or a URL."""
    text = url if isinstance(url, str) else str(file_path(url, "url"))
    if text == ":memory:":
        return sql.URL.create("sqlite")
    if "://" not in text:
        return sql.URL.create("sqlite", database=str(file_path(text, "url").absolute()))
    try:
        made = sql.make_url(text)
    except SQLAlchemyError:
        made = sql.URL.create("none")
    if made.get_backend_name() == "postgresql":
        return made.set(drivername="postgresql+psycopg")
    if made.get_backend_name() == "sqlite" and made.database:
        return made
    raise ValueError(f"`url` must be a file, sqlite:///FILE or postgresql://..., got {made.render_as_string()!r}")


def key_path(database: str | None, keys: str | os.PathLike[str] | None) -> Path | None:
    """Return the key file of a database: the one that is named, or the one beside a SQLite file; None in memory."""
    if keys is None:
        return None if database is None else Path(database).with_suffix(".keys")
    path = file_path(keys, "keys")
    if database is not None and path.absolute() == Path(database).absolute():
        raise ValueError(f"{path} is the database itself: name another file for `keys`")
    return path


def set_up_to_write(connection: Any, _: Any) -> None:
    """Set up a connection to SQLite that writes: what was acknowledged is kept, and what was deleted is not."""
    _set(connection, "busy_timeout = 5000", "journal_mode = PERSIST", "synchronous = FULL", "secure_delete = ON")


def set_up_to_read(connection: Any, _: Any) -> None:
    """Set up a connection to SQLite that only reads."""
    # Beside a service that writes all the time, a reader finds a gap seldom: backups would fail after five seconds.
    _set(connection, "busy_timeout = 60000")


def _set(connection: Any, *pragmas: str) -> None:
    try:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}").close()
    except BaseException:
        connection.close()  # nobody else would: it is not yet the engine's
        raise
