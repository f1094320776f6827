"""The kinds of values in a trial file, and the rules for each."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names or len(set(names)) < len(names):
        raise ValueError("give at least one name, and each only once")
    return names


def _printable(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("use printable characters, and not only spaces")
    return text


def _increasing(pair: tuple[float, float]) -> tuple[float, float]:
    if not pair[0] < pair[1]:
        raise ValueError("give [low, high] with low < high")
    return pair


def _known_zone(name: str) -> str:
    try:
        zoneinfo.ZoneInfo(name)
    except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
        raise ValueError("give a time zone such as Europe/Berlin") from None
    return name


def date(value: Any) -> datetime.date:
    """Return a date of TOML, or of its text."""
    try:
        day = datetime.date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        day = None
    if type(day) is not datetime.date:
        raise ValueError("give a date such as 2026-12-24, without a time")
    return day


def _time_of_day(value: Any) -> datetime.time:
    try:
        time = datetime.time.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        time = None
    if not isinstance(time, datetime.time) or time.tzinfo is not None:
        raise ValueError("give a time of day such as '08:00', without a zone")
    return time


Name = Annotated[str, Field(min_length=1, max_length=200)]
Names = Annotated[tuple[Name, ...], Field(strict=False), AfterValidator(_distinct)]
Pair = Annotated[tuple[float, float], Field(strict=False), AfterValidator(_increasing)]
Cross = Annotated[tuple[str, str], Field(strict=False)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0, le=10**6)]
PositiveCount = Annotated[int, Field(ge=1, le=10**6)]
Positive = Annotated[float, Field(gt=0.0, le=1e6)]
Seconds = Annotated[float, Field(ge=0.0)]
Hours = Annotated[float, Field(ge=0.0, le=1e5)]
Megabytes = Annotated[float, Field(ge=0.0)]
Printable = AfterValidator(_printable)
PrintableName = Annotated[Name, Printable]
Zone = Annotated[str, AfterValidator(_known_zone)]
Day = Annotated[datetime.date, BeforeValidator(date)]
TimeOfDay = Annotated[datetime.time, BeforeValidator(_time_of_day)]
