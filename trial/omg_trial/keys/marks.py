"""Keyed hashes under the trial's secret: with it they can be recomputed, and without it they tell nothing."""

from __future__ import annotations

import hashlib
import hmac
import json

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
ALIAS = "~"
"""What the name of nobody begins with: an alias is no name, and has no other alias."""


def keyed(secret: str | bytes, *parts: str | int) -> str:
    """Return the HMAC-SHA-256 of some texts and numbers, the first of which says what they are.

    >>> keyed("a", "key", "k1") != keyed("b", "key", "k1")
    True
    """
    key = secret if isinstance(secret, bytes) else secret.encode()
    return hmac.digest(key, _encode(parts).encode(), "sha256").hex()


def alias_of(secret: str, person: str) -> str:
    """Return the pseudonym of a person in the log; that of an alias is itself.

    >>> alias_of("a", alias_of("a", "p1")) == alias_of("a", "p1") != alias_of("b", "p1")
    True
    """
    return person if person.startswith(ALIAS) else ALIAS + keyed(secret, "person", person)[:32]


def commitment(secret: str) -> str:
    """Return what the first event says of the secret: it cannot be exchanged later, and cannot be told from this."""
    return hashlib.sha256(secret.encode()).hexdigest()
