"""The kinds of values in a trial file, and the rules for each."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field


def must(fit: Callable[[Any], object], rule: str) -> AfterValidator:
    """Return the check of a value for which `fit` must be true; `rule` is what the error says."""

    def check(value: Any) -> Any:
        if not fit(value):
            raise ValueError(rule)
        return value

    return AfterValidator(check)


_ZONES = zoneinfo.available_timezones() - {"localtime"}
"""Read once: where no file can be opened, a zone is not refused. Another machine does not share the local one."""


def _iso(kind: type[Any], rule: str, fits: Callable[[Any], bool] = lambda _: True) -> Callable[[Any], Any]:
    """Return what reads a date or a time of TOML, or of its text; `fits` is what else it must be."""

    def read(value: Any) -> Any:
        try:
            found = kind.fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            found = None
        if type(found) is not kind or not fits(found):
            raise ValueError(rule)
        return found

    return read


DAY, DAY_RULE = r"^\d{4}-\d{2}-\d{2}$", "give a date such as 2026-12-24, without a time"
MOMENT_RULE = "give a time with its zone, such as 2026-11-02T09:00:00+01:00"
_day = _iso(datetime.date, DAY_RULE)
_time_of_day = _iso(datetime.time, "give a time of day such as '08:00', without a zone", lambda time: not time.tzinfo)
# Far from the ends of the calendar, where a change of zone would leave it.
_moment = _iso(
    datetime.datetime, MOMENT_RULE, lambda time: time.tzinfo is not None and 1 < time.year < datetime.MAXYEAR
)


_DISTINCT = must(lambda names: 0 < len(set(names)) == len(names), "give at least one name, and each only once")
Name = Annotated[str, Field(min_length=1, max_length=200)]
Names = Annotated[tuple[Name, ...], Field(strict=False), _DISTINCT]
Pair = Annotated[
    tuple[float, float], Field(strict=False), must(lambda pair: pair[0] < pair[1], "give [low, high] with low < high")
]
Cross = Annotated[tuple[str, str], Field(strict=False)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0, le=10**6)]
PositiveCount = Annotated[int, Field(ge=1, le=10**6)]
Positive = Annotated[float, Field(gt=0.0, le=1e6)]
NotNegative = Annotated[float, Field(ge=0.0)]
Hours = Annotated[float, Field(ge=0.0, le=1e5)]
Printable = must(lambda text: text.strip() and text.isprintable(), "use printable characters, and not only spaces")
PrintableName = Annotated[Name, Printable]
Zone = Annotated[str, must(_ZONES.__contains__, "give a time zone such as Europe/Berlin")]
DayText = Annotated[str, Field(pattern=DAY, examples=["2026-11-02"]), must(_day, DAY_RULE)]
MomentText = Annotated[str, Field(max_length=40, examples=["2026-11-02T09:00:00+01:00"]), must(_moment, MOMENT_RULE)]
Day = Annotated[datetime.date, BeforeValidator(_day)]
TimeOfDay = Annotated[datetime.time, BeforeValidator(_time_of_day)]
