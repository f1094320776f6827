"""An incident: something that the team must know of."""

from __future__ import annotations

from typing import NamedTuple


class Incident(NamedTuple):
    """Something that the team must know of."""

    number: int
    time: str
    severity: str
    check: str
    message: str
    alerted: tuple[str, ...] = ()
    """Channels by which the team was told."""
    note: str | None = None
    """What somebody wrote who has acknowledged it."""
