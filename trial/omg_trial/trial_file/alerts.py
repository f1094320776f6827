"""The table `[alerts]`: who is told of an incident, and how. It may change during the trial.

The log holds the trial file, so that no password may be in it: a secret is named by where it is kept.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from omg_trial.trial_file.kinds import TimeOfDay, must
from omg_trial.trial_file.table import FileTable


def _is_url(text: str) -> bool:
    parts = urllib.parse.urlsplit(text)
    return bool(parts.scheme in ("http", "https") and parts.hostname and not parts.username and not parts.query)


_is_kept = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+").fullmatch
_is_mail = re.compile(r"[^\s@<>,;]+@[^\s@<>,;]+").fullmatch
_is_server = re.compile(r"[A-Za-z0-9.-]+:[0-9]{1,5}").fullmatch
_URL_RULE = "give https://... without a password or a query, env:NAME or file:PATH"
_SECRET_RULE = "the log holds this file: give env:NAME or file:PATH, and keep the secret there"
Webhook = Annotated[str, must(lambda text: _is_url(text) or _is_kept(text), _URL_RULE)]
Reference = Annotated[str, must(_is_kept, _SECRET_RULE)]
Address = Annotated[str, must(_is_mail, "give an e-mail address such as team@example.org")]
Server = Annotated[str, must(_is_server, "give HOST:PORT, such as mail.example.org:587")]


class Alerts(FileTable):
    """Who is told of incidents: a webhook, people by e-mail, or both. Messages name no people."""

    webhook: Webhook | None = None
    """Address to which incidents are posted as JSON; or env:NAME or file:PATH, where it is kept."""
    webhook_token: Reference | None = None
    """Sent as `Authorization: Bearer`."""
    smtp: Server | None = None
    """Mail server, as HOST:PORT."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    sender: Address | None = None
    to: tuple[Address, ...] = Field(default=(), strict=False)
    user: str | None = None
    password: Reference | None = None
    severities: tuple[Literal["red", "yellow"], ...] = Field(default=("red", "yellow"), strict=False)
    """Colours of checks that are told of at once."""
    digest: TimeOfDay | None = None
    """Time of day, by the trial's clock, of a daily digest."""

    @model_validator(mode="after")
    def _be_whole(self) -> Alerts:
        if (self.smtp is None) != (self.sender is None) or (self.smtp is None) != (not self.to):
            raise ValueError("e-mail needs `smtp`, `sender` and `to`")
        if (self.user is None) != (self.password is None):
            raise ValueError("give `user` and `password`, or neither")
        if self.password is not None and self.security == "none":
            raise ValueError("a password would be sent in the clear: use security = 'starttls' or 'tls'")
        if self.webhook_token is not None and self.webhook is None:
            raise ValueError("`webhook_token` needs a `webhook`")
        return self


def secret(reference: str | None) -> str | None:
    """Return what env:NAME or file:PATH stands for; a text of another form is returned as it is.

    >>> secret("https://hooks.example.org/trial"), secret(None)
    ('https://hooks.example.org/trial', None)
    """
    kind, _, name = (reference or "").partition(":")
    if kind not in ("env", "file"):
        return reference
    try:
        found = os.environ[name] if kind == "env" else Path(name).read_text(encoding="utf-8")
    except (KeyError, OSError, UnicodeError):
        what = f"the environment variable {name}" if kind == "env" else f"the file {name}"
        raise ValueError(f"[alerts] names {what}, which cannot be read; set it, or take it out") from None
    if not found.strip():
        raise ValueError(f"[alerts] names {name}, which is empty")
    return found.strip()
