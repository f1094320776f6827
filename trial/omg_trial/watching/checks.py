"""The monitoring checks: each looks at one thing that went wrong in trials, and says in a sentence what it sees.

Sentences name episodes, not people.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from omg_trial.watching import decisions, outcomes, system
from omg_trial.watching.losses import settled
from omg_trial.watching.verdicts import Verdict
from omg_trial.watching.view import TrialView

CHECKS: dict[str, Callable[[TrialView], Verdict]] = {
    "clipped probabilities": decisions.clipped,
    "shares of actions": decisions.shares,
    "burden": decisions.burden,
    "window": decisions.outside,
    "consent": decisions.consent,
    "device clocks": decisions.device_clocks,
    "fallbacks": decisions.fallbacks,
    "deviations": decisions.deviations,
    "draws": decisions.draws,
    "abandoned openings": outcomes.abandoned,
    "gaps": outcomes.gaps,
    "repeated decisions": outcomes.repeats,
    "expected decisions": outcomes.expected,
    "overdue rewards": outcomes.overdue,
    "unmatched outcomes": outcomes.unmatched,
    "contradictory states": outcomes.contradictions,
    "support": outcomes.support,
    "roster": outcomes.roster,
    "model refused": system.refused,
    "model fit": system.fit,
    "learning late": system.late,
    "clock": system.clock,
    "store": system.kept,
    "restored log": system.restored,
    "unauthorised calls": system.unauthorised,
    "memory": system.memory,
    "disk": system.disk,
    "alerts": system.alerts,
    "settled": settled,
}


class Finding(NamedTuple):
    """The result of a check, now."""

    check: str
    severity: str
    message: str


def findings(view: TrialView) -> list[Finding]:
    """Return the results of all checks."""
    return [Finding(name, *check(view)) for name, check in CHECKS.items()]
