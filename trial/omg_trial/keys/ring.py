"""The key ring of a trial: its secret, a key for each person, and one for the snapshot, in memory or in a file."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import sqlite3
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from omg_trial.keys.marks import ALIAS, alias_of, commitment, keyed

FORMAT = "1"
PRIVATE = ("person", "context", "zone", "consent_from", "consent_to", "end")
"""Facts of an event about a person that are written under their key only."""
_NONCE = 12
_SNAPSHOT = "snapshot"


class KeyFileError(ValueError):
    """The key file is missing, damaged, older than the log, or of another trial."""


class KeyRing:
    """The secret of a trial, and the keys under which names, contexts and snapshots are written.

    A person is an alias in the log, HMAC-SHA-256(secret; name). Their name and context are sealed by ChaCha20-Poly1305
    under a random key of their own. Whoever destroys the key erases the person, in every copy of the log.

    Parameters
    ----------
    path : path or None
        A SQLite file, made when the trial is founded, for its owner alone. None keeps the keys in memory, for
        rehearsals and tests.

    Examples
    --------
    >>> ring = KeyRing(None)
    >>> ring.found()
    >>> sealed = ring.seal({"person": "p1", "context": "alone", "version": 0})
    >>> sorted(sealed), sealed["person"] == ring.alias("p1")
    (['person', 'sealed', 'version'], True)
    >>> ring.unseal(sealed) == {"person": "p1", "context": "alone", "version": 0}
    True
    >>> ring.destroy(ring.alias("p1"))
    >>> ring.unseal(sealed)["person"] == ring.alias("p1"), ring.unseal(sealed)["context"]
    (True, '')
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.secret = ""
        """Empty if there is no key file yet."""
        self._keys: dict[str, bytes | None] = {}
        self._new: set[str] = set()
        self._held: dict[str, tuple[bytes | None, ...]] = {}
        """What the file may have in each row: one value, or some after a write that failed; b"" for no row."""
        if path is not None and path.exists():
            self._load(path)

    def found(self, secret: str | None = None) -> None:
        """Make the secret, or take that of a rehearsal, and keep it; one that was kept without people is taken."""
        if any(name.startswith(ALIAS) for name in self._keys):
            raise ValueError(f"{self.path} has the keys of another trial: move it away, or name another key file")
        if not self.secret:
            self.secret = secrets.token_hex(32) if secret is None else secret
            try:
                if self.path is not None:
                    os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
                self._write(["format", "secret"])
            except BaseException:
                self.secret = ""  # nothing may be written under a secret that is perhaps in no file
                raise

    def alias(self, person: str) -> str:
        """Return the pseudonym of a person."""
        return alias_of(self.secret, person)

    def mark(self, *parts: str) -> str:
        """Return the keyed hash of some texts, such as the key of a call."""
        return keyed(self.secret, *parts)

    def mark_call(self, person: str | None, text: str, *, add: bool = False) -> str:
        """Return the keyed hash of a call: under the key of the person that it names, so that it is erased with them.

        If there is no such key, it is empty, unless one is to be added.
        """
        if add and person is not None:
            self._add(person)
        key = self.secret.encode() if person is None else self._keys.get(self.alias(person))
        return "" if key is None else keyed(key, "call", text)

    def _add(self, person: str) -> None:
        """Make a key for a person who has none; it is written by `save`."""
        if (alias := self.alias(person)) not in self._keys:
            self._keys[alias] = secrets.token_bytes(32)
            self._new.add(alias)

    def holds(self, alias: str) -> bool:
        """Return whether there is a key of this person."""
        return self._keys.get(alias) is not None

    def has_erased(self, person: str) -> bool:
        """Return whether there was a key of this person, and it was destroyed."""
        return (alias := self.alias(person)) in self._keys and not self.holds(alias)

    def seal(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body of an event as the log has it: what is private of a person lies under their key."""
        person = body.get("person")
        if person is None or person.startswith(ALIAS):
            return body
        self._add(person)
        alias = self.alias(person)
        private = {name: body[name] for name in PRIVATE if name in body}
        sealed = _encrypt(self._key(alias), json.dumps(private, separators=(",", ":")).encode(), alias)
        rest = {name: value for name, value in body.items() if name not in private}
        return {**rest, "person": alias, "sealed": base64.b64encode(sealed).decode()}

    def unseal(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body of an event as it was before `seal`; the name of an erased person is their alias."""
        if "commitment" in body and self.secret:
            if body["commitment"] != commitment(self.secret):
                raise KeyFileError(f"the key file {self.path} is of another trial: give the one of this log (--keys)")
            return {**body, "secret": self.secret}
        if "sealed" not in body:
            return body
        rest, alias = {name: value for name, value in body.items() if name != "sealed"}, body["person"]
        if alias not in self._keys and self.path is not None and self.path.exists() and not self._new:
            self._load(self.path)  # beside a service that writes, there may be more keys by now
        if self.secret and alias in self._keys and not self.holds(alias):
            return {**dict.fromkeys(PRIVATE), **rest, "context": "", "zone": ""}
        try:
            private = _decrypt(self._key(alias), base64.b64decode(body["sealed"]), alias)
        except InvalidTag:
            raise KeyFileError(f"the key file {self.path} is damaged, or not the one of this log") from None
        return {**rest, **json.loads(private)}

    def seal_snapshot(self, content: bytes) -> bytes:
        """Return a snapshot as the store keeps it, under a key that replaces the one of all snapshots before."""
        key = self._keys[_SNAPSHOT] = secrets.token_bytes(32)
        self._new.add(_SNAPSHOT)
        return _encrypt(key, content, _SNAPSHOT)

    def unseal_snapshot(self, content: bytes) -> bytes | None:
        """Return what `seal_snapshot` was given; None if its key was replaced or destroyed since."""
        try:
            return _decrypt(self._key(_SNAPSHOT), content, _SNAPSHOT)
        except (InvalidTag, KeyFileError):
            return None

    def save(self) -> None:
        """Write the new keys, which are durable when this returns."""
        if self._new:
            self._write(sorted(self._new))
            self._new = set()

    def destroy(self, alias: str) -> None:
        """Destroy the key of a person, and that of the snapshot; that there was one stays known."""
        key, self._keys[alias], self._keys[_SNAPSHOT] = self._keys.get(alias), None, None
        self._new -= {alias, _SNAPSHOT}
        try:
            self._write([alias, _SNAPSHOT], vacuum=True)
        except BaseException:
            self._keys[alias] = key  # the file may still have it: it must be destroyed again
            raise

    def _key(self, name: str) -> bytes:
        if not self.secret:
            raise KeyFileError(f"there is no key file {self.path or ''}: give the one of this log (--keys)")
        if (key := self._keys.get(name)) is None:
            raise KeyFileError(f"the key file {self.path} lacks a key that the log needs: give its newest copy")
        return key

    def _row(self, name: str) -> tuple[str, bytes | None, str]:
        known = {"format": FORMAT.encode(), "secret": self.secret.encode()}
        key = known.get(name) or self._keys.get(name)
        return name, key, self.mark("row", name, "" if key is None else key.hex())

    def _write(self, names: list[str], *, vacuum: bool = False) -> None:
        if self.path is None:
            return
        # Opened anew each time: pages of the file that was there before would hide that it was replaced. It is not made
        # here: if somebody has moved it away, a new one would lack all other keys.
        with contextlib.closing(_connect(self.path, isolation_level=None)) as file:
            for pragma in ("journal_mode = TRUNCATE", "synchronous = EXTRA", "secure_delete = ON"):
                file.execute(f"PRAGMA {pragma}").close()
            rows = [self._row(name) for name in names]
            with file:
                file.execute("BEGIN IMMEDIATE")
                if "secret" in names:  # the table is there with its first rows, or not at all
                    file.execute("CREATE TABLE keys (name TEXT PRIMARY KEY, key BLOB, mark TEXT NOT NULL)")
                else:
                    self._check(file)
                self._held.update({name: (*self._held.get(name, (b"",)), key) for name, key, _ in rows})
                file.executemany("INSERT OR REPLACE INTO keys VALUES (?, ?, ?)", rows)
            self._held.update({name: (key,) for name, key, _ in rows})
            if vacuum:
                file.execute("VACUUM")

    def _check(self, file: sqlite3.Connection) -> None:
        """Refuse a file that does not hold what was written to it: an older copy, or that of another trial."""
        replaced = f"the key file {self.path} is not the one that was written: an older or another one was put there"
        try:
            found = dict(file.execute("SELECT name, key FROM keys"))
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            raise KeyFileError(replaced) from None
        held = all(found.get(name, b"") in values for name, values in self._held.items())
        if not held or not found.keys() <= self._held.keys():
            raise KeyFileError(replaced)

    def _load(self, path: Path) -> None:
        wrong = f"the key file {path} is damaged, or no key file: restore its newest copy"
        try:
            with contextlib.closing(_connect(path)) as file:
                rows = {name: (key, mark) for name, key, mark in file.execute("SELECT name, key, mark FROM keys")}
            self._held = {name: (key,) for name, (key, _) in rows.items()}
            kind, self.secret = rows.pop("format")[0].decode(), rows.pop("secret")[0].decode()
            self._keys = {name: key for name, (key, _) in rows.items()}
            marked = all(self._row(name) == (name, *row) for name, row in rows.items())
        except (sqlite3.Error, KeyError, AttributeError, TypeError, UnicodeError) as error:
            if not path.stat().st_size:  # made, and nothing was written: the process ended between the two
                path.unlink()
                return
            raise KeyFileError(f"{wrong} ({type(error).__name__})") from None
        if kind != FORMAT:
            raise KeyFileError(f"the key file {path} has format {kind}, and this version reads format {FORMAT}")
        if not marked:
            raise KeyFileError(wrong)


def _connect(path: Path, **options: Any) -> sqlite3.Connection:
    file: sqlite3.Connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, **options)
    return file


def _encrypt(key: bytes, content: bytes, about: str) -> bytes:
    nonce = secrets.token_bytes(_NONCE)
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, content, about.encode())


def _decrypt(key: bytes, sealed: bytes, about: str) -> bytes:
    return ChaCha20Poly1305(key).decrypt(sealed[:_NONCE], sealed[_NONCE:], about.encode())
