"""Events: what happened, in order, each chained to the one before it by a hash. They are the truth; all else is a fold.

    h_n = SHA-256(h_{n-1}, event n)

A hash that was written down shows later whether anything before it was changed, left out or put in.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from omg_cmdp.validation import UNEXPECTED, instance_of
from omg_trial.keys.ring import KeyRing

FORMAT = 6
"""Of a log; in format 5, marks left out the event before, and allowances their week."""
FIRST_HASH = "0" * 64
MARK = re.compile("([1-9][0-9]{0,15}):([0-9a-f]{64})")
"""NUMBER:HASH of an event."""
# Sorted keys and no spaces: the same content has the same hash on every machine.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_quoted = json.encoder.encode_basestring
"""A text as `canonical` has it."""


Row = tuple[int, str, str, str, str | None, str | None, str | None, str]
"""Number, time, kind, body, key, request, answer and hash of an event, as a store keeps them."""


class BrokenChainError(ValueError):
    """A log that is not as it was written."""


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happened.

    Parameters
    ----------
    number : int
        Counts from 1.
    time : str
        UTC, with microseconds; never before the event before it.
    kind : str
        What happened: opened, decided, reported, ...
    text : str
        The body as canonical JSON, with what is private sealed. `body` has it decoded, and unsealed.
    key : str or None
        Keyed hash of the key of the call that it answers.
    request : str or None
        Keyed hash of that call, if there is one, a colon, and the mark of the service; see `marked`.
    answer : str or None
        What was answered, byte for byte.
    hash : str
        SHA-256 of the hash before it and all fields above; see `chained`.
    ring : KeyRing or None, default None
        Unseals the body; None if nothing in it is sealed.

    Examples
    --------
    >>> event = Event(1, "2026-11-02T09:00:00.000000+00:00", "founded", canonical({"name": "adherence"}))
    >>> event.body, event.chained(FIRST_HASH).mark[:10]
    ({'name': 'adherence'}, '1:3800231e')
    """

    number: int
    time: str
    kind: str
    text: str
    key: str | None = None
    request: str | None = None
    answer: str | None = None
    hash: str = ""
    ring: KeyRing | None = dataclasses.field(default=None, repr=False, compare=False)

    @functools.cached_property
    def body(self) -> dict[str, Any]:
        """The facts of the event, by name; `KeyFileError` if they cannot be unsealed."""
        try:
            found: dict[str, Any] = {**json.loads(self.text)}
            return found if self.ring is None else self.ring.unseal(found)
        except UNEXPECTED as error:
            raise self.unexpected(error) from error

    def unexpected(self, error: BaseException) -> BrokenChainError:
        """Return what to raise for an error in `UNEXPECTED`: the event has not the form in which a service writes it.

        The message repeats nothing that the event says, which is about a person.
        """
        rule = "is none that a service of this version writes"
        return BrokenChainError(f"event {self.number} {rule} ({type(error).__name__})")

    @property
    def row(self) -> Row:
        """What is kept of the event."""
        return self.number, self.time, self.kind, self.text, self.key, self.request, self.answer, self.hash

    @property
    def mark(self) -> str:
        """NUMBER:HASH. A log that has this event has all that was before it."""
        return f"{self.number}:{self.hash}"

    def marked(self, before: str) -> Event:
        """Return the event with the mark of the service after one with the hash `before`.

        It is the HMAC under the secret of all fields before the hash, and of `before`: an event of another copy of the
        log that went on by itself, as after a backup was restored, has a mark too, but not here.
        """
        return dataclasses.replace(self, request=f"{self.request or ''}:{self._mark(self.request or '', before)}")

    def _mark(self, called: str, before: str) -> str:
        assert self.ring is not None
        texts = (str(self.number), self.time, self.kind, self.text, self.key or "", called, self.answer or "")
        return self.ring.mark("event", *texts, before)

    def check_mark(self, before: str) -> None:
        """Raise if there is a key file, and somebody without it has written the event after one with this hash."""
        if self.ring is None or not self.ring.secret:
            return
        # `body` refuses a key file of another trial, too; and nobody reads on in another format.
        if self.kind == "founded" and self.body.get("format") != FORMAT:
            return
        called, _, written = (self.request or "").rpartition(":")
        if not hmac.compare_digest(written.encode(), self._mark(called, before).encode()):
            raise BrokenChainError(f"event {self.number} is not what the service has written")

    def chained(self, before: str) -> Event:
        """Return the event with its hash, after one with the hash `before`."""
        return dataclasses.replace(self, hash=link(before, self.row))


