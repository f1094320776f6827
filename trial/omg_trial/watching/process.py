"""Counters of the process, which the log does not have: refused calls, memory, disk."""

from __future__ import annotations

import collections
import datetime
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omg_trial.clock import SteadyClock

LATELY = datetime.timedelta(hours=1)
MOST_KEPT = 10_000
"""Refusals for each cause that are remembered with their times."""
_STATM = Path("/proc/self/statm")


class Process:
    """Counters that begin at 0 with every start. `folder` is on the disk that must not be full."""

    def __init__(self, clock: Callable[[], datetime.datetime], folder: str | os.PathLike[str] = ".") -> None:
        self._clock, self._folder = clock, Path(folder)
        self.refusals: collections.Counter[str] = collections.Counter()
        """Refused calls, by the status of HTTP, or "older log"."""
        self._times: dict[str, collections.deque[datetime.datetime]] = {}
        self.memory = self.disk = math.nan
        """Megabytes in use, and free; nan if unknown."""
        self.damage: str | None = None
        """Why the service answers nothing: the log is not the one that was written."""
        self.misfit: str | None = None
        """A sentence if the episodes contradict the class of the model that was learned last; None if they do not."""
        self.better: dict[str, datetime.datetime] = {}
        """Checks that are better than their last incident says, and since when."""
        self.unsent: dict[str, str] = {}
        """Channels that did not take the last alert, with the kind of error."""
        self.losses: Any = None
        """The `LossWatch` that follows the log; None before anybody has looked."""
        self.measure()

    @property
    def jump(self) -> float:
        """Seconds by which the system's clock is off; 0 if it is believed."""
        return self._clock.jump if isinstance(self._clock, SteadyClock) else 0.0

    def refuse(self, cause: str, *, watched: bool = True) -> None:
        """Count a refused call; one that is not `watched` turns no check yellow."""
        self.refusals[cause] += 1
        if watched:
            self._times.setdefault(cause, collections.deque(maxlen=MOST_KEPT)).append(self._clock())

    def lately(self, *causes: str) -> int:
        """Return how many calls were refused for one of these in the last hour."""
        since = self._clock() - LATELY
        return sum(time > since for cause in causes for time in tuple(self._times.get(cause, ())))

    def measure(self) -> None:
        """Look at memory and disk."""
        try:
            pages = int(_STATM.read_text().split()[1])
            self.memory = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        except (OSError, ValueError, IndexError):
            self.memory = math.nan
        try:
            self.disk = shutil.disk_usage(self._folder).free / 1e6
        except OSError:
            self.disk = math.nan
