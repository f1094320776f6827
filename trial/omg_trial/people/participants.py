"""A participant: arm, clock, consent, pauses, and what each week has had so far."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Sequence
from typing import NamedTuple

LEARNING, CONTROL = "learning", "control"


class Halt(NamedTuple):
    """A pause, or a stop for good."""

    kind: str
    """paused or stopped."""
    cause: str
    time: str


class WeekAccount(NamedTuple):
    """What a person's week has had so far; a decision without a draw counts only in `taken`."""

    week: str = ""
    """Year and week of the person's own clock."""
    drawn: int = 0
    """Number of decisions that were drawn."""
    spent: tuple[float, ...] = ()
    """The sum of the probabilities of each action."""
    taken: tuple[int, ...] = ()
    """Actions that were taken, in their order."""

    def after(self, action: int | None, chances: Sequence[float] | None) -> WeekAccount:
        """Return the account after one more decision; `chances` is None if nothing was drawn."""
        taken = self.taken if action is None else (*self.taken, action)
        if chances is None:
            return self._replace(taken=taken)
        before = self.spent or (0.0,) * len(chances)
        spent = tuple(one + more for one, more in zip(before, chances, strict=True))
        return self._replace(drawn=self.drawn + 1, spent=spent, taken=taken)


class Participant(NamedTuple):
    """Somebody who takes part.

    Examples
    --------
    >>> someone = Participant(arm="learning", zone="Asia/Tokyo", enrolled="", consent_to="2026-11-30")
    >>> someone.local(datetime.datetime(2026, 11, 30, 16, tzinfo=datetime.UTC)).isoformat()
    '2026-12-01T01:00:00+09:00'
    >>> someone.outside("2026-12-01")
    'the consent ended on 2026-11-30'
    """

    arm: str
    """learning or control."""
    zone: str
    enrolled: str
    """Time of the enrolment."""
    consent_from: str | None = None
    consent_to: str | None = None
    """First and last day of the consent, by the person's own clock."""
    end: str | None = None
    """The last day on which anything is decided for the person."""
    paused: Halt | None = None
    accounts: tuple[WeekAccount, ...] = ()
    """What every week has had, the one of the last decision at the end.

    None is dropped. A new zone, a corrected clock or a late report can lead back to any of them, and all together they
    are smaller than the decisions that they count.
    """

    def local(self, now: datetime.datetime) -> datetime.datetime:
        """Return a time by the person's own clock."""
        return now.astimezone(zoneinfo.ZoneInfo(self.zone))

    def account(self, week: str) -> WeekAccount:
        """Return the account of a week, which begins with nothing."""
        return next((each for each in reversed(self.accounts) if each.week == week), WeekAccount(week))

    def decided(self, week: str, action: int | None, chances: Sequence[float] | None) -> Participant:
        """Return the person after one more decision of a week; `chances` is None if nothing was drawn."""
        others = (each for each in self.accounts if each.week != week)
        return self._replace(accounts=(*others, self.account(week).after(action, chances)))

    def outside(self, day: str) -> str | None:
        """Return why nothing may be decided on a day; None if it may. Dates as ISO texts compare as dates do."""
        if self.consent_from is not None and day < self.consent_from:
            return f"the consent begins on {self.consent_from}"
        if self.consent_to is not None and day > self.consent_to:
            return f"the consent ended on {self.consent_to}"
        if self.end is not None and day > self.end:
            return f"the person's last day was {self.end}"
        return None


def week_of(local: datetime.datetime) -> str:
    """Return the year and week of a time by a person's own clock.

    >>> week_of(datetime.datetime(2027, 1, 1))
    '2026-W53'
    """
    year, week, _ = local.isocalendar()
    return f"{year}-W{week:02}"
