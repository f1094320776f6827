"""A table of a TOML file, read key by key: what is missing, wrong or unknown is an error that names its key."""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection
from typing import Any, overload

from omg_cmdp.documents import Place, StudyError

REQUIRED: Any = object()  # stands for no default
LONGEST = 200


class Table:
    """A table, and which of its keys were read."""

    def __init__(self, content: Any, place: Place = ()) -> None:
        if not isinstance(content, dict):
            raise StudyError(f"must be a table, got {content!r:.60}", place)
        self.content: dict[str, Any] = content
        self.place = place
        self._read: dict[str, Table | None] = {}

    def error(self, key: str, message: str) -> StudyError:
        """Return an error about a key, or about the table itself if that is empty."""
        return StudyError(message, (*self.place, key) if key else self.place)

    def finish(self) -> None:
        """Raise if there is a key that nobody has read, here or in a table below."""
        for key in self.content:
            if key not in self._read:
                known = ", ".join(sorted(self._read)) or "nothing"
                raise self.error(key, f"is not known here; known: {known}")
            if (below := self._read[key]) is not None:
                below.finish()

    def table(self, key: str, *, optional: bool = False) -> Table:
        """Return the table under a key; an empty one if it may be left out."""
        found = Table(self._value(key, {} if optional else REQUIRED), (*self.place, key))
        self._read[key] = found
        return found

    @overload
    def number(self, key: str, default: float = ..., low: float = ..., high: float = ...) -> float: ...
    @overload
    def number(self, key: str, default: None, low: float = ..., high: float = ...) -> float | None: ...
    def number(
        self, key: str, default: float | None = REQUIRED, low: float = -math.inf, high: float = math.inf
    ) -> float | None:
        """Return a finite number in [low, high]."""
        value = self._value(key, default)
        if key not in self.content:
            return default
        real = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not real or not low <= value <= high:
            raise self.error(key, f"must be a number in [{low:g}, {high:g}], got {value!r:.60}")
        return float(value)

    @overload
    def integer(self, key: str, default: int = ..., *, least: int) -> int: ...
    @overload
    def integer(self, key: str, default: None, *, least: int) -> int | None: ...
    def integer(self, key: str, default: int | None = REQUIRED, *, least: int) -> int | None:
        """Return an integer of at least `least`."""
        value = self._value(key, default)
        if key not in self.content:
            return default
        if type(value) is not int or not least <= value <= 10**6:
            raise self.error(key, f"must be an integer from {least} to 10⁶, got {value!r:.60}")
        return int(value)

    def flag(self, key: str, default: bool) -> bool:
        """Return true or false."""
        value = self._value(key, default)
        if type(value) is not bool:
            raise self.error(key, f"must be true or false, got {value!r:.60}")
        return value

    def text(self, key: str, default: str = REQUIRED) -> str:
        """Return a text that is not empty."""
        value = self._value(key, default)
        if not isinstance(value, str) or not value.strip() or len(value) > LONGEST or not value.isprintable():
            raise self.error(key, f"must be a text of 1 to {LONGEST} printable characters, got {value!r:.60}")
        return value

    def choice(self, key: str, known: Collection[str], default: str = REQUIRED) -> str:
        """Return one of some words."""
        value = self._value(key, default)
        if not isinstance(value, str) or value not in known:
            raise self.error(key, f"must be one of {', '.join(known)}, got {value!r:.60}")
        return value

    def names(self, key: str, default: tuple[str, ...] = REQUIRED) -> tuple[str, ...]:
        """Return a list of distinct names."""
        value = self._value(key, default)
        if key not in self.content:
            return default
        fine = isinstance(value, list) and all(isinstance(each, str) and 0 < len(each) <= LONGEST for each in value)
        if not fine or not value or len(set(value)) < len(value):
            raise self.error(key, f"must be a list of distinct names, got {value!r:.60}")
        return tuple(value)

    def lists(self, key: str) -> list[list[Any]]:
        """Return a list of lists; none if it is left out."""
        value = self._value(key, [])
        if not isinstance(value, list) or not all(isinstance(each, list) for each in value):
            raise self.error(key, f"must be a list of lists, got {value!r:.60}")
        return value

    @overload
    def pair(self, key: str, default: tuple[float, float]) -> tuple[float, float]: ...
    @overload
    def pair(self, key: str, default: None) -> tuple[float, float] | None: ...
    def pair(self, key: str, default: tuple[float, float] | None) -> tuple[float, float] | None:
        """Return (low, high)."""
        value = self._value(key, default)
        if key not in self.content:
            return default
        numbers = isinstance(value, list) and all(type(each) in (int, float) for each in value)
        if not numbers or len(value) != 2 or not -math.inf < value[0] < value[1] < math.inf:
            raise self.error(key, f"must be [low, high] with low < high, got {value!r:.60}")
        return float(value[0]), float(value[1])

    def options(self, key: str) -> dict[str, Any]:
        """Return a table of options as it is."""
        return dict(Table(self._value(key, {}), (*self.place, key)).content)

    def gamma(self, key: str) -> str | float:
        """Return an exploration rule by name, or a number."""
        value = self._value(key, "adaptive")
        if value in ("adaptive", "uncertainty", "anytime"):
            return str(value)
        if type(value) in (int, float) and 0.0 < value < math.inf:
            return float(value)
        raise self.error(key, f"must be adaptive, uncertainty, anytime, or a positive number, got {value!r:.60}")

    def time(self, key: str) -> datetime.time:
        """Return a time of day: 08:00:00, or the text "08:00"."""
        value = self._value(key, REQUIRED)
        if isinstance(value, datetime.time):
            return value
        try:
            return datetime.time.fromisoformat(value)
        except (TypeError, ValueError):
            raise self.error(key, f"must be a time such as '08:00', got {value!r:.60}") from None

    def _value(self, key: str, default: Any) -> Any:
        self._read.setdefault(key, None)
        if key in self.content:
            return self.content[key]
        if default is REQUIRED:
            raise self.error(key, "must be given, got nothing")
        return default
