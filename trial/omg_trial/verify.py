"""An independent verifier of a log: this one file, and nothing but Python's standard library.

    python verify.py trial.db --expect 1234:9f86d08...

It shares no code with the service. It recomputes the chain of hashes, the call behind every key, and every draw:

    hₙ = SHA-256(hₙ₋₁, event n),    u = HMAC-SHA-256(secret; person, occasion, step) in [0, 1),

and the action drawn is the first whose cumulative probability is above u. What a model has learned, and so the
probabilities themselves, is computed again by `omg-trial replay`.
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
import re
import sqlite3
import sys
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

FORMAT = 4
COLUMNS = "number, time, kind, body, key, request, answer, hash"
SHOWN = 20
MOST_UNKNOWN = 10
"""With more columns unknown, there are too many calls that can have been made."""
CALLS = {
    **{"closed": "close", "withdrawn": "withdraw", "learning": "learn", "rolled back": "roll back"},
    **{"paused": "pause", "resumed": "resume", "stopped": "stop", "published": "publish"},
}
"""The calls whose events have their fields."""
_MARK = re.compile(r"([1-9][0-9]{0,15}):([0-9a-f]{64})")

Row = tuple[int, str, str, str, str | None, str | None, str | None, str]
Body = dict[str, Any]


class BrokenLogError(Exception):
    """The log is not as it was written: nothing after this event can be believed."""


class Found(NamedTuple):
    """What was recomputed, and what was wrong."""

    events: int
    head: str
    keys: int
    draws: int
    problems: list[str]


def verify(rows: Iterable[Row], expect: str | None = None, kept: int = 0) -> Found:
    """Recompute a log.

    Parameters
    ----------
    rows : iterable of tuples
        All events in order: number, time, kind, body, key, request, answer, hash.
    expect : str or None, default None
        NUMBER:HASH of an event that the log must have.
    kept : int, default 0
        The event after which a snapshot was taken: the log cannot be shorter.

    Examples
    --------
    >>> verify([]).head.partition(":")[0]
    '0'
    """
    wanted, before, number, reader = mark(expect), "0" * 64, 0, _Reader()
    for row in rows:
        number += 1
        if row[0] != number:
            raise BrokenLogError(f"event {row[0]} after {number - 1}: events are missing or out of order")
        if link(before, row) != row[7]:
            raise BrokenLogError(f"event {number} was changed after it was written")
        before = row[7]
        if wanted is not None and wanted[0] == number and wanted[1] != before:
            raise BrokenLogError(f"event {number} is another one than the expected")
        reader.read(row)
    least = max(kept, 0 if wanted is None else wanted[0])
    if number < least:
        raise BrokenLogError(f"the log ends with event {number}, but there was an event {least}: its end was cut")
    return Found(number, f"{number}:{before}", len(reader.keys), reader.draws, reader.problems)


def mark(text: str | None) -> tuple[int, str] | None:
    """Return the number and the hash of NUMBER:HASH."""
    found = _MARK.fullmatch(text or "")
    if text is not None and found is None:
        raise ValueError("give --expect as NUMBER:HASH, as it was printed")
    return None if found is None else (int(found[1]), found[2])


def canonical(content: Any) -> str:
    """Return the one JSON text of `content`."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def link(before: str, row: Row) -> str | None:
    """Return the hash of an event; None if a field is not what it must be."""
    number, time, kind, body, key, request, answer, _ = row
    if not all(isinstance(each, str) for each in (time, kind, body)):
        return None
    head, tail = canonical([before, number, time, kind]), canonical([key, request, answer])
    return hashlib.sha256(f"{head[:-1]},{body},{tail[1:]}".encode()).hexdigest()


