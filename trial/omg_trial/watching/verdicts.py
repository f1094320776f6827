"""Colours, and sentences that several checks share.

Red harms people or the data, yellow keeps the algorithm from acting or learning as planned, green is as it should be.
"""

from __future__ import annotations

from collections.abc import Sequence

from omg_trial.episodes import Record

GREEN, YELLOW, RED = SEVERITIES = ("green", "yellow", "red")
SHOWN = 5

Verdict = tuple[str, str]
"""The colour and the sentence."""


def yellow_if(bad: bool, message: str) -> Verdict:
    """Return yellow or green."""
    return YELLOW if bad else GREEN, message


def share_within(those: Sequence[bool], what: str, most: float) -> Verdict:
    """Return yellow if more than this share of decisions has the property."""
    message = f"{sum(those)} of {len(those)} decisions were {what}; allowed are {most:.0%}"
    return yellow_if(sum(those) > most * len(those), message)


def named(records: Sequence[Record]) -> str:
    """Return the first few episodes by number."""
    shown = ", ".join(str(each.number) for each in records[:SHOWN]) or "none"
    return shown + (f" and {len(records) - SHOWN} more" if len(records) > SHOWN else "")
