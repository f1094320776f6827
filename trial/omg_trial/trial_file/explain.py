"""A trial file in plain sentences, for those who have to agree to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from omg_cmdp.oracles.feature_map import Category
from omg_trial.trial_file.trial import Trial


def explain_trial(trial: Trial) -> list[str]:
    """Return the meaning of a trial file, sentence by sentence.

    Parameters
    ----------
    trial : Trial
        The trial of the file.

    Examples
    --------
    >>> from omg_trial.trial_file import EXAMPLE
    >>> explain_trial(Trial.parse(EXAMPLE))[-3]
    'Learning begins after 1 closed episode.'
    """
    parts = (_episodes, _contexts, _people, _decisions, _budgets, _rules, _learning)
    return [sentence for part in parts for sentence in part(trial)]


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number of things in words; `many` is needed where "s" is not enough.

    >>> counted(1, "policy", "policies"), counted(0, "model")
    ('1 policy', '0 models')
    """
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def _episodes(trial: Trial) -> Iterator[str]:
    steps = trial.space.horizon
    yield (
        f"{trial.name}: an episode has {counted(steps, 'decision')}, "
        f"each in one of {len(trial.states)} states ({', '.join(trial.states)}), "
        f"with {len(trial.actions)} actions ({', '.join(trial.actions)})."
    )
    yield f"It begins in: {_shares(trial.states, trial.space.start)}."
    for place, state in enumerate(trial.states):
        if not trial.space.admissible[place].all():
            never = [name for name, may in zip(trial.actions, trial.space.admissible[place], strict=True) if not may]
            yield f"In {state} never: {', '.join(never)}."


def _contexts(trial: Trial) -> Iterator[str]:
    if trial.features is None:
        yield f"The context of an episode is one of {', '.join(trial.labels)}."
        return
    columns = [
        f"{column.column} ({', '.join(map(str, column.labels))}; any other counts as unknown)"
        if isinstance(column, Category)
        else f"{column.column} (a number from {column.low:g} to {column.high:g}; beyond that the nearest end counts)"
        for column in trial.features.columns
    ]
    yield f"The context of an episode is a record: {'; '.join(columns)}."


def _people(trial: Trial) -> Iterator[str]:
    if trial.people.roster == "required":
        yield "People are enrolled before anything is decided for them; unknown people are refused."
    if trial.people.control:
        yield (
            f"A share of {100 * trial.people.control:.3g}% of the people, drawn at enrolment, is the control group: "
            f"{_shares(trial.actions, trial.fallback)}, and nothing is learned from them."
        )
    if trial.end is not None:
        yield f"The last day is {trial.end.isoformat()}, by each person's own clock."
    named = trial.action_name(trial.unavailable)
    yield f"For somebody who is not available nothing is drawn; the action is {named or 'none'}."
    if trial.paused is None:
        yield "During a pause decisions are refused, with the cause of the pause."
    else:
        yield f"During a pause nothing is drawn; the action is {trial.action_name(trial.paused)}."


def _decisions(trial: Trial) -> Iterator[str]:
    if trial.floor.probability:
        yield f"Every action has at least probability {trial.floor.probability:g}, unless a rule below says otherwise."
    else:
        yield "Probabilities have no floor: some may be too small for an analysis afterwards."
    yield f"Without a certified plan: {_shares(trial.actions, trial.fallback)}."
    if trial.replan:
        yield (
            "Every step is planned anew with the newest model: regret bounds are about policies that are fixed for an "
            "episode, and do not hold for one during which a model is published; probabilities are exact all the same."
        )
    else:
        yield "The policy of an episode is fixed when it opens."


def _budgets(trial: Trial) -> Iterator[str]:
    if trial.budgets is None:
        return
    fixed = trial.space.horizon * (trial.budgets.costs * trial.fixed_policy()[0]).sum(axis=2).max(axis=1)
    for name, costs, most, without in zip(*trial.budgets, fixed, strict=True):
        each = ", ".join(f"{action} {cost:g}" for action, cost in zip(trial.actions, costs[0], strict=True) if cost)
        yield (
            f"An episode costs at most {most:g} {name} on average ({each}), floor included: plans keep this in the "
            "model, as well as it has learned where people go."
        )
        if without > most:
            yield f"The fixed probabilities, for the control group and without a plan, may cost {without:g} {name}."


def _rules(trial: Trial) -> Iterator[str]:
    if trial.window is not None:
        begin, end = (time.isoformat("minutes") for time in (trial.window.begin, trial.window.end))
        outside = trial.window.outside
        yield f"Outside of {begin} to {end}, by each person's own clock, the action is {outside}, for certain."
    if trial.limits.mean:
        yield (
            f"In a person's week of {trial.limits.decisions_per_week} decisions probabilities are lowered so that on "
            f"average there are at most: {_counts(trial.actions, trial.limits.mean)}; evenly over the week, and never "
            "below the floor."
        )
        week = trial.limits.decisions_per_week or 1
        above = {each: float(trial.fallback[each]) * week for each in trial.limits.mean}
        above = {each: wanted for each, wanted in above.items() if wanted > trial.limits.mean[each] + 1e-9}
        if above:
            yield (
                f"The fixed probabilities would want more, {_counts(trial.actions, above)}, and are lowered too: the "
                "control group does not play them as they are in the file."
            )
    for word, limits in (("most", trial.limits.most), ("least", trial.limits.least)):
        if limits:
            yield f"At {word}, for each person and week, without exception: {_counts(trial.actions, limits)}."
    if trial.grants_allowances:
        yield "An app may go on with an episode without a network until the person's week ends, by an allowance."
    elif trial.steps_may_differ:
        yield "An app needs a network for every decision, because rules may change it."
    elif trial.offline:
        yield "An app may go on with an episode without a network: it has all actions from the beginning."
    else:
        yield "An app needs a network for every decision; nobody is told a draw before it is made."


def _learning(trial: Trial) -> Iterator[str]:
    low, high = trial.reward_range
    kinds = trial.reward_oracle[0], trial.dynamics_oracle[0]
    yield f"Rewards lie in [{low:g}, {high:g}]. They are learned by {kinds[0]}, transitions by {kinds[1]}."
    after = trial.learn_after
    yield f"Learning begins after {counted(after, 'closed episode')}." if after else "It learns when asked to."
    if trial.by_hand:
        yield "A new model waits until somebody publishes it."
    if trial.missing_reward is None:
        yield "A reward that never comes is left out."
    else:
        yield f"A reward that never comes counts as {trial.missing_reward:g}."
    yield (
        f"An outcome is overdue after {trial.watch.overdue_hours:g} hours; "
        f"an episode in which nothing has happened for {trial.watch.close_after_hours:g} hours is closed."
    )


def _shares(names: tuple[str, ...], chances: np.ndarray) -> str:
    return ", ".join(f"{name} {100 * chance:.3g}%" for name, chance in zip(names, chances, strict=True) if chance)


def _counts(names: tuple[str, ...], limits: Mapping[int, float]) -> str:
    return ", ".join(f"{names[place]} {number:g} times" for place, number in limits.items())
