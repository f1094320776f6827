"""What a client must not forget: calls that were not answered yet, episodes under way, and how far it knows the log.

It is a SQLite file, written before anything is sent. A call keeps its key there until it is answered, through crashes
and restarts, and so is one call however often it is sent. What was answered is deleted, and with it who it was about.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import secrets
import sqlite3
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

from omg_cmdp.validation import file_path

_TABLES = """
CREATE TABLE IF NOT EXISTS calls (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL, path TEXT NOT NULL, body TEXT NOT NULL, waits INTEGER NOT NULL, refusal TEXT
);
CREATE TABLE IF NOT EXISTS episodes (episode INTEGER PRIMARY KEY, opened TEXT NOT NULL, call INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS seen (row INTEGER PRIMARY KEY CHECK (row = 1), mark TEXT);
"""
_READ = ("SELECT number, key, path, body, waits, refusal FROM calls", "SELECT episode, opened, call FROM episodes")

LARGEST_EPISODE = 2**53


class QueuedCall(NamedTuple):
    """A call that was not answered yet."""

    number: int
    key: str
    path: str
    body: dict[str, Any]


class Outbox:
    """The calls and episodes of a client. `path` is a file; None keeps them in memory."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        name = ":memory:" if path is None else str(file_path(path, "queue").absolute())
        try:
            if path is not None:
                os.close(os.open(name, os.O_RDWR | os.O_CREAT, 0o600))  # nobody else's to read
            self._file = sqlite3.connect(name, isolation_level=None, check_same_thread=False)
            weakref.finalize(self, self._file.close)  # also if this is no file of a client, or nobody closes it
            for pragma in ("secure_delete = ON", "journal_mode = TRUNCATE", "synchronous = FULL"):
                self._file.execute(f"PRAGMA {pragma}")
            self._file.executescript(_TABLES)
            if (found := self._file.execute("PRAGMA integrity_check(1)").fetchone()) != ("ok",):
                raise sqlite3.DatabaseError(f"it is damaged: {found[0]}")
            for query in _READ:
                self._file.execute(query).fetchall()
            row = self._file.execute("SELECT mark FROM seen").fetchone()
        except (OSError, sqlite3.Error) as error:
            raise ValueError(f"`queue` must be a file of a client, or a new one, got {name!r}: {error}") from None
        self.seen: str | None = None if row is None else row[0]
        """NUMBER:HASH of the last event that the client knows of; kept with what is kept next."""

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def call(self, path: str, body: dict[str, Any], *, waits: bool) -> QueuedCall:
        """Return the call to make: one with a new key, or the same that was not answered before.

        One that `waits` is sent whenever there is a network; others only when they are made again.
        """
        text = _json(body)
        known = "SELECT number, key FROM calls WHERE path = ? AND body = ? AND waits = ? AND refusal IS NULL"
        found = self._file.execute(known, (path, text, waits)).fetchone()
        if found is not None:
            return QueuedCall(found[0], found[1], path, body)
        key = secrets.token_urlsafe(24)
        kept = "INSERT INTO calls (key, path, body, waits) VALUES (?, ?, ?, ?)"
        number = self._file.execute(kept, (key, path, text, waits)).lastrowid
        assert number is not None
        return QueuedCall(number, key, path, body)

    def waiting(self) -> Iterator[QueuedCall]:
        """Yield the calls that wait for a network, in their order."""
        query = "SELECT number, key, path, body FROM calls WHERE waits AND refusal IS NULL ORDER BY number LIMIT 1"
        while (row := self._file.execute(query).fetchone()) is not None:
            yield QueuedCall(row[0], row[1], row[2], _body(row[3]))

    def done(self, call: QueuedCall) -> None:
        """Forget a call that was answered."""
        with self._transaction():
            self._file.execute("DELETE FROM calls WHERE number = ?", (call.number,))

    def refuse(self, call: QueuedCall, message: str) -> None:
        """Set a call aside that waited, and was refused."""
        self._file.execute("UPDATE calls SET refusal = ? WHERE number = ?", (message, call.number))

    def refused(self) -> list[tuple[str, dict[str, Any], str]]:
        """Return path, body and refusal of every call that was set aside."""
        rows = self._file.execute("SELECT path, body, refusal FROM calls WHERE refusal IS NOT NULL ORDER BY number")
        return [(path, _body(body), refusal) for path, body, refusal in rows]

    def known_decision(self, episode: int, step: int, state: str) -> tuple[dict[str, Any], dict[str, str]] | None:
        """Return the decision that the service would make, from the table with which the episode was opened.

        With it comes what shows that it could be made without a network: the time, and the signature of an allowance.
        """
        row = self._file.execute("SELECT opened FROM episodes WHERE episode = ?", (episode,)).fetchone()
        try:
            return None if row is None else _decision(json.loads(row[0]), episode, step, state)
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            wrong = f"the answer by which episode {episode} was opened is none of a service of this version"
            raise ValueError(f"{wrong} ({type(error).__name__}: {error!s:.60})") from None

    def tells(self, path: str, step: int, state: str) -> bool:
        """Return whether a decision of this step and state waits already."""
        rows = self._file.execute("SELECT body FROM calls WHERE path = ? AND waits AND refusal IS NULL", (path,))
        return any((body["step"], body["state"]) == (step, state) for body in (_body(text) for (text,) in rows))

    def keep(self, opened: dict[str, Any], call: QueuedCall) -> None:
        """Keep how an episode was opened, and the call: made again while the episode is under way, it is the same."""
        episode = opened.get("episode")
        if type(episode) is not int or not 0 < episode <= LARGEST_EPISODE:
            raise ValueError(f"the service must answer with the number of the episode, got {episode!r:.60}")
        row = episode, json.dumps(opened), call.number
        with self._transaction():
            self._file.execute("REPLACE INTO episodes VALUES (?, ?, ?)", row)

    def forget(self, episode: int) -> None:
        """Forget an episode."""
        with self._transaction():
            opening = "SELECT call FROM episodes WHERE episode = ?"
            self._file.execute(f"DELETE FROM calls WHERE number IN ({opening})", (episode,))
            self._file.execute("DELETE FROM episodes WHERE episode = ?", (episode,))

    def trust(self) -> None:
        """Forget the last event that was seen, and the episodes: a number may be that of another person's by now.

        So what waits is not sent, and set aside.
        """
        self.seen, lost = None, "it waited when events were lost: its episode may be another person's now"
        with self._transaction():
            self._file.execute("UPDATE calls SET refusal = ? WHERE waits AND refusal IS NULL", (lost,))
            self._file.execute("DELETE FROM episodes")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._file:
            self._file.execute("BEGIN IMMEDIATE")
            yield
            self._file.execute("REPLACE INTO seen VALUES (1, ?)", (self.seen,))


def _decision(
    opened: dict[str, Any], episode: int, step: int, state: str
) -> tuple[dict[str, Any], dict[str, str]] | None:
    now, allowance = _now(), opened["allowance"]
    proof = {"device_time": now.isoformat()}
    if opened["drawn"] is None or state not in opened["states"] or not 0 <= step < opened["horizon"]:
        return None
    if allowance is not None:
        if now >= datetime.datetime.fromisoformat(allowance["until"]):
            return None
        proof["allowance"] = allowance["signature"]
    place = opened["states"].index(state)
    action = opened["drawn"][step][place]
    probability = opened["policy"][step][place][opened["actions"].index(action)]
    why = {"source": opened["source"], "cause": opened["cause"], "rules": []}
    about = {"available": True, "version": opened["version"], "fallback": None if opened["source"] == "plan" else why}
    drawn = {"step": step, "action": action, "probability": probability}
    return {"episode": episode, "event": None, **drawn, **about}, proof


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _body(text: str) -> dict[str, Any]:
    try:
        return {**json.loads(text)}
    except (RecursionError, TypeError, ValueError):
        raise ValueError("`queue` must be as a client writes it, got a call whose body is no JSON object") from None


def _json(body: dict[str, Any]) -> str:
    for name, value in body.items():
        try:
            json.dumps(value, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise ValueError(f"`{name}` must be finite numbers, texts, lists and objects, got {value!r:.60}") from None
    return json.dumps(body, sort_keys=True, allow_nan=False)
