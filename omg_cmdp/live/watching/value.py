"""What the trial earns, beside what the study's fixed probabilities would have earned: from the log, by its weights.

Only episodes count that were seen to their end, with all rewards and probabilities. If those who drop out differ from
those who stay, so do the numbers. Episodes under one policy after another are no sample of one policy: the first
number is what *the trial* earned.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from omg_cmdp.live.state import Record
from omg_cmdp.live.trial import Trial
from omg_cmdp.logs.log import Log
from omg_cmdp.logs.off_policy.estimate import Estimate, Support, estimated
from omg_cmdp.logs.off_policy.sampling import importance_sampling
from omg_cmdp.logs.off_policy.steps import UnfitLogError
from omg_cmdp.mdp.episode import Episode


def values(trial: Trial, records: Sequence[Record]) -> dict[str, Any]:
    """Return what an episode earned, what it would have earned by the fixed probabilities, and the difference.

    Each is a number with its interval, or None; `support` says what to think of them.
    """
    closed = [record for record in records if record.closed is not None]
    log = whole_log(trial, closed)
    found: dict[str, Any] = {"closed": len(closed), "whole": len(log), "played": None, "fixed": None, "gain": None}
    if not len(log):
        return {**found, "support": "No episode was seen to its end with all rewards and probabilities."}
    returns, fixed_policy = log.returns, trial.fixed_policy()
    bounds = trial.space.horizon * trial.reward_range[0], trial.space.horizon * trial.reward_range[1]
    played = estimated(float(returns.mean()), returns, np.ones((len(log), trial.space.horizon)), bounds)
    found["played"] = _shown(played)
    try:
        fixed = importance_sampling(log, lambda _: fixed_policy, weighted=True)
    except UnfitLogError as error:
        return {**found, "support": f"The fixed probabilities cannot be valued: {error}."}
    if fixed.support is Support.GOOD:
        width, gained = bounds[1] - bounds[0], returns - fixed.contributions
        gain = dataclasses.replace(
            fixed, value=float(gained.mean()), contributions=gained, return_range=(-width, width)
        )
        found |= {"fixed": _shown(fixed), "gain": _shown(gain)}
    return {**found, "support": fixed.support.value, "effective": fixed.effective_sample_size}


def whole_log(trial: Trial, records: Sequence[Record]) -> Log:
    """Return the log of episodes with H known steps. The policy that is valued asks for no context: they have none."""
    log = Log(trial.space, reward_range=trial.reward_range)
    for record in records:
        example = record.example(trial.missing_reward)
        chances = [choice.probability for _, choice in sorted(record.choices.items())]
        if example is None or len(example.actions) < trial.space.horizon or None in (*example.rewards, *chances):
            continue
        steps = {"states": example.states, "actions": example.actions, "rewards": example.rewards}
        log.add(Episode(context="", **steps, propensities=chances))  # type: ignore[arg-type]
    return log


def _shown(estimate: Estimate) -> dict[str, Any]:
    low, high = estimate.interval() if estimate.support is Support.GOOD else (None, None)
    return {"value": estimate.value, "low": low, "high": high}
