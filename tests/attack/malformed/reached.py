"""Which branches of our packages an input reaches: inputs that reach new ones are worth mangling again."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import omg_cmdp
import omg_lab
import omg_trial

OURS = tuple(str(Path(str(package.__file__)).parent) for package in (omg_cmdp, omg_lab, omg_trial))
MOST = 40
"""Inputs of one kind that are kept."""
LARGEST = 256 * 1024
"""Bytes of an input that is kept."""

Files = dict[str, bytes]
"""The files of a folder, by their names."""


class Reached:
    """The steps from one line to the next that were taken in any function of ours since the beginning."""

    def __init__(self) -> None:
        self._steps: set[tuple[CodeType, int, int]] = set()

    def __len__(self) -> int:
        return len(self._steps)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Watch what happens in this thread. `sys.monitoring` would take less time, and needs Python 3.12."""
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(before)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        code, last, steps = frame.f_code, 0, self._steps
        if not code.co_filename.startswith(OURS):
            return None

        def step(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal last
            if event == "line":
                line = frame.f_lineno
                steps.add((code, last, line))
                last = line
            return step

        return step


class Corpus:
    """A valid input, and a few mangled ones that reached what none had reached before."""

    def __init__(self, valid: Files) -> None:
        self.valid, self._kept = valid, [valid]

    def __len__(self) -> int:
        return len(self._kept)

    def draw(self, draw: random.Random) -> Files:
        """Return an input to mangle: the valid one half of the time."""
        return self.valid if draw.random() < 0.5 else draw.choice(self._kept)

    def add(self, files: Files, draw: random.Random) -> None:
        """Keep an input, in the place of another one if there are many."""
        if sum(map(len, files.values())) > LARGEST:
            return
        if len(self._kept) == MOST:
            del self._kept[draw.randrange(1, MOST)]
        self._kept.append(files)
