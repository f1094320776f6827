"""What the study file says about watching: from where on a check is no longer green."""

from __future__ import annotations

import dataclasses

from omg_trial.study.table import Table


@dataclasses.dataclass(frozen=True, kw_only=True)
class Watch:
    """Thresholds of the checks. Shares are of the decisions of seven days."""

    overdue_hours: float
    """An outcome that has not come after so long is overdue."""
    close_after_hours: float
    """An episode in which nothing has happened for so long is closed, as truncated."""
    least_share: float
    """Of every action, over all people and for each person."""
    streak: int
    """So many decisions in a row in which only the floor explores; also the fewest whose shares are judged."""
    missing: float
    """The share of outcomes that may be overdue, and of expected decisions that may be missing."""
    repeated: float
    """The share of decisions that may be asked for again."""
    outside: float
    """The share of decisions that may be asked for outside the window."""
    deviations: float
    """The share of decisions that may be carried out in another way."""
    fallbacks: float
    """The share of decisions that may be made without a fresh plan."""
    learn_hours: float
    """A closed episode must have been learned from after so long."""
    unauthorised: int
    """Calls without a right to be answered, in an hour."""
    invalid: int
    """Calls of the app with values outside their support, in an hour."""
    memory_megabytes: float
    """The most that the process may use."""
    disk_megabytes: float
    """The least that must be free."""


def read_watch(table: Table) -> Watch:
    """Return the thresholds of a study file."""

    def share(key: str, default: float) -> float:
        return table.number(key, default, low=0.0, high=1.0)

    return Watch(
        overdue_hours=table.number("overdue_hours", 48.0, low=0.0, high=1e5),
        close_after_hours=table.number("close_after_hours", 14 * 24.0, low=0.0, high=1e5),
        least_share=share("least_share", 0.0),
        streak=table.integer("streak", 20, least=1),
        missing=share("missing", 0.2),
        repeated=share("repeated", 0.2),
        outside=share("outside", 0.05),
        deviations=share("deviations", 0.05),
        fallbacks=share("fallbacks", 0.0),
        learn_hours=table.number("learn_hours", 7 * 24.0, low=0.0, high=1e5),
        unauthorised=table.integer("unauthorised", 10, least=0),
        invalid=table.integer("invalid", 0, least=0),
        memory_megabytes=table.number("memory_megabytes", 2000.0, low=0.0),
        disk_megabytes=table.number("disk_megabytes", 1000.0, low=0.0),
    )
