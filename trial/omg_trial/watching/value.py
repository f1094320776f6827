"""What the trial earns, beside what the trial's fixed probabilities would have earned, estimated from the log.

The fixed probabilities are valued within the rules of the trial, and people of the control group are not in it. Only
episodes count that were seen to their end, with all rewards and probabilities. If those who drop out differ from
those who stay, so do the numbers. Which estimate to believe is up to `omg_cmdp.logs.evaluate`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from omg_cmdp.logs.off_policy.estimate import Estimate, Support, estimated
from omg_cmdp.logs.off_policy.evaluation import evaluate
from omg_trial.episodes import Record
from omg_trial.export.logged import log_of
from omg_trial.people.participants import CONTROL
from omg_trial.trial_file.trial import Trial


def values(trial: Trial, records: Sequence[Record]) -> dict[str, Any]:
    """Return what an episode earned, what it would have earned by the fixed probabilities, and the difference.

    Each is a number with its interval; None if the log does not support it. `advice` says what to think of them.
    """
    closed = [record for record in records if record.closed is not None and record.arm != CONTROL]
    fixed_policy = trial.fixed_policy()
    log = log_of(trial, closed, fixed_policy).whole()
    found: dict[str, Any] = {"closed": len(closed), "whole": len(log), "played": None, "fixed": None, "gain": None}
    if not len(log):
        advice = "No episode was seen to its end with all rewards and probabilities."
        return {**found, "estimates": [], "advice": advice}
    returns, horizon = log.returns, trial.space.horizon
    low, high = (horizon * bound for bound in trial.reward_range)
    played = estimated(float(returns.mean()), returns, np.ones((len(log), horizon)), (low, high))
    evaluation = evaluate(log, lambda _: fixed_policy)
    if evaluation.supported and evaluation.contradiction is None:
        name = evaluation.supported[0]
        fixed = evaluation.estimates[name]
        gained = returns - fixed.contributions  # episode by episode, which leaves out what varies in both
        width, mean = high - low, float(gained.mean())
        gain = dataclasses.replace(fixed, value=mean, contributions=gained, return_range=(-width, width))
        found |= {"fixed": _shown(fixed, evaluation.intervals[name]), "gain": _shown(gain, gain.interval())}
    estimates = [
        {
            "name": name,
            **_shown(each, evaluation.intervals[name]),
            "episodes": each.effective_sample_size,
            "support": each.support.value,
        }
        for name, each in evaluation.estimates.items()
    ]
    found["played"] = _shown(played, played.interval())
    return {**found, "estimates": estimates, "advice": evaluation.advice}


def _shown(estimate: Estimate, interval: tuple[float, float]) -> dict[str, Any]:
    low, high = interval if estimate.support is Support.GOOD else (None, None)
    return {"value": estimate.value, "low": low, "high": high}
