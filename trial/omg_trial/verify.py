"""An independent verifier of a log: this one file, and nothing but Python's standard library.

    python verify.py trial.db --keys trial.keys --expect 1234:9f86d08...

It shares no code with the service. It recomputes the chain of hashes and, with the key file, the commitment to the
secret, the mark that only the service can put on an event, and every draw:

    hₙ = SHA-256(hₙ₋₁, event n),    u = HMAC-SHA-256(secret; alias, occasion, step) in [0, 1),

and the action drawn is the first whose cumulative probability is above u. Calls themselves are not in the log, as they
name people: it has an HMAC of each, which nobody can compute again, and over which the service has put its mark.
What a model has learned, and so the probabilities themselves, is computed again by `omg-trial replay`.
"""

from __future__ import annotations

import argparse
import bisect
import collections
import contextlib
import hashlib
import hmac
import itertools
import json
import pathlib
import re
import sqlite3
import sys
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

FORMAT = 6
SHOWN = 20

Row = tuple[int, str, str, str, str | None, str | None, str | None, str]
Body = dict[str, Any]
Keys = dict[str, bytes | None]


_NOT_OURS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, json.JSONDecodeError)


class BrokenLogError(Exception):
    """The log is not as it was written: nothing after this event can be believed."""


class Found(NamedTuple):
    """What was recomputed, and what was wrong."""

    events: int
    head: str
    keys: int
    draws: int
    problems: list[str]
    secret: bool


def verify(rows: Iterable[Row], expect: str | None = None, kept: int = 0, keys: Keys | None = None) -> Found:
    """Recompute a log: its rows in order (number, time, kind, body, key, request, answer, hash).

    It must have the event `expect`, NUMBER:HASH, and be no shorter than when a snapshot was taken, after event `kept`.
    `keys` is what the key file has, as `read_keys` returns it.

    >>> verify([])
    Traceback (most recent call last):
    ...
    omg_trial.verify.BrokenLogError: there is no event, not even the first
    """
    wanted, before, number, reader = mark(expect), "0" * 64, 0, _Reader(keys or {})
    for row in rows:
        number += 1
        if row[0] != number:
            raise BrokenLogError(f"event {row[0]} after {number - 1}: events are missing or out of order")
        if link(before, row) != row[7]:
            raise BrokenLogError(f"event {number} was changed after it was written")
        if wanted is not None and wanted[0] == number and wanted[1] != row[7]:
            raise BrokenLogError(f"event {number} is another one than the expected")
        try:
            reader.read(row, before)
        except _NOT_OURS as error:
            raise BrokenLogError(f"event {number} is none that a service writes ({type(error).__name__})") from None
        before = row[7]
    if not number:
        raise BrokenLogError("there is no event, not even the first")
    least = max(kept, 0 if wanted is None else wanted[0])
    if number < least:
        raise BrokenLogError(f"the log ends with event {number}, but there was an event {least}: its end was cut")
    return Found(
        number, f"{number}:{before}", len(reader.keys), reader.draws, reader.problems[:SHOWN], bool(reader.secret)
    )


def mark(text: str | None) -> tuple[int, str] | None:
    """Return the number and the hash of NUMBER:HASH."""
    found = re.fullmatch(r"([1-9][0-9]{0,15}):([0-9a-f]{64})", text or "")
    if text is not None and found is None:
        raise ValueError("give --expect as NUMBER:HASH, as it was printed")
    return None if found is None else (int(found[1]), found[2])


