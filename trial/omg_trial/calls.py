"""What an app may ask for: the bodies of calls, checked; and why a call may be refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from omg_cmdp.contexts import context_to_json
from omg_trial.study.trial import Trial

LONGEST_NAME = 100
PERSON = r"[A-Za-z0-9][A-Za-z0-9._:@+-]{0,99}"
MOST_REVISION = 10**9


class Refusal(Exception):  # noqa: N818 - it is an answer
    """A call that is refused, and changes nothing; `status` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class OlderLog(Refusal):
    """A call of somebody who has seen an event that the log does not have."""

    def __init__(self, seen: str, head: str) -> None:
        number, last = (mark.partition(":")[0] for mark in (seen, head))
        got = "got another one" if int(number) <= int(last) else f"got a log that ends with event {last}"
        advice = "perhaps an older backup was restored, or this is another database; nothing was done"
        super().__init__(409, f"the log must have event {number}, as the caller has seen it, {got}: {advice}")
        self.head = head


class Open(NamedTuple):
    """Begin an episode for a person."""

    person: str
    context: str
    """As JSON."""


class Decide(NamedTuple):
    """Ask for the action of a step. `action` tells that the app has acted already, and how."""

    episode: int
    step: int
    state: int
    action: int | None


class Report(NamedTuple):
    """Say what came of a step."""

    episode: int
    step: int
    reward: float | None
    next_state: int | None
    revision: int


class Close(NamedTuple):
    """End an episode."""

    episode: int
    cause: str


class Withdraw(NamedTuple):
    """Take a person out of the study."""

    person: str


class Learn(NamedTuple):
    """Begin to learn from all closed episodes."""


class RollBack(NamedTuple):
    """Use an earlier version."""

    version: int


Call = Open | Decide | Report | Close | Withdraw | Learn | RollBack

CAUSES = ("finished", "dropped out", "overdue", "other")


class _Body:
    """The fields of a body, each read once."""

    def __init__(self, body: Any) -> None:
        if not isinstance(body, Mapping):
            raise Refusal(422, f"the body must be an object, got {body!r:.60}")
        self._fields = dict(body)

    def take(self, name: str, read: Callable[[str, Any], Any], default: Any = ...) -> Any:
        value = self._fields.pop(name, None)
        if value is None:
            if default is ...:
                raise Refusal(422, f"`{name}` must be given, got nothing")
            return default
        return read(name, value)

    def finish(self) -> None:
        for name in self._fields:
            raise Refusal(422, f"`{name:.60}` must be left out: this call does not know it")


def parse(trial: Trial, name: str, body: Any) -> Call:
    """Return a call by its name, its body checked against the study."""
    if name not in _READERS:
        raise Refusal(404, f"`name` must be one of {', '.join(_READERS)}, got {name!r:.60}")
    fields = _Body(body)
    made = _READERS[name](trial, fields)
    fields.finish()
    return made


def _open(trial: Trial, body: _Body) -> Open:
    return Open(body.take("person", _name), body.take("context", lambda name, value: _context(trial, name, value)))


def _decide(trial: Trial, body: _Body) -> Decide:
    action = body.take("action", _one_of(trial.actions), None)
    return Decide(body.take("episode", _episode), _step(trial, body), body.take("state", _one_of(trial.states)), action)


def _report(trial: Trial, body: _Body) -> Report:
    low, high = trial.reward_range
    episode, step = body.take("episode", _episode), _step(trial, body)
    reward = body.take("reward", lambda name, value: _number(name, value, low, high), None)
    next_state = body.take("next_state", _one_of(trial.states), None)
    revision = body.take("revision", lambda name, value: _integer(name, value, 0, MOST_REVISION), 0)
    if reward is None and next_state is None:
        raise Refusal(422, "`reward` or `next_state` must be given, got neither")
    return Report(episode, step, reward, next_state, revision)


def _close(trial: Trial, body: _Body) -> Close:
    cause = body.take("cause", _one_of(CAUSES), 0)
    return Close(body.take("episode", _episode), CAUSES[cause])


def _withdraw(trial: Trial, body: _Body) -> Withdraw:
    return Withdraw(body.take("person", _name))


def _learn(trial: Trial, body: _Body) -> Learn:
    return Learn()


def _roll_back(trial: Trial, body: _Body) -> RollBack:
    return RollBack(body.take("version", lambda name, value: _integer(name, value, 0, MOST_REVISION)))


_READERS: dict[str, Callable[[Trial, _Body], Call]] = {
    "open": _open,
    "decide": _decide,
    "report": _report,
    "close": _close,
    "withdraw": _withdraw,
    "learn": _learn,
    "roll back": _roll_back,
}


def _name(name: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(PERSON, value):
        raise Refusal(422, f"`{name}` must be 1 to {LONGEST_NAME} letters, digits and . _ : @ + -, got {_shown(value)}")
    return value


def _episode(name: str, value: Any) -> int:
    return _integer(name, value, 1, 2**53)


def _step(trial: Trial, body: _Body) -> int:
    step: int = body.take("step", lambda name, value: _integer(name, value, 0, trial.space.horizon - 1))
    return step


def _integer(name: str, value: Any, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise Refusal(422, f"`{name}` must be an integer in {low}..{high}, got {_shown(value)}")
    return value


def _number(name: str, value: Any, low: float, high: float) -> float:
    real = type(value) in (int, float) and math.isfinite(value)
    if not real or not low <= value <= high:
        raise Refusal(422, f"`{name}` must be a number in [{low:g}, {high:g}], got {_shown(value)}")
    return float(value)


def _one_of(known: tuple[str, ...]) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        if not isinstance(value, str) or value not in known:
            raise Refusal(422, f"`{name}` must be one of {', '.join(known)}, got {_shown(value)}")
        return known.index(value)

    return read


def _context(trial: Trial, name: str, value: Any) -> str:
    """Return the context as text: a label, or the columns that the study knows of a record."""
    if trial.features is None:
        if value not in trial.labels:
            raise Refusal(422, f"`{name}` must be one of the study's labels, got another")
        return context_to_json(value)
    if not isinstance(value, Mapping):
        raise Refusal(422, f"`{name}` must be an object by column, got {_shown(type(value).__name__)}")
    columns = [each.column for each in trial.features.columns]
    unknown = [column for column in value if column not in columns]
    if unknown:
        raise Refusal(422, f"`{name}` must have columns among {', '.join(map(str, columns))}, got {unknown[0]!r:.60}")
    if not any(value.get(column) is not None for column in columns):
        raise Refusal(422, f"`{name}` must have some of the columns {', '.join(map(str, columns))}, got none")
    for column, entry in value.items():
        plain = entry is None or type(entry) in (str, int, bool) or (type(entry) is float and math.isfinite(entry))
        if not plain or (isinstance(entry, str) and not _is_short_text(entry)):
            raise Refusal(422, f"`{name}` must hold finite numbers and short texts, got something else in {column!r}")
    return context_to_json({column: value.get(column) for column in columns})


def _is_short_text(text: str) -> bool:
    return len(text) <= LONGEST_NAME and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _shown(value: Any) -> str:
    return f"{value!r:.60}"
