"""What goes wrong in a rehearsal, and how often."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Script:
    """Rates and incidents of a rehearsal. Shares are of people or of calls; times are shares of the whole trial.

    Parameters
    ----------
    zones : tuple of str
        Time zones of people beside the trial's own, in turn.
    spread : float
        Standard deviation of a person's own level of reward, of which no column tells, as a share of the range.
    leave : float
        People who leave for good, each day.
    skip : float
        Episodes that do not take place: the app was not opened.
    unavailable : float
        Decision points at which the person is not available.
    late, missing : float
        Outcomes that come within three days, and that never come.
    outage : float
        Batches of calls that fail, before or after they were kept; the app sends them again.
    frauds : int
        People whose outcomes are made up; they are taken out at half-time.
    network : tuple of float
        When a third of the phones has no network for a day.
    restarts : tuple of float
        When the service is started anew from what the store holds, with the check of an upgrade.
    erase : float or None
        When one person is erased.

    Examples
    --------
    >>> TROUBLE.frauds, Script().frauds
    (2, 0)
    """

    zones: tuple[str, ...] = ()
    spread: float = 0.0
    leave: float = 0.0
    skip: float = 0.0
    unavailable: float = 0.0
    late: float = 0.0
    missing: float = 0.0
    outage: float = 0.0
    frauds: int = 0
    network: tuple[float, ...] = ()
    restarts: tuple[float, ...] = ()
    erase: float | None = None


TROUBLE = Script(
    zones=("America/New_York",),
    spread=0.05,
    leave=0.004,
    skip=0.03,
    unavailable=0.1,
    late=0.2,
    missing=0.04,
    outage=0.01,
    frauds=2,
    network=(0.3,),
    restarts=(0.4, 0.55),
    erase=0.7,
)
"""What a trial lead should expect."""
