"""Overrides of a study file from the command line: `--set KEY=VALUE`, `--episodes`, `--seeds`."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import NamedTuple

from omg_cmdp.documents import Document, FileError


class Override(NamedTuple):
    """A value that replaces one of the file, such as `--set agents.omg.gamma=100` on the command line."""

    path: str
    """Names with dots between them."""
    value: str
    """TOML, or a plain text."""
    source: str
    """The name of the place in an error message."""


def read_overrides(episodes: str | None, seeds: str | None, changes: Sequence[str]) -> list[Override]:
    """Return the settings of the command line: `--episodes`, `--seeds`, and every `--set KEY=VALUE`."""
    short = {"episodes": episodes, "seeds": seeds}
    found = [Override(key, value, f"--{key} {value}") for key, value in short.items() if value is not None]
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise FileError(f"--set {change}: must be KEY=VALUE")
        found.append(Override(key.strip(), value.strip(), f"--set {change}"))
    return found


class StudyDocument(Document):
    """The content of a study file with overrides, and the line, or the option, that every key comes from."""

    def __init__(self, text: str, overrides: Sequence[Override], file: str) -> None:
        super().__init__(text, file)
        for override in overrides:
            self._apply(override)

    def _apply(self, override: Override) -> None:
        path = tuple(override.path.split("."))
        if not all(path):
            raise FileError(f"{override.source}: {override.path!r} must be names with dots between them")
        table = self.content
        for key in path[:-1]:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise FileError(f"{override.source}: {key!r} is not a table")
        try:
            table[path[-1]] = tomllib.loads(f"value = {override.value}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            table[path[-1]] = override.value  # text without quotes
        self.places[path] = override.source
