"""Checks of the model and of the machine."""

from __future__ import annotations

import datetime
import math

from omg_trial.people.participants import CONTROL
from omg_trial.rules import moment
from omg_trial.watching.losses import losses
from omg_trial.watching.verdicts import GREEN, RED, YELLOW, Verdict, named, yellow_if
from omg_trial.watching.view import TrialView

CLOCK_SECONDS = 5.0
"""Seconds that the clock may be behind the last event: it is set by small steps all the time."""


def model_refused(view: TrialView) -> Verdict:
    """Tell whether the model that was learned last passed its checks."""
    last = view.state.changes[-1] if view.state.changes else None
    if last is None or last.verdict != "refused":
        return GREEN, "the last model that was learned is in use" if last else "nothing was learned yet"
    return YELLOW, f"the model of version {last.version} was not published: {last.cause}"


def model_fit(view: TrialView) -> Verdict:
    """Tell whether the episodes contradict the class of the model, and what to try."""
    return yellow_if(view.process.misfit is not None, view.process.misfit or "nothing contradicts the model's class")


def learning_late(view: TrialView) -> Verdict:
    """Look for episodes that were closed, or heard of, long ago, and since then no model was learned that is in use.

    Those of the control group count too, though no model learns from them: the colour must not tell the arms.
    """
    hours, version = view.trial.watch.learn_hours, view.state.version
    until, missing = view.now - datetime.timedelta(hours=hours), view.trial.missing_reward
    old = [each for each in view.recent if each.closed is not None and moment(each.touched) <= until]
    learned = {example.episode for example in version.dataset}
    late = [each for each in old if each.touched > version.time or (each.arm != CONTROL and each.number not in learned)]
    late = [each for each in late if each.example(missing) is not None]
    return yellow_if(bool(late), f"closed for {hours:g} hours, and the model in use is older: {named(late)}")


def clock(view: TrialView) -> Verdict:
    """Compare the clock with the seconds that the machine has counted, and with the last event."""
    if view.process.jump:
        return RED, f"the clock has jumped by {view.process.jump:.0f} seconds, and is not believed until it is back"
    behind = (moment(view.state.time) - view.now).total_seconds() if view.state.time else 0.0
    if behind > CLOCK_SECONDS:
        return RED, f"the clock is {behind:.0f} seconds behind the last event: it was set back"
    return GREEN, "the clock is not behind the last event"


def store(view: TrialView) -> Verdict:
    """Tell whether the log is the one that was written, and count calls that were not kept."""
    if view.process.damage is not None:
        return RED, view.process.damage
    failed = view.process.lately("500", "503")
    return RED if failed else GREEN, f"{failed} calls could not be kept in an hour"


def restored_log(view: TrialView) -> Verdict:
    """Count calls of an app that has seen events which the log lacks: an older backup, or another database."""
    count = view.process.lately("older log")
    return RED if count else GREEN, f"{count} calls in an hour knew events that are not in the log"


def unauthorised_calls(view: TrialView) -> Verdict:
    """Count calls without a valid token or role."""
    count = view.process.lately("401", "403")
    return yellow_if(count > view.trial.watch.unauthorised, f"{count} unauthorised calls in an hour")


def memory(view: TrialView) -> Verdict:
    """Compare the memory in use with what is allowed."""
    used, most = view.process.memory, view.trial.watch.memory_megabytes
    return yellow_if(used > most, f"memory in use: {_shown(used)}, allowed are {most:.0f} MB")


def disk(view: TrialView) -> Verdict:
    """Compare the space that is free with what is needed."""
    free, least = view.process.disk, view.trial.watch.disk_megabytes
    return RED if free < least else GREEN, f"free on disk: {_shown(free)}, needed are {least:.0f} MB"


def _shown(megabytes: float) -> str:
    return "unknown" if math.isnan(megabytes) else f"{megabytes:.0f} MB"


def alerts(view: TrialView) -> Verdict:
    """Tell whether alerts to the team are taken."""
    unsent = [f"{name} ({cause})" for name, cause in sorted(view.process.unsent.items())]
    return yellow_if(bool(unsent), f"alerts that were not taken: {', '.join(unsent) or 'none'}")


def settled(view: TrialView) -> Verdict:
    """Tell whether enough is settled for the team to stop, if the trial file asks for that."""
    least, lost = view.trial.watch.settled, losses(view)
    if not least:
        return GREEN, "not asked for"
    if lost is None or lost.reason or lost.episodes == 0:
        return GREEN, "nothing can be said yet"
    message = (
        f"{lost.settled:.0%} of the decisions are settled; the trial file asks for {least:.0%}. If the trial stops "
        "now, what it lost at most still holds, but tests and intervals for a planned number of episodes do not"
    )
    return yellow_if(lost.settled >= least, message)
