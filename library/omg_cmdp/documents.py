"""A TOML file as a document: its content, and the line of every key, for error messages."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from typing import Any

Place = tuple[str, ...]
"""The path of a key."""


FEW = 10
"""Fewer names than this are listed even where one of them is near."""


class FileError(ValueError):
    """An error in a study or trial file, and the key where it is."""

    def __init__(self, message: str, place: Place = ()) -> None:
        super().__init__(f"{'.'.join(place)}: {message}" if place else message)
        self.message, self.place = message, place


def plain(text: str) -> str:
    r"""Return a text in which control characters, which a terminal would obey or could not show, are escaped.

    >>> plain("\x1b[2J é")
    '\\x1b[2J é'
    """
    return re.sub(r"(?![\n\t])[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", lambda found: ascii(found[0])[1:-1], text)


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return advice on a name that does not exist: one that is near, and all if none is near or there are few.

    >>> nearest("gredy", ["greedy", "omg"])
    "did you mean 'greedy'? There are greedy, omg"
    >>> nearest("x", ["greedy", "omg"])
    'there are greedy, omg'
    """
    names = list(valid)
    near, every = difflib.get_close_matches(name, names, n=1, cutoff=0.6), ", ".join(names) or "none"
    if not near:
        return f"there are {every}"
    return f"did you mean {near[0]!r}?" + (f" There are {every}" if len(names) < FEW else "")


class Document:
    """The content of a file, and the line of every key."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        try:
            self.content: dict[str, Any] = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise FileError(f"{file}: {error}") from None
        # tomllib tells no lines, and errors without them are hard to find.
        self.places = {path: f"line {number}" for path, number in _lines(text)}

    def located(self, error: FileError) -> FileError:
        """Return the error with the file and the line of its key, or of the nearest key above it."""
        # A key that is missing has no line; the table above it has.
        near = (error.place[:end] for end in range(len(error.place), 0, -1))
        line = [self.places[each] for each in near if each in self.places][:1]
        return FileError(f"{', '.join([self.file, *line])}: {error.message}")


def _lines(text: str) -> list[tuple[Place, int]]:
    """Return the path of every key at the beginning of a line, and the line; tomllib does not tell."""
    found: list[tuple[Place, int]] = []
    table: Place = ()
    for number, line in enumerate(text.splitlines(), start=1):
        left, equals, _ = line.partition("=")
        header = line.lstrip().startswith("[")
        try:
            inner = _only_path(tomllib.loads(line if header else f"{left}=0")) if header or equals else ()
        except (tomllib.TOMLDecodeError, RecursionError):
            continue  # within a value of several lines
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
