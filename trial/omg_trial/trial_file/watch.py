"""The table `[watch]`: thresholds of the checks. It may change during the trial."""

from __future__ import annotations

from omg_trial.trial_file.kinds import Count, Hours, NotNegative, PositiveCount, Probability
from omg_trial.trial_file.table import FileTable


class Watch(FileTable):
    """Thresholds of the checks. Shares are of the decisions of seven days."""

    overdue_hours: Hours = 48.0
    """Age at which a missing outcome is overdue."""
    close_after_hours: Hours = 14 * 24.0
    """Silence after which an episode is closed, as truncated."""
    least_share: Probability = 0.0
    """Least share of every action, over all people and for each person."""
    streak: PositiveCount = 20
    """Decisions in a row in which only the floor explores; also the fewest whose shares are judged."""
    missing: Probability = 0.2
    """The share of outcomes that may be overdue, and of expected decisions that may be missing."""
    repeated: Probability = 0.2
    """The share of decisions that may be asked for again."""
    outside: Probability = 0.05
    """The share of decisions that may be asked for outside the window."""
    deviations: Probability = 0.05
    """The share of decisions that may be carried out in another way."""
    drift_seconds: NotNegative = 300.0
    """Seconds by which the clock of a device may be off."""
    fallbacks: Probability = 0.0
    """The share of decisions that may be made without a fresh plan."""
    learn_hours: Hours = 7 * 24.0
    """Age at which a closed episode must have been learned from."""
    unauthorised: Count = 10
    """Calls in an hour without a valid token or role."""
    abandoned: Probability = 0.2
    """The share of episodes that may be closed before anything was decided."""
    invalid: Count = 0
    """Calls in an hour with values outside their support."""
    memory_megabytes: NotNegative = 2000.0
    """The most that the process may use."""
    disk_megabytes: NotNegative = 1000.0
    """The least that must be free."""
    settled: Probability = 0.0
    """The share of settled decisions from which on the team may stop; 0 turns this check off."""
