"""The monitoring checks: each looks at one thing that went wrong in trials, and says in a sentence what it sees.

Sentences name episodes, not people.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import NamedTuple

from omg_trial.log.traces import trace
from omg_trial.watching import decisions, outcomes, system
from omg_trial.watching.verdicts import RED, Verdict
from omg_trial.watching.view import TrialView

CHECKS: dict[str, Callable[[TrialView], Verdict]] = {
    name.replace("_", " "): check
    for module in (decisions, outcomes, system)
    for name, check in vars(module).items()
    if inspect.isfunction(check) and check.__module__ == module.__name__ and not name.startswith("_")
}
"""Every public function of these modules is a check; it is called by its name, with spaces."""


class Finding(NamedTuple):
    """The result of a check, now."""

    check: str
    severity: str
    message: str


def findings(view: TrialView) -> list[Finding]:
    """Return the results of all checks."""
    return [Finding(name, *_look(check, view)) for name, check in CHECKS.items()]


def _look(check: Callable[[TrialView], Verdict], view: TrialView) -> Verdict:
    try:
        return check(view)
    except Exception as error:  # it must not silence the others, and the alerts with them
        return RED, f"the check itself failed: {trace(error)}"
