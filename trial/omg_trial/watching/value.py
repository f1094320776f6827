"""What the trial earns, beside what the trial's fixed probabilities would have earned, estimated from the log.

The fixed probabilities are valued within the rules of the trial, and people of the control group are not in it. Only
episodes count that were seen to their end, with all rewards and probabilities, if they are of five people or more. If
those who drop out differ from those who stay, so do the numbers. Which estimate to believe is up to
`omg_cmdp.logs.evaluate`; errors are over people, as episodes of the same person resemble each other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from omg_cmdp.logs.log import Log
from omg_cmdp.logs.off_policy.estimate import Estimate, Support, estimated
from omg_cmdp.logs.off_policy.evaluation import evaluate
from omg_trial.episodes import Record
from omg_trial.export.logged import episode_of
from omg_trial.people.participants import CONTROL
from omg_trial.trial_file.trial import Trial
from omg_trial.watching.course import FEWEST_PEOPLE


def values(trial: Trial, records: Sequence[Record]) -> dict[str, Any]:
    """Return what an episode earned, what it would have earned by the fixed probabilities, and the difference.

    Each is a number with its interval; None if the log does not support it. `advice` says what to think of them.
    """
    closed = [record for record in records if record.closed is not None and record.arm != CONTROL]
    fixed_policy = trial.fixed_policy()
    known = [
        (each.person, episode) for each in closed if (episode := episode_of(trial, each, fixed_policy)) is not None
    ]
    log = Log(trial.space, [episode for _, episode in known], reward_range=trial.reward_range).whole()
    whole = set(map(id, log.episodes))
    people = [person for person, episode in known if id(episode) in whole]
    found: dict[str, Any] = {"closed": len(closed), "whole": len(log), "played": None, "fixed": None, "gain": None}
    if len(set(people)) < FEWEST_PEOPLE:
        advice = f"Fewer than {FEWEST_PEOPLE} people have an episode that was seen to its end, with all that is needed."
        return {**found, "estimates": [], "advice": advice}
    returns, horizon = log.returns, trial.space.horizon
    low, high = (horizon * bound for bound in trial.reward_range)
    played = estimated(float(returns.mean()), returns, np.ones((len(log), horizon)), (low, high))
    by_episode = evaluate(log, lambda _: fixed_policy)
    clustered = {name: _by_person(each, people) for name, each in by_episode.estimates.items()}
    intervals = {name: each.interval(by_episode.level) for name, each in clustered.items()}
    evaluation = by_episode._replace(estimates=clustered, intervals=intervals)
    if evaluation.supported and evaluation.contradiction is None:
        name = evaluation.supported[0]
        fixed = by_episode.estimates[name]
        gained = returns - fixed.contributions  # episode by episode, which leaves out what varies in both
        width, mean = high - low, float(gained.mean())
        gain = dataclasses.replace(fixed, value=mean, contributions=gained, return_range=(-width, width))
        of_gain = _by_person(gain, people).interval()
        found |= {"fixed": _shown(fixed, evaluation.intervals[name]), "gain": _shown(gain, of_gain)}
    estimates = [
        {
            "name": name,
            **_shown(each, evaluation.intervals[name]),
            "episodes": each.effective_sample_size,
            "support": each.support.value,
        }
        for name, each in evaluation.estimates.items()
    ]
    found["played"] = _shown(played, _by_person(played, people).interval())
    return {**found, "estimates": estimates, "advice": evaluation.advice}


def _by_person(estimate: Estimate, people: Sequence[str]) -> Estimate:
    """Return an estimate whose contributions are of people instead of episodes; their mean is the value as before."""
    names, places = np.unique(people, return_inverse=True)
    parts = np.bincount(places, estimate.contributions - estimate.value) * len(names) / len(people)
    return dataclasses.replace(estimate, contributions=estimate.value + parts)


def _shown(estimate: Estimate, interval: tuple[float, float]) -> dict[str, Any]:
    low, high = interval if estimate.support is Support.GOOD else (None, None)
    return {"value": estimate.value, "low": low, "high": high}
