"""A trial as a `Log`: what estimators of `omg_cmdp.logs` and `warm_start` take."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from omg_cmdp.logs.log import Log
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.validation import FloatArray, policy_table
from omg_trial.episodes import Record, StepDecision
from omg_trial.export.decisions import fold_played
from omg_trial.log.events import Event
from omg_trial.trial_file.trial import Trial


def live_log(trial: Trial, events: Iterable[Event], policy: FloatArray | None = None) -> Log:
    """Return the episodes of a trial with their propensities, without those of people who have withdrawn.

    An episode is there as far as it is known: its steps from the first on whose next state was seen, up to the first
    action that was not the one drawn, and so has no known probability. As in learning, an episode that began in an
    impossible state is left out. The trial file says what stands for rewards that never came. `log.whole()` has the
    episodes that were seen to their end: a policy can be valued by them. Where nothing was drawn, what was done had
    probability 1.

    A policy that is to be valued should be given here too, as no policy can do what a rule has closed. Propensities are
    then p·π/π', where p is the probability after all rules, and π' is π among the actions that could be drawn, and 1
    where nothing was: the weight of a step, π over its propensity, is π'/p.

    Parameters
    ----------
    trial : Trial
        The trial that the log is of.
    events : iterable of Event
        All events from the first on.
    policy : array (H, S, A), optional
        A policy to be valued within the rules.

    Examples
    --------
    >>> from omg_trial.desk import Desk
    >>> from omg_trial.log.database import Database
    >>> from omg_trial.trial_file import EXAMPLE
    >>> desk = Desk(Trial.parse(EXAMPLE), Database(":memory:"))
    >>> len(live_log(desk.trial, desk.store.read()))
    0
    """
    found, space = fold_played(trial, events), trial.space
    if policy is not None:
        policy = policy_table(policy, (space.horizon, space.states, space.actions), space.admissible)
    stayed = [record for record in found.records.values() if record.person not in found.withdrawn]
    episodes = [episode for record in stayed if (episode := episode_of(trial, record, policy)) is not None]
    return Log(space, episodes, reward_range=trial.reward_range)


def episode_of(trial: Trial, record: Record, policy: FloatArray | None = None) -> Episode | None:
    """Return an episode as far as it is known; None if nothing is."""
    example = record.example(trial.missing_reward)
    if example is None or not trial.space.start[example.states[0]]:
        return None
    chances = [_propensity(record.choices[step], step, policy) for step in range(len(example.actions))]
    steps = chances.index(None) if None in chances else len(chances)
    if not steps:
        return None
    return Episode(
        context=trial.context(record.context),
        states=example.states[: steps + 1],
        actions=example.actions[:steps],
        rewards=example.rewards[:steps],
        propensities=chances[:steps],  # type: ignore[arg-type]
    )


def _propensity(choice: StepDecision, step: int, policy: FloatArray | None) -> float | None:
    """Return the probability of an action, or what makes a policy's weight right within the rules; None if unknown."""
    drawn = bool(choice.probabilities)
    known = choice.probability if drawn else 1.0
    if known is None:
        return None
    known = min(known, 1.0)  # probabilities after rules may sum to more by rounding
    if policy is None or choice.action is None:
        return known
    row = policy[step, choice.state]
    within = float(row[np.array(choice.probabilities) > 0.0].sum()) if drawn else float(row[choice.action])
    return known * min(within, 1.0) or None