class _Reader:
    """Follows the events that are chained, and notes what does not fit."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.keys: set[str] = set()
        self.draws = 0
        self.states: list[str] = []
        self.actions: list[str] = []
        self.replans, self.secret, self.time = False, "", ""
        self.points: dict[int, tuple[str, str]] = {}
        """Person and occasion of each episode."""
        self.named: set[tuple[str, str]] = set()
        self.policies: dict[int, Any] = {}
        self.control, self.arms = 0.0, dict[str, str]()
        self.decided: dict[int, set[int]] = collections.defaultdict(set)

    def read(self, row: Row) -> None:
        number, time, kind, text, key, request, answer, _ = row
        body = json.loads(text)
        problems = ["it is before the event before it"] if time < self.time and kind != "clock corrected" else []
        self.time = time
        if (number == 1) != (kind == "founded"):
            problems.append("a log is founded once, by its first event")
        if kind == "founded":
            self._found(body)
        elif kind == "enrolled":
            problems += self._arm(body, body["given"][0])
        elif kind == "opened":
            problems += self._open(number, body)
            problems += self._drawn_ahead(number, json.loads(answer or "{}").get("drawn"))
        elif kind == "decided":
            problems += self._draw(body)
        if (key, request, answer) != (None, None, None):
            problems += self._call(number, kind, body, key, request, answer)
        for each in problems:
            if len(self.problems) < SHOWN:
                self.problems.append(f"event {number} ({kind}): {each}")

    def _found(self, body: Body) -> None:
        if body["format"] != FORMAT:
            raise ValueError(f"the log has format {body['format']}, and this verifier reads format {FORMAT}")
        file = tomllib.loads(body["file"])
        self.states, self.actions = file["states"]["names"], file["actions"]["names"]
        self.replans, self.secret = file.get("learning", {}).get("replan") == "step", body["secret"]
        self.control = file.get("people", {}).get("control", 0.0)

    def _open(self, number: int, body: Body) -> Iterator[str]:
        point = body["person"], body["occasion"]
        if not point[1].startswith("#") and point in self.named:
            yield "the occasion of this person was opened before"
        yield from self._arm(body, None)
        self.named.add(point)
        self.points[number], self.policies[number] = point, [(body["allowance"] or body)["policy"], body["policy"]]

    def _arm(self, body: Body, given: str | None) -> Iterator[str]:
        """Draw the arm of somebody who is new."""
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
        self.draws += 1
        if min(chances) < 0.0 or abs(sum(chances) - 1.0) > 1e-9:
            yield "the probabilities do not sum to 1"
        if self.draw(chances, episode, step) != body["drawn"]:
            yield "another action was drawn"
            return
        told = chances[body["drawn"]] if body["action"] == body["drawn"] else None
        if told != body["probability"]:
            yield "the probability is not that of the action"
        if (
            not body["rules"]
            and not self.replans
            and all(chances != policy[step][body["state"]] for policy in self.policies[episode])
        ):
            yield "the probabilities are not those of the episode's policy, and no rule has changed them"

    def _drawn_ahead(self, episode: int, table: list[list[str]] | None) -> Iterator[str]:
        """Compare the actions that an app without a network was told with those that it would be answered."""
        for step, names in enumerate(table or ()):
            for row, name in zip(self.policies[episode][0][step], names, strict=True):
                if self.actions[self.draw(row, episode, step)] != name:
                    yield f"another action of step {step} was drawn ahead"

    def draw(self, chances: list[float], episode: int, step: int) -> int:
        """Return the action of a step, by its number in [0, 1)."""
        cumulative = list(itertools.accumulate(chances))
        return bisect.bisect_right(cumulative, self.uniform(*self.points[episode], step) * cumulative[-1])

    def uniform(self, *name: Any) -> float:
        """Return the number in [0, 1) that is the first 53 bits of an HMAC."""
        found = hmac.new(self.secret.encode(), canonical(name).encode(), hashlib.sha256).digest()
        return float(int.from_bytes(found[:8], "big") >> 11) * 2.0**-53

    def _call(self, number: int, kind: str, body: Body, *of_call: str | None) -> Iterator[str]:
        key, request, answer = of_call
        if key is None or request is None or answer is None:
            yield "key, request and answer belong together"
            return
        if key in self.keys:
            yield "its key was used before"
        self.keys.add(key)
        told = json.loads(answer)
        if told.get("event") != number:
            yield "the answer is of another event"
        if kind == "decided" and (told["action"], told["probability"]) != (
            None if body["action"] is None else self.actions[body["action"]],
            body["probability"],
        ):
            yield "the answer names another action or probability"
        calls = list(self._calls(kind, body))
        if calls and request not in {hashlib.sha256(canonical(each).encode()).hexdigest() for each in calls}:
            yield "the call was another one"

    def _calls(self, kind: str, body: Body) -> Iterator[list[Any]]:
        """Yield the calls that can have led to this event; none if that cannot be told."""
        called = {name: value for name, value in body.items() if name != "actor"}
        if kind in ("decided", "repeated"):
            about = {name: body[name] for name in ("episode", "step", "device_time", "allowance")}
            one = kind == "decided"
            states = [self.states[body["state"]]] if one else self.states
            actions = [self.actions[body["action"]] if body["acted"] else None] if one else [None, *self.actions]
            for state, action, can in itertools.product(states, actions, (True, False)):
                yield ["decide", {**about, "state": state, "action": action, "available": can}]
        elif kind == "reported":
            after = None if body["next_state"] is None else self.states[body["next_state"]]
            yield ["report", {**called, "next_state": after}]
        elif kind == "opened":
            context, named = json.loads(body["context"]), body["occasion"]
            about = {name: body[name] for name in ("person", "available", "device_time")}
            about["occasion"] = None if named.startswith("#") else named
            if isinstance(context, dict):  # a column that is unknown may have been null, or left out
                pairs = context["record"]
                known = {name: value for name, value in pairs if value is not None}
                unknown = [name for name, value in pairs if value is None]
                for count in range(len(unknown) + 1 if len(unknown) <= MOST_UNKNOWN else 0):
                    for names in itertools.combinations(unknown, count):
                        yield ["open", {**about, "context": {**known, **dict.fromkeys(names)}}]
            else:
                yield ["open", {**about, "context": context}]
        elif kind == "enrolled":
            arm, zone = called.pop("given")
            yield ["enrol", {**called, "arm": arm, "zone": zone}]
        elif kind in CALLS:
            called.pop("findings", None)
            if called.get("action") is not None:
                called["action"] = self.actions[called["action"]]
            yield [CALLS[kind], called]


def read_file(path: str) -> tuple[Iterator[Row], int]:
    """Return the events of a SQLite file, and the event after which its snapshot was taken."""

    def rows(query: str) -> Iterator[Any]:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
            yield from file.execute(query)

    [(kept,)] = rows("SELECT coalesce(max(number), 0) FROM snapshots")
    return rows(f"SELECT {COLUMNS} FROM events ORDER BY number"), kept


def describe(found: Found) -> str:
    """Return what was verified, in sentences."""
    numbers = f"{found.events} events: the chain, {len(found.problems) or 'no'} problems"
    lines = [
        *found.problems,
        f"{numbers}; {found.keys} keys and {found.draws} draws recomputed.",
        f"Head: {found.head}",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Verify a SQLite file. The exit code is 0 if all is well, 1 if the log is not as written, 2 for bad usage."""
    parser = argparse.ArgumentParser(description="Verify the log of a trial, with nothing but Python.")
    parser.add_argument("database", help="a SQLite file")
    parser.add_argument("--expect", metavar="N:HASH", help="an event that the log must have, as printed earlier")
    asked = parser.parse_args(arguments)
    try:
        found = verify(*_with(asked))
    except BrokenLogError as error:
        print(f"NOT the log that was written: {error}")
        return 1
    except (sqlite3.Error, ValueError) as error:
        print(f"verify: {error}", file=sys.stderr)
        return 2
    print(describe(found))
    return 1 if found.problems else 0


def _with(asked: argparse.Namespace) -> tuple[Iterator[Row], str | None, int]:
    rows, kept = read_file(asked.database)
    return rows, asked.expect, kept


if __name__ == "__main__":
    sys.exit(main())
