"""Keyed hashes under the trial's secret: with it they can be recomputed, and without it they tell nothing."""

from __future__ import annotations

import hashlib
import hmac
import json

_quoted = json.encoder.encode_basestring
ALIAS = "~"
"""What the name of nobody begins with: an alias is no name, and has no other alias."""


def keyed(secret: str | bytes, *parts: str) -> str:
    """Return the HMAC-SHA-256 of some texts, the first of which says what they are.

    >>> keyed("a", "key", "k1") != keyed("b", "key", "k1")
    True
    """
    return keyed_hash(secret, f"[{','.join(map(_quoted, parts))}]").hex()


def keyed_hash(secret: str | bytes, text: str) -> bytes:
    """Return the HMAC-SHA-256 of a text.

    >>> keyed_hash("Jefe", "what do ya want for nothing?").hex()[:16]  # RFC 4231, test case 2
    '5bdcc146bf60754e'
    >>> keyed_hash(b"a", '["key","k1"]').hex() == keyed("a", "key", "k1")
    True
    """
    key = secret if isinstance(secret, bytes) else secret.encode()
    # Not `hmac.digest`: it lets the other threads run meanwhile, however short the text is. An answer takes five of
    # these hashes, and would wait for the thread that listens after each of them.
    return hmac.new(key, text.encode(), "sha256").digest()


def alias_of(secret: str, person: str) -> str:
    """Return the pseudonym of a person in the log; that of an alias is itself.

    >>> alias_of("a", "p1") == "~" + keyed_hash("a", '["person","p1"]').hex()[:32]
    True
    >>> alias_of("a", alias_of("a", "p1")) == alias_of("a", "p1") != alias_of("b", "p1")
    True
    """
    return person if person.startswith(ALIAS) else ALIAS + keyed(secret, "person", person)[:32]


def commitment(secret: str) -> str:
    """Return what the first event says of the secret: it cannot be exchanged later, and cannot be told from this."""
    return hashlib.sha256(secret.encode()).hexdigest()
