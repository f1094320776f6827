"""What a study file may name, found from the folder in which it lies: the door through which foreign code comes in.

    module:Name     a class or function: of a module beside the file, else of one that Python finds
    people.csv      a table of contexts, relative to the file

A `Folder` is made only of a study file that the user has named, or of a call of `omg_lab.compare`. Stored results have
none: nothing that they name is imported or read.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import omg_cmdp
from omg_cmdp.contexts import Context
from omg_cmdp.documents import FileError
from omg_cmdp.records import context_rows
from omg_lab.studies.outside.sources import digest, import_beside, module_sources

_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def is_outside(name: Any) -> bool:
    """Return whether a name has the form `module:Name`."""
    return isinstance(name, str) and bool(_REFERENCE.fullmatch(name))


@dataclasses.dataclass(frozen=True)
class Folder:
    """The folder of a study file, and objects that are given in a call instead."""

    path: Path
    objects: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Classes and functions, under names of the form `given:Name`; they are the same as long as the call lasts."""

    def find(self, name: str) -> Any:
        """Return the class or function that a name stands for."""
        if name in self.objects:
            return self.objects[name]
        module, _, attribute = name.partition(":")
        try:
            found: Any = import_beside(module, self.path)
            for each in attribute.split("."):
                found = getattr(found, each)
        except FileError:
            raise
        except Exception as error:  # anything may go wrong in a module of somebody else
            raise FileError(f"{name!r} cannot be imported: {told(error)}") from None
        if not callable(found):
            raise FileError(f"{name!r} must be a class or a function, got {found!r:.60}")
        return found

    def contexts(self, name: str) -> list[Context]:
        """Return the rows of a table of contexts as records."""
        import pandas

        try:
            table = pandas.read_csv(self.path / name)
            return list(context_rows("contexts", table))
        except (OSError, ValueError) as error:
            raise ValueError(f"`contexts` must be a table with a header and rows, got {name!r}: {error}") from None

    def digest(self, names: Iterable[str], files: Iterable[str]) -> str:
        """Return a digest of what these names and files stand for; the names have been found before."""
        parts = []
        for name in sorted(set(names) - self.objects.keys()):
            module = name.partition(":")[0]
            origin = getattr(sys.modules[module], "__file__", None)
            parts.append(digest(module_sources(module, self.path) or ([Path(origin)] if origin else [])))
        parts += [digest([self.path / file]) for file in sorted(set(files))]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def told(error: Exception) -> str:
    """Return an error in one line, with the line of the user's own code where it happened, if it happened there."""
    packages = (str(Path(__file__).parents[2]), str(Path(omg_cmdp.__file__).parent))
    installed = (*packages, sys.prefix, sys.base_prefix, "<")
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(installed)]
    where = f" ({Path(theirs[-1].filename).name}, line {theirs[-1].lineno})" if theirs else ""
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    return f"{kind}{error}{where}"
