"""Tokens, each with a role. The file holds only their hashes."""

from __future__ import annotations

import hashlib
import os
import re
import secrets

from omg_cmdp.validation import file_path, instance_of, one_of

ROLES = ("app", "analyst", "administrator")
_LINE = re.compile(r"(app|analyst|administrator) ([0-9a-f]{64}) (.*)")


class Tokens:
    """The tokens of a file, one on each line: its role, its hash, and a name to know it by.

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
    ...     tokens.role(tokens.add("analyst", "the statistician")), tokens.role("a guess")
    ('analyst', None)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = file_path(path)
        self._seen: tuple[int, int] | None = None
        self._known: dict[str, tuple[str, str]] = {}

    def role(self, token: str) -> str | None:
        """Return the role of a token; None if it has none."""
        return self.find(token)[0]

    def find(self, token: str) -> tuple[str | None, str]:
        """Return role and name of a token; None and "" if it is unknown."""
        instance_of("token", token, str)
        self._read()
        return self._known.get(_hash(token), (None, ""))

    def add(self, role: str, name: str) -> str:
        """Return a new token, which is not kept: only its hash is."""
        one_of("role", role, ROLES)
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= 100:
            raise ValueError(f"`name` must be a text of 1 to 100 printable characters, got {name!r:.60}")
        token = secrets.token_urlsafe(32)
        # Made for its owner alone, whatever the umask; and appended, so that two commands lose no line.
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(f"{role} {_hash(token)} {name}\n")
        return token

    def _read(self) -> None:
        try:
            status = self.path.stat()
        except OSError:
            self._known, self._seen = {}, None
            return
        if (seen := (status.st_mtime_ns, status.st_size)) != self._seen:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
            found = [match for line in lines if (match := _LINE.fullmatch(line.strip()))]
            self._known = {match[2]: (match[1], match[3]) for match in found}
            self._seen = seen


def _hash(token: str) -> str:
    """Return the hash of a token. Tokens are long and random: a slow hash would add nothing."""
    return hashlib.sha256(token.encode()).hexdigest()
