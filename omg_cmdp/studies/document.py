"""The text of a TOML file, with what is set elsewhere, and where everything in it stands."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any, NamedTuple

Place = tuple[str, ...]
"""The path of a key."""


class ConfigurationError(ValueError):
    """What is wrong with a configuration, and where."""


class Override(NamedTuple):
    """A value from elsewhere than the file: a dotted path, the value as TOML or plain text, and what asked for it."""

    path: str
    value: str
    asked: str


class Document:
    """The content of a file, with overrides, and where in it everything stands."""

    def __init__(self, text: str, overrides: Sequence[Override], file: str) -> None:
        self.file = file
        try:
            self.content: dict[str, Any] = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise ConfigurationError(f"{file}: {error}") from None
        self._places = {path: f"line {number}" for path, number in _lines(text)}
        for override in overrides:
            self._apply(override)

    def refuse(self, path: Place, message: str) -> ConfigurationError:
        """Return the error for what stands at `path`, or as near to it as is known."""
        near = (path[:end] for end in range(len(path), 0, -1))
        place = next((self._places[each] for each in near if each in self._places), None)
        return ConfigurationError(", ".join([self.file, *([place] if place else [])]) + f": {message}")

    def vary_only(self, sizes: Sequence[str]) -> None:
        """Vary these sizes and no others, over the values of the file if it has some."""
        known = self.content.get("vary")
        values = known if isinstance(known, dict) else {}
        self.content["vary"] = {size: values.get(size, []) for size in sizes}
        self._places.update({("vary", size): f"--vary {size}" for size in sizes if size not in values})

    def _apply(self, override: Override) -> None:
        path = tuple(override.path.split("."))
        if not all(path):
            raise ConfigurationError(f"{override.asked}: {override.path!r} must be names with dots between them")
        table = self.content
        for key in path[:-1]:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise ConfigurationError(f"{override.asked}: {key!r} is no table")
        try:
            table[path[-1]] = tomllib.loads(f"value = {override.value}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            table[path[-1]] = override.value  # a text without quotes
        self._places[path] = override.asked


def _lines(text: str) -> list[tuple[Place, int]]:
    """Return the path of every key that stands at the beginning of a line. (tomllib does not tell.)"""
    found: list[tuple[Place, int]] = []
    table: Place = ()
    for number, line in enumerate(text.splitlines(), start=1):
        left, equals, _ = line.partition("=")
        header = line.lstrip().startswith("[")
        try:
            inner = _only_path(tomllib.loads(line if header else f"{left}=0")) if header or equals else ()
        except (tomllib.TOMLDecodeError, RecursionError):
            continue  # the inside of a value of many lines
        table = inner if header else table
        if inner:
            found.append((inner if header else (*table, *inner), number))
    return found


def _only_path(content: Any) -> Place:
    path: Place = ()
    while isinstance(content, dict) and content:
        ((key, content),) = content.items()
        path = (*path, key)
    return path
