"""A rehearsal: a small trial in memory, with people and outcomes at random, to see what a trial file leads to."""

from __future__ import annotations

import collections
import datetime
import json
import statistics
import time
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.oracles.feature_map import Category
from omg_trial.decisions import PolicySource
from omg_trial.desk import Desk
from omg_trial.log.database import Database
from omg_trial.trial_file.explain import counted
from omg_trial.trial_file.trial import Trial

ROUNDS = 2
"""Episodes of each person; what comes of the first is learned before the second."""


class Rehearsal(NamedTuple):
    """Numbers of a rehearsal."""

    episodes: int
    decisions: int
    shares: dict[str, float]
    """Share of each action among all decisions."""
    least: float
    """The smallest probability of an action that was drawn."""
    changed: dict[str, int]
    """Decisions that a rule has changed, or whose policy was not a fresh plan; by the rule or the policy's source."""
    published: int
    refused: tuple[str, ...]
    """Why models were not published."""
    seconds: float
    """The median time of an opening, with its plan."""


def rehearse(trial: Trial, *, people: int = 20, seed: int = 0) -> Rehearsal:
    """Play a trial in memory: everybody has two episodes, whose outcomes are drawn evenly. It begins on a Monday.

    Parameters
    ----------
    trial : Trial
        The trial to rehearse.
    people : int, default 20
        Number of people, with contexts at random.
    seed : int, default 0
        Seed of contexts and outcomes; the draws of actions have a secret of their own.

    Examples
    --------
    >>> from omg_trial.trial_file import EXAMPLE
    >>> rehearse(Trial.parse(EXAMPLE), people=3).decisions
    12
    """
    generator = np.random.default_rng(seed)
    begin = datetime.time(12) if trial.window is None else trial.window.begin
    now = datetime.datetime.combine(datetime.date(2026, 11, 2), begin, trial.zone)
    desk = Desk(trial, Database(":memory:"), clock=lambda: now)
    contexts = [random_context(trial, generator) for _ in range(people)]
    seconds = []
    for _ in range(ROUNDS):
        opened = {}
        for person, context in enumerate(contexts):
            before = time.perf_counter()
            answer = json.loads(desk.call("open", {"person": f"p{person}", "context": context}).text)
            seconds.append(time.perf_counter() - before)
            opened[answer["episode"]] = str(generator.choice(trial.states, p=trial.space.start))
        for step in range(trial.space.horizon):
            for episode, state in opened.items():
                desk.call("decide", {"episode": episode, "step": step, "state": state})
                opened[episode] = state = str(generator.choice(trial.states))
                reward = float(generator.uniform(*trial.reward_range))
                desk.call("report", {"episode": episode, "step": step, "reward": reward, "next_state": state})
            # A day between two decisions, unless the trial file says how many there are in a week.
            now += datetime.timedelta(days=7) / (trial.limits.decisions_per_week or 7)
        for episode in opened:
            desk.call("close", {"episode": episode})
        desk.call("learn", {})
        desk.learn_here()
    choices = [choice for record in desk.state.episodes.values() for choice in record.choices.values()]
    taken = collections.Counter(choice.action for choice in choices)
    sources = (choice.source for choice in choices if choice.source != PolicySource.PLAN)
    return Rehearsal(
        len(desk.state.episodes),
        len(choices),
        {name: taken[place] / len(choices) for place, name in enumerate(trial.actions)},
        min(choice.probability for choice in choices if choice.probability is not None),
        dict(collections.Counter([*sources, *(rule for choice in choices for rule in choice.rules)])),
        desk.state.version.number,
        tuple(change.cause or "" for change in desk.state.changes if change.verdict == "refused"),
        statistics.median(seconds[1:]),
    )


def describe_rehearsal(rehearsal: Rehearsal) -> list[str]:
    """Return what a rehearsal has shown, sentence by sentence."""
    shares = ", ".join(f"{name} {100 * share:.3g}%" for name, share in rehearsal.shares.items())
    published = counted(rehearsal.published, "model was", "models were")
    found = [
        f"{rehearsal.episodes} episodes, {counted(rehearsal.decisions, 'decision')}: {shares}.",
        f"The least probable action that was drawn had probability {rehearsal.least:.3g}.",
        f"{published} published. An episode opens in {1000 * rehearsal.seconds:.1f} ms here.",
    ]
    for name, count in rehearsal.changed.items():
        found.append(f"{counted(count, 'decision was', 'decisions were')} made or changed by: {name}.")
    return found + [f"A model was not published: {cause}." for cause in rehearsal.refused]


def random_context(trial: Trial, generator: np.random.Generator) -> Any:
    """Return a context that the trial file allows, as an app would send it."""
    if trial.features is None:
        return str(generator.choice(trial.labels))
    return {
        column.column: str(generator.choice(column.labels))
        if isinstance(column, Category)
        else float(generator.uniform(column.low, column.high))
        for column in trial.features.columns
    }
