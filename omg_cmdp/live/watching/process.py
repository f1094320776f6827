"""What the process knows of itself and the log does not: refused calls, memory, disk."""

from __future__ import annotations

import collections
import datetime
import os
import shutil
from collections.abc import Callable
from pathlib import Path

LATELY = datetime.timedelta(hours=1)
MOST_KEPT = 10_000
"""Refusals of each status that are counted as late ones."""
_STATM = Path("/proc/self/statm")


class Process:
    """Counters that begin at 0 with every start. `folder` is on the disk that must not be full."""

    def __init__(self, clock: Callable[[], datetime.datetime], folder: str | os.PathLike[str] = ".") -> None:
        self._clock, self._folder = clock, Path(folder)
        self.refusals: collections.Counter[int] = collections.Counter()
        """All, by the status of HTTP."""
        self._times: dict[int, collections.deque[datetime.datetime]] = {}
        self.memory: float | None = None
        """Megabytes in use; None if unknown."""
        self.disk: float | None = None
        """Megabytes free; None if unknown."""
        self.measure()

    def refuse(self, status: int, *, watched: bool = True) -> None:
        """Count a refused call; one that is not `watched` turns no check yellow."""
        self.refusals[status] += 1
        if watched:
            self._times.setdefault(status, collections.deque(maxlen=MOST_KEPT)).append(self._clock())

    def lately(self, *statuses: int) -> int:
        """Return how many calls were refused with one of these in the last hour."""
        since = self._clock() - LATELY
        return sum(time > since for status in statuses for time in tuple(self._times.get(status, ())))

    def measure(self) -> None:
        """Look at memory and disk."""
        try:
            pages = int(_STATM.read_text().split()[1])
            self.memory = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        except (OSError, ValueError, IndexError):
            self.memory = None
        try:
            self.disk = shutil.disk_usage(self._folder).free / 1e6
        except OSError:
            self.disk = None