def canonical(content: Any) -> str:
    """Return the one JSON text of `content`."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def keyed(secret: bytes, *parts: str | int) -> str:
    """Return the HMAC-SHA-256 of some texts."""
    return hmac.new(secret, canonical(parts).encode(), hashlib.sha256).hexdigest()


def link(before: str, row: Row) -> str | None:
    """Return the hash of an event; None if a field is not what it must be."""
    number, time, kind, body, key, request, answer, _ = row
    given = [each for each in (key, request, answer) if each is not None]
    if not all(isinstance(each, str) for each in (time, kind, body, *given)):
        return None
    head, tail = canonical([before, number, time, kind]), canonical([key, request, answer])
    return hashlib.sha256(f"{head[:-1]},{body},{tail[1:]}".encode()).hexdigest()


class _Reader:
    """Follows the events that are chained, and notes what does not fit."""

    def __init__(self, keys: Keys) -> None:
        self.secret = keys.get("secret") or b""
        self.problems: list[str] = []
        self.keys: set[str] = set()
        self.draws, self.replans, self.time = 0, False, ""
        self.actions: list[str] = []
        self.points: dict[int, tuple[str, str]] = {}
        """Alias and occasion of each episode."""
        self.named: set[tuple[str, str]] = set()
        self.policies: dict[int, Any] = {}
        self.control, self.arms = 0.0, dict[str, str]()
        self.decided: dict[int, set[int]] = collections.defaultdict(set)

    def read(self, row: Row, before: str) -> None:
        number, time, kind, text, key, request, answer, _ = row
        body = json.loads(text)
        problems = ["it is before the event before it"] * (time < self.time and kind != "clock corrected")
        problems += ["a log is founded once, by its first event"] * ((number == 1) != (kind == "founded"))
        self.time = time
        if kind == "founded":
            self._found(body)
        elif kind == "enrolled":
            problems += self._arm(body, body["given"])
        elif kind == "opened":
            problems += self._open(number, body)
            problems += self._drawn_ahead(number, json.loads(answer or "{}").get("drawn"))
        elif kind == "decided":
            problems += self._draw(body)
        if (key, answer) != (None, None):
            problems += self._call(number, kind, body, key, answer)
        called, _, written = (request or "").rpartition(":")
        texts = [str(number), time, kind, text, key or "", called, answer or ""]
        if self.secret and written != keyed(self.secret, "event", *texts, before):
            problems.append("it is not what the service has written")
        self.problems += [f"event {number} ({kind}): {each}" for each in problems]

    def _found(self, body: Body) -> None:
        if body["format"] != FORMAT:
            raise ValueError(f"the log has format {body['format']}, and this verifier reads format {FORMAT}")
        file = tomllib.loads(body["file"])
        self.actions = file["actions"]["names"]
        self.replans = file.get("learning", {}).get("replan") == "step"
        self.control = file.get("people", {}).get("control", 0.0)
        if self.secret and hashlib.sha256(self.secret).hexdigest() != body["commitment"]:
            raise ValueError("the key file is of another trial")

    def _open(self, number: int, body: Body) -> Iterator[str]:
        if not (point := (body["person"], body["occasion"]))[1].startswith("#") and point in self.named:
            yield "the occasion of this person was opened before"
        yield from self._arm(body, None)
        self.named.add(point)
        self.points[number], self.policies[number] = point, [(body["allowance"] or body)["policy"], body["policy"]]

    def _arm(self, body: Body, given: str | None) -> Iterator[str]:
        """Draw the arm of somebody who is new."""
        if not self.secret:
            return
        drawn = "control" if self.uniform(body["person"], "#arm", 0) < self.control else "learning"
        if body["arm"] != self.arms.setdefault(body["person"], given or drawn):
            yield "another arm was drawn"

    def _draw(self, body: Body) -> Iterator[str]:
        episode, step, chances = body["episode"], body["step"], body["probabilities"]
        if episode not in self.points:
            yield f"there is no episode {episode}"
            return
        if step in self.decided[episode]:
            yield f"step {step} was decided before"
        self.decided[episode].add(step)
        if chances is None:
            if body["available"] or body["rules"] == [] or body["drawn"] != body["probability"]:
                yield "nothing was drawn, and no rule says why"
            return
        if min(chances) < 0.0 or abs(sum(chances) - 1.0) > 1e-9:
            yield "the probabilities do not sum to 1"
        self.draws += bool(self.secret)
        if self.secret and self.draw(chances, episode, step) != body["drawn"]:
            yield "another action was drawn"
            return
        told = chances[body["drawn"]] if body["action"] == body["drawn"] else None
        if told != body["probability"]:
            yield "the probability is not that of the action"
        planned = [policy[step][body["state"]] for policy in self.policies[episode]]
        if not body["rules"] and not self.replans and chances not in planned:
            yield "the probabilities are not those of the episode's policy, and no rule has changed them"

    def _drawn_ahead(self, episode: int, table: list[list[str]] | None) -> Iterator[str]:
        """Compare the actions that an app without a network was told with those that it would be answered."""
        for step, names in enumerate((self.secret and table) or ()):
            for row, name in zip(self.policies[episode][0][step], names, strict=True):
                if self.actions[self.draw(row, episode, step)] != name:
                    yield f"another action of step {step} was drawn ahead"

    def draw(self, chances: list[float], episode: int, step: int) -> int:
        """Return the action of a step, by its number in [0, 1)."""
        cumulative = list(itertools.accumulate(chances))
        return bisect.bisect_right(cumulative, self.uniform(*self.points[episode], step) * cumulative[-1])

    def uniform(self, *name: Any) -> float:
        """Return the number in [0, 1) that is the first 53 bits of an HMAC."""
        return float(int(keyed(self.secret, *name)[:16], 16) >> 11) * 2.0**-53

    def _call(self, number: int, kind: str, body: Body, key: str | None, answer: str | None) -> Iterator[str]:
        if key is None or answer is None:
            yield "key and answer belong together"
            return
        if key in self.keys:
            yield "its key was used before"
        self.keys.add(key)
        told = json.loads(answer)
        if told.get("event") != number:
            yield "the answer is of another event"
        if kind != "decided":
            return
        action = None if body["action"] is None else self.actions[body["action"]]
        if (told["action"], told["probability"]) != (action, body["probability"]):
            yield "the answer names another action or probability"


def read_keys(path: str) -> Keys:
    """Return what a key file has; None for a key that was destroyed."""
    return dict(_rows(path, "SELECT name, key FROM keys"))


def _rows(path: str, query: str) -> Iterator[Any]:
    with contextlib.closing(sqlite3.connect(f"{pathlib.Path(path).absolute().as_uri()}?mode=ro", uri=True)) as file:
        yield from file.execute(query)


def describe(found: Found) -> str:
    """Return what was verified, in sentences."""
    done = f"{found.events} events: the chain, {len(found.problems) or 'no'} problems; "
    done += f"{found.keys} keys and {found.draws} draws recomputed."
    missing = [] if found.secret else ["Without the key file, the service's marks and draws were not recomputed."]
    return "\n".join([*found.problems, done, *missing, f"Head: {found.head}"])


def main(arguments: list[str] | None = None) -> int:
    """Verify a SQLite file. The exit code is 0 if all is well, 1 if the log is not as written, 2 for bad usage."""
    parser = argparse.ArgumentParser(description="Verify the log of a trial, with nothing but Python.")
    parser.add_argument("database", help="a SQLite file")
    parser.add_argument("--expect", metavar="N:HASH", help="an event that the log must have, as printed earlier")
    parser.add_argument("--keys", metavar="FILE", help="the key file, without which no draw can be recomputed")
    asked = parser.parse_args(arguments)
    try:
        [(kept,)] = _rows(asked.database, "SELECT coalesce(max(number), 0) FROM snapshots")
        rows = _rows(
            asked.database, "SELECT number, time, kind, body, key, request, answer, hash FROM events ORDER BY number"
        )
        found = verify(rows, asked.expect, kept, read_keys(asked.keys) if asked.keys else None)
    except (BrokenLogError, sqlite3.Error, ValueError) as error:
        broken = isinstance(error, BrokenLogError)
        print(f"{'NOT the log that was written' if broken else 'verify'}: {error}", file=None if broken else sys.stderr)
        return 1 if broken else 2
    print(describe(found))
    return int(bool(found.problems))


if __name__ == "__main__":
    sys.exit(main())
