"""Fingerprints: short texts by which saved objects know again what they were saved with."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

_PLAIN = (str, bool, int, float, np.bool_, np.integer, np.floating, type(None))

UNTOLD = "?"
"""The end of a fingerprint of something that cannot be told from another of its kind, such as a function."""


def fingerprint(*parts: object) -> str:
    """Return a short text that tells values apart, for settings.

    Types count, and dtypes and shapes of arrays; a dictionary has no order, and numpy's scalars are Python's. What has
    a `fingerprint` of its own, a text, is known by it, and a dataclass by its fields. Of anything else, such as a
    function, only its name and that of its type count, and the text ends with "?".

    >>> fingerprint({"a": [1, None]}), fingerprint(1) == fingerprint(np.int64(1)), fingerprint(1) == fingerprint(1.0)
    ('ee6a982547a2add8', True, False)
    >>> fingerprint(len)[-1]
    '?'
    """
    digest, told = _content(parts)
    return digest.hex()[:16] + ("" if told else UNTOLD)


EPISODES = (*range(1, 101), *(2**power for power in range(7, 31)))
"""Where functions of the episode are compared: the first hundred, and the powers of two."""


def by_values(function: Callable[[int], Any]) -> str:
    """Return a fingerprint of a function of the episode, by its values in `EPISODES`.

    >>> by_values(lambda t: 2 * t) == by_values(lambda t: t + t), by_values(lambda t: t) == by_values(lambda t: t + 1)
    (True, False)
    """
    values: list[float | str] = []
    for episode in EPISODES:
        try:
            values.append(float(function(episode)))
        except Exception as error:  # whatever a caller's function raises beyond its domain
            values.append(type(error).__name__)
    return fingerprint(values)


def setting(value: object) -> str:
    """Return `value` as a text for settings: itself, if it is plain or says what it is; otherwise its fingerprint.

    >>> setting(0.1), setting((0, 1)), setting(np.zeros(2)), setting(len)[-1]
    ('0.1', '(0, 1)', '5b73965e73e2451b', '?')
    """
    data = dataclasses.is_dataclass(value) and not isinstance(value, type)
    fields = tuple(getattr(value, each.name) for each in dataclasses.fields(value)) if data else value  # type: ignore
    if _is_plain(fields):
        return str(value)
    # Of an array the text is shortened, and of a function it is an address.
    shortened = data or isinstance(value, (np.ndarray, list, tuple, dict, set, frozenset))
    own = type(value).__str__ is not object.__str__ or not (type(value).__repr__ is object.__repr__ or callable(value))
    return str(value) if own and not shortened else fingerprint(value)


def _is_plain(value: object) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, tuple) else isinstance(value, _PLAIN)


def _content(value: Any) -> tuple[bytes, bool]:
    """Return a digest of `value`, and whether it tells the value from all others."""
    kind, content, parts = type(value).__name__, b"", list[Any]()
    told, own = True, getattr(value, "fingerprint", None)
    if isinstance(value, np.generic) and not isinstance(value.item(), np.generic):
        return _content(value.item())
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        kind, content = f"array {value.dtype.str} {value.shape}", value.tobytes()
    elif isinstance(value, (list, tuple, np.ndarray)):
        parts = [_content(each) for each in value]
    elif isinstance(value, (Mapping, set, frozenset)):
        entries = value.items() if isinstance(value, Mapping) else value
        parts = sorted(_content(each) for each in entries)
    elif value is None or isinstance(value, (str, bytes, bool, int, float)):
        content = repr(value).encode()
    elif isinstance(own, str) and not isinstance(value, type):
        content, told = own.encode(), not own.endswith(UNTOLD)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [_content((each.name, getattr(value, each.name))) for each in dataclasses.fields(value)]
    else:
        content, told = str(getattr(value, "__name__", "")).encode(), False
    whole = hashlib.sha256(kind.encode())
    # Digests of digests: no content can run into the next.
    for part in (hashlib.sha256(content).digest(), *(digest for digest, _ in parts)):
        whole.update(part)
    return whole.digest(), told and all(known for _, known in parts)
