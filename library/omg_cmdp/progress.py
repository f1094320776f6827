"""How far long work has come: one line in the terminal or below the cell of a notebook, with the time left."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from types import TracebackType
from typing import Self

PATIENCE = 2.0
"""Seconds before a bar appears, unless it is asked for: short work shows none."""
PAUSE = 0.2
"""Seconds between two drawings."""
WIDTH = 24
"""Characters of the bar itself."""


class Bar:
    """A line on stderr that says how much is done and how long the rest will take.

    The time left is the mean time of a part since the first one, which may have had to compile, times the parts left. A
    bar inside another one has the line to itself until it is over. It draws at most five times a second; in between,
    `update` costs a look at the clock, and nothing at all if nothing is shown.

    Parameters
    ----------
    name : str
        What is done: the first word of the line.
    total : int, optional
        The number of parts; None if it is not known: then the time left is not shown.
    unit : str, default "episodes"
        What the parts are.
    show : bool, optional
        By default the bar appears after two seconds if stderr is a terminal or a notebook and this is the main thread.
        True shows it at once and anywhere, False never.

    Examples
    --------
    >>> with Bar("compile", 3, unit="parts", show=False) as bar:
    ...     for part in ("tables", "plans", "oracles"):
    ...         bar.update(note=part)
    >>> bar.done, bar.line()
    (3, 'compile [########################] 3 of 3 parts, oracles')
    """

    _open: list[Bar] = []  # noqa: RUF012 - one terminal, one list; the last one may draw

    def __init__(
        self, name: str, total: int | None = None, *, unit: str = "episodes", show: bool | None = None
    ) -> None:
        if show is not None and not isinstance(show, bool):
            raise ValueError(f"`progress` must be True, False or None, got {show!r:.60}")
        self.name, self.total, self.unit = name, total, unit
        self.done = 0
        self._note, self._drawn = "", 0
        self._shown = _watched() if show is None else show
        self._next = time.monotonic() + (0.0 if show else PATIENCE)
        self._first: tuple[float, int] | None = None

    def __enter__(self) -> Self:
        if self._shown:
            Bar._open.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._shown:
            return
        outermost = Bar._open[0] is self
        if self._drawn:
            self._write(self.line() if outermost else "", end="\n" if outermost else "\r")
        Bar._open.remove(self)

    def update(self, done: int | None = None, note: str = "") -> None:
        """Say that `done` parts are over, by default one more; `note` says which one."""
        self.done = self.done + 1 if done is None else done
        self._note = note
        if self._shown:
            now = time.monotonic()
            self._first = self._first or (now, self.done)
            if now >= self._next and Bar._open[-1:] == [self]:
                self._next = now + PAUSE
                self._write(self.line(now))

    def clear(self) -> None:
        """Leave the line to something else that is printed; the next update draws the bar below it."""
        if self._drawn:
            self._write("", end="\r")
            self._next = 0.0

    def line(self, now: float | None = None) -> str:
        """Return the line as it stands."""
        began, first = self._first or (0.0, self.done)
        left = ""
        if self.total is None:
            text = f"{self.name}: {self.done} {self.unit}"
        else:
            filled = WIDTH * min(self.done, self.total) // max(self.total, 1)
            text = f"{self.name} [{'#' * filled}{'-' * (WIDTH - filled)}] {self.done} of {self.total} {self.unit}"
            if now is not None and first < self.done < self.total:
                left = f", {clock((now - began) / (self.done - first) * (self.total - self.done))} left"
        return f"{text}{left}{', ' * bool(self._note)}{self._note}"

    def _write(self, text: str, end: str = "") -> None:
        try:
            # Spaces, not an escape sequence, cover what stood there: notebooks know only the carriage return.
            sys.stderr.write(f"\r{text.ljust(self._drawn)}{end}")
            sys.stderr.flush()
        except (AttributeError, OSError, ValueError):  # no stderr, or one that was closed
            return
        self._drawn = len(text)


def say_stopped(name: str, done: int, total: int | None, kept: str) -> None:
    """Say on stderr that Ctrl-C has ended the work, and what became of what was done."""
    of_all = "" if total is None else f" of {total}"
    with contextlib.suppress(OSError, ValueError):
        print(f"{name}: stopped by Ctrl-C after {done}{of_all} episodes; {kept}", file=sys.stderr)


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, or hours, minutes and seconds.

    >>> clock(7.4), clock(3725)
    ('0:07', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _watched() -> bool:
    """Return whether somebody may be looking: a terminal or a notebook, and not one thread of many."""
    stream = sys.stderr
    notebook = type(stream).__module__.startswith("ipykernel")
    try:
        return threading.current_thread() is threading.main_thread() and (notebook or stream.isatty())
    except (AttributeError, ValueError):  # no stderr, or one that was closed
        return False
