"""Tokens, each with a role and a name. The file holds only their hashes."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import secrets
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args

import filelock
from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator

from omg_cmdp.persistence import whole_file
from omg_cmdp.validation import file_path, instance_of
from omg_trial.contract.calls import STRICT
from omg_trial.contract.models import describe_problem
from omg_trial.trial_file.kinds import DayText, Printable

Role = Literal["app", "analyst", "blinded", "follower", "administrator", "phone"]
ROLES: tuple[str, ...] = get_args(Role)
RATES = dict.fromkeys(ROLES, 500.0) | {"phone": 5.0}
"""Calls a second that a token of each role may make, and as many at once, unless its line says otherwise."""


class Token(BaseModel):
    """What is known of a token; never the token itself."""

    model_config = STRICT
    role: Role
    hash: str
    name: Annotated[str, Field(max_length=100), Printable]
    """To know it by. It is in every event that a call with this token causes, unless it is a phone's."""
    person: str | None = Field(default=None, validate_default=True)
    """Whose phone it is; a phone may call for this person only."""
    expires: DayText | None = None
    """The last day on which it is valid, by UTC."""
    rate: Annotated[float, Field(gt=0.0)] | None = None
    """Calls a second; None for the usual rate of the role."""

    @field_validator("person")
    @classmethod
    def _is_for_a_phone(cls, person: str | None, about: ValidationInfo) -> str | None:
        if (about.data.get("role") == "phone") != (person is not None):
            raise ValueError("the token of a phone needs a `person`, and tokens of other roles have none")
        return person

    @property
    def actor(self) -> str:
        """What events call it: a phone's name may name a person, and a part of its hash does not."""
        return f"phone {self.hash[:12]}" if self.role == "phone" else self.name

    def valid(self) -> bool:
        """Return whether it has not expired."""
        return self.expires is None or datetime.datetime.now(datetime.UTC).date().isoformat() <= self.expires


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

    def add(self, role: str, name: str, *, replaces: bool = False, **about: Any) -> str:
        """Return a new token, which is not kept: only its hash is. `about` is what else a `Token` has.

        `replaces` takes back all tokens of this name, in the same moment.
        """
        if replaces and name not in {each.name for each in self.all()}:
            raise ValueError(f"there is no token {name!r} to replace")
        token = secrets.token_urlsafe(32)
        try:
            made = Token.model_validate({**about, "role": role, "name": name, "hash": _hash(token)})
        except ValidationError as error:
            raise ValueError(describe_problem(error.errors())) from None
        self._change(lambda each: not replaces or each.name != name, made)
        return token

    def revoke(self, name: str) -> int:
        """Take back all tokens of this name, and return how many there were."""
        return self._change(lambda each: each.name != name)

    def forget(self, person: str) -> int:
        """Take back the tokens of a person's phones."""
        instance_of("person", person, str)
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
                    file.write_text("".join(f"{each.model_dump_json()}\n" for each in (*kept, *new)), encoding="utf-8")
                    file.chmod(0o600)
        return len(before) - len(kept)

    def _read(self) -> None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._known, self._seen = {}, None
            return
        if (seen := (status.st_ino, status.st_mtime_ns, status.st_size)) != self._seen:
            known = {}
            for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
                with contextlib.suppress(ValueError):  # not a line of ours
                    found = Token.model_validate_json(line)
                    known[found.hash] = found
            self._known, self._seen = known, seen  # once it is read: a failure must not look like a file without tokens


def _hash(token: str) -> str:
    """Return the hash of a token. Tokens are long and random: a slow hash would add nothing."""
    return hashlib.sha256(token.encode()).hexdigest()
