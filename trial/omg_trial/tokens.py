"""Tokens, each with a role and a name. The file holds only their hashes."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import secrets
from collections.abc import Callable
from typing import NamedTuple

import filelock

from omg_cmdp.persistence import whole_file
from omg_cmdp.validation import file_path, instance_of, one_of

RATES = dict.fromkeys(("app", "analyst", "blinded", "follower", "administrator"), 500.0) | {"phone": 5.0}
"""Calls a second that a token of each role may make, and as many at once, unless its line says otherwise."""
ROLES = tuple(RATES)


class Token(NamedTuple):
    """What is known of a token; never the token itself."""

    role: str
    hash: str
    name: str
    """To know it by. It is in every event that a call with this token causes, unless it is a phone's."""
    person: str | None = None
    """Whose phone it is; a phone may call for this person only."""
    expires: str | None = None
    """The last day on which it is valid, by UTC."""
    rate: float | None = None
    """Calls a second; None for the usual rate of the role."""

    @property
    def actor(self) -> str:
        """What events call it: a phone's name may name a person, and a part of its hash does not."""
        return f"phone {self.hash[:12]}" if self.role == "phone" else self.name

    def valid(self) -> bool:
        """Return whether it has not expired."""
        return self.expires is None or datetime.datetime.now(datetime.UTC).date() <= _day(self.expires)


class Tokens:
    """The tokens of a file: a line for each, with its role, its hash and a name to know it by.

    The file is read again when it has changed, so that a token can be taken back while the service runs.

    Parameters
    ----------
    path : path
        The file; made when the first token is added.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tokens = Tokens(f"{folder}/tokens")
    ...     made = tokens.add("analyst", "the statistician")
    ...     tokens.find(made).role, tokens.find("a guess"), [each.name for each in tokens.all()]
    ('analyst', None, ['the statistician'])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = file_path(path)
        self._seen: tuple[int, int, int] | None = None
        self._known: dict[str, Token] = {}

    def find(self, token: str) -> Token | None:
        """Return what is known of a token; None if it is unknown or has expired."""
        instance_of("token", token, str)
        self._read()
        found = self._known.get(_hash(token))
        return found if found is not None and found.valid() else None

    def all(self) -> list[Token]:
        """Return all tokens of the file, those that have expired too."""
        self._read()
        return list(self._known.values())

    def add(
        self,
        role: str,
        name: str,
        *,
        person: str | None = None,
        expires: str | None = None,
        rate: float | None = None,
        replaces: bool = False,
    ) -> str:
        """Return a new token, which is not kept: only its hash is.

        `replaces` takes back all tokens of this name, in the same moment.
        """
        one_of("role", role, ROLES)
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= 100:
            raise ValueError(f"`name` must be a text of 1 to 100 printable characters, got {name!r:.60}")
        if (role == "phone") != (person is not None):
            raise ValueError("a phone needs the `person` whose it is, and nobody else has one")
        if expires is not None:
            _day(expires)
        if rate is not None and not rate > 0.0:
            raise ValueError(f"`rate` must be above 0 calls a second, got {rate}")
        if replaces and name not in {each.name for each in self.all()}:
            raise ValueError(f"there is no token {name!r} to replace")
        token = secrets.token_urlsafe(32)
        made = Token(role, _hash(token), name, person, expires, rate)
        self._change(lambda each: not replaces or each.name != name, made)
        return token

    def revoke(self, name: str) -> int:
        """Take back all tokens of this name, and return how many there were."""
        return self._change(lambda each: each.name != name)

    def forget(self, person: str) -> int:
        """Take back the tokens of a person's phones."""
        return self._change(lambda each: each.person != person)

    def _change(self, stays: Callable[[Token], bool], *new: Token) -> int:
        """Keep some tokens and add new ones, and return how many were taken back.

        Two processes take turns: otherwise one would write again what the other has taken back.
        """
        with filelock.FileLock(f"{self.path}.lock", mode=0o600):
            before = self.all()
            kept = [each for each in before if stays(each)]
            if len(kept) < len(before) or new:
                with whole_file(self.path) as file:
                    os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))  # for its owner alone, whatever the umask
                    file.write_text("".join(f"{json.dumps(each._asdict())}\n" for each in (*kept, *new)))
                    file.chmod(0o600)
        return len(before) - len(kept)

    def _read(self) -> None:
        try:
            status = self.path.stat()
        except OSError:
            self._known, self._seen = {}, None
            return
        if (seen := (status.st_ino, status.st_mtime_ns, status.st_size)) != self._seen:
            self._known, self._seen = {}, seen
            for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    found = Token(**json.loads(line))
                    known = all(isinstance(*each) for each in zip(found, _KINDS, strict=True)) and found.role in ROLES
                    found.valid()
                except (RecursionError, TypeError, ValueError):
                    continue  # not a line of ours
                known = known and (found.role == "phone") == (found.person is not None)
                if known and (found.rate is None or found.rate > 0.0):
                    self._known[found.hash] = found


_KINDS = (str, str, str, str | None, str | None, float | int | None)
"""Of the fields of a token."""


def _day(text: str) -> datetime.date:
    """Return a day that is given as YYYY-MM-DD, and in no other way that ISO 8601 has."""
    try:
        found = datetime.date.fromisoformat(text)
        if found.isoformat() == text:
            return found
    except ValueError:
        pass
    raise ValueError(f"`expires` must be a day as YYYY-MM-DD, got {text!r:.40}")


def _hash(token: str) -> str:
    """Return the hash of a token. Tokens are long and random: a slow hash would add nothing."""
    return hashlib.sha256(token.encode()).hexdigest()