def link(before: str, row: Row) -> str:
    """Return the hash of an event, by its row, after one with the hash `before`.

    It is the SHA-256 of the canonical text of [before, number, time, kind, body, key, request, answer]. All events are
    hashed at every start: the text is put together by hand, and the body is not decoded.
    """
    number, time, kind, text, key, request, answer, _ = row
    head = f'["{before}",{number},{_quoted(time)},{_quoted(kind)},{text}'
    if key is None or request is None or answer is None:
        tail = ",".join("null" if each is None else _quoted(each) for each in (key, request, answer))
    else:
        tail = f"{_quoted(key)},{_quoted(request)},{_quoted(answer)}"
    return hashlib.sha256(f"{head},{tail}]".encode()).hexdigest()


def canonical(content: Any) -> str:
    """Return the one JSON text of `content`; floats keep every bit, and infinities are refused.

    >>> canonical({"b": 0.1, "a": [1, None]})
    '{"a":[1,null],"b":0.1}'
    """
    return _encode(content)


def parse_mark(text: str) -> tuple[int, str]:
    """Return number and hash of NUMBER:HASH.

    >>> parse_mark("3:" + "ab" * 32)[0]
    3
    """
    found = MARK.fullmatch(text)
    if found is None:
        raise ValueError(f"give the head of a log as NUMBER:HASH, as `omg-trial replay` prints it, got {text!r:.90}")
    return int(found[1]), found[2]


def ending(events: Iterable[Event], least: int = 0, expect: str | None = None) -> Iterator[Event]:
    """Yield the events; raise if there are fewer than `least`, or if the one with the mark `expect` is not there."""
    wanted, found = (0, "") if expect is None else parse_mark(expect), 0
    for event in events:
        found = event.number
        if found == wanted[0] and event.hash != wanted[1]:
            raise BrokenChainError(f"event {found} is another one than the expected")
        yield event
    if found < max(least, wanted[0]):
        missing = f"there was an event {max(least, wanted[0])}: its end was cut"
        raise BrokenChainError(f"the log ends with event {found}, but {missing}")


def verified(events: Iterable[Event], before: str = FIRST_HASH, number: int = 0) -> Iterator[Event]:
    """Yield the events that follow one with this hash and `number`; raise at the first that does not.

    Raise also at the first that has not the mark of the service, if they have come with a key file.
    """
    instance_of("events", events, Iterable)
    for event in events:
        instance_of("events", event, Event)
        number += 1
        after = check_link(before, number, event.row)
        event.check_mark(before)
        before = after
        yield event


def check_link(before: str, number: int, row: Row) -> str:
    """Return the hash of an event that has this number and follows one with the hash `before`; raise if it does not."""
    if row[0] != number:
        raise BrokenChainError(f"event {row[0]} after {number - 1}: events are missing or out of order")
    try:
        found = link(before, row)
    except (TypeError, UnicodeError):  # no text where one was written
        found = ""
    if found != row[7]:
        raise BrokenChainError(f"event {number} was changed after it was written")
    return found


class Chain:
    """The hashes of a log from its first event to its head: of what was read and verified, or written since.

    Thirty-two bytes for each event, so that whatever is read from the store later can be held against them.

    Examples
    --------
    >>> chain, event = Chain(), Event(1, "2026-11-02T09:00:00.000000+00:00", "founded", "{}").chained(FIRST_HASH)
    >>> chain.add(event)
    >>> chain.holds(event), chain.head == event.mark
    (True, True)
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._hashes, before = bytearray(), FIRST_HASH
        for number, row in enumerate(rows, start=1):
            before = check_link(before, number, row)
            self._hashes += bytes.fromhex(before)

    def __len__(self) -> int:
        return len(self._hashes) // 32

    @property
    def head(self) -> str:
        """NUMBER:HASH of the last event."""
        return f"{len(self)}:{self.hash(len(self))}"

    def add(self, event: Event) -> None:
        """Take in one more event."""
        self._hashes += bytes.fromhex(event.hash)

    def hash(self, number: int) -> str:
        """Return the hash of the event with this number."""
        return self._hashes[32 * number - 32 : 32 * number].hex() if number else FIRST_HASH

    def has(self, mark: str) -> bool:
        """Return whether the event with this NUMBER:HASH is there."""
        number, _, found = mark.partition(":")
        return int(number) <= len(self) and self.hash(int(number)) == found

    def holds(self, event: Event) -> bool:
        """Return whether this is the event that was written under its number."""
        known = 0 < event.number <= len(self)
        return known and link(self.hash(event.number - 1), event.row) == self.hash(event.number) == event.hash
