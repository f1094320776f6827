"""The time of a service: that of the system's clock, unless this jumps."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable

MOST_OFF = 60.0
"""Seconds between two readings that are believed although the machine counted none: clocks are set by small steps."""

MOST_DRIFT = 0.01
"""The part by which the system's clock may be faster or slower than the machine's count, by many small steps."""

MOST_REST_HOURS = 14 * 24.0
"""Hours that a log may rest, with nothing under way, before somebody must look at the clock."""


def _seconds_up() -> float:
    # It counts while a machine sleeps too, where there is such a clock; `monotonic` would make waking up a jump.
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def contradiction(now: datetime.datetime, last: datetime.datetime, most_hours: float) -> str | None:
    """Return how a clock contradicts the time of the last event: it is behind, or ahead by more than `most_hours`."""
    ahead = now - last
    if ahead.total_seconds() > 3600.0 * most_hours:
        return f"{ahead.days} days after"
    return f"{(-ahead).days} days behind" if ahead.total_seconds() < -MOST_OFF else None


def check_clock(
    now: datetime.datetime, last: datetime.datetime, most_hours: float, correct: bool
) -> tuple[str, dict[str, str]] | None:
    """Return the event of a start at which the clock and the log do not fit; None if they do.

    If they contradict each other, one of the two is wrong: somebody must say that the clock is `correct`. A start long
    after the last event is an incident; a trial may have rested, or the clock is ahead.
    """
    if (wrong := contradiction(now, last, most_hours)) is not None:
        if not correct:
            advice = "if the clock is right, start with --correct-clock (`correct_clock`)"
            raise ValueError(f"the clock is {wrong} the last event: set it; {advice}")
        return "clock corrected", {"before": last.isoformat(timespec="microseconds")}  # time begins anew
    if (wrong := contradiction(now, last, MOST_REST_HOURS)) is None:
        return None
    advice = "if it is wrong, set it, and start with --correct-clock; nothing is to be done if the trial has rested"
    message = f"the clock is {wrong} the last event: {advice}"
    return "incident", {"severity": "red", "check": "clock", "message": message}


class SteadyClock:
    """Tells the time, and goes on by the machine's own count of seconds while the system's clock is wrong.

    A reading that is off by more than a minute from the last one plus the seconds that were counted since is not
    believed: one wrong reading would close every episode, and freeze windows and weeks. When the clock is back, or
    nearly, it is believed again; otherwise somebody has to decide which time is right, and start the service anew.

    Parameters
    ----------
    read : callable, default the system's clock
        Returns the time, with its zone.
    seconds : callable, default the seconds since the machine has started
        Counts seconds, whatever the time is set to.

    Examples
    --------
    >>> clock = SteadyClock()
    >>> clock() <= clock(), clock.jump
    (True, 0.0)
    """

    def __init__(
        self,
        read: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        seconds: Callable[[], float] = _seconds_up,
    ) -> None:
        self._read, self._seconds = read, seconds
        self._first = self._believed = read(), seconds()
        self.jump = 0.0
        """Seconds by which the system's clock is off, at the last reading; 0 if it is believed."""

    def __call__(self) -> datetime.datetime:
        """Return the time."""
        now, seconds = self._read(), self._seconds()
        last, then = self._believed
        expected = last + datetime.timedelta(seconds=seconds - then)
        off = (now - expected).total_seconds()
        begin, since = self._first
        drifted = (now - begin).total_seconds() - (seconds - since)
        if abs(off) > MOST_OFF:
            self.jump = off
        else:  # small steps are believed one by one, and not if together they make time go at another pace
            self.jump = drifted if abs(drifted) > MOST_OFF + MOST_DRIFT * (seconds - since) else 0.0
        if self.jump:
            return expected
        self._believed = now, seconds
        return now
