"""A trial as a `Log`: what estimators of `omg_cmdp.logs` and `warm_start` take."""

from __future__ import annotations

from collections.abc import Iterable

from omg_cmdp.logs.log import Log
from omg_cmdp.mdp.episode import Episode
from omg_trial.episodes import Record
from omg_trial.export.decisions import fold_played
from omg_trial.log.events import Event
from omg_trial.trial_file.trial import Trial


def live_log(trial: Trial, events: Iterable[Event]) -> Log:
    """Return the episodes of a trial with their propensities, without those of people who have withdrawn.

    An episode is there as far as it is known: its steps from the first on whose next state was seen, up to the first
    action that was not the one drawn, and so has no known probability. The trial file says what stands for rewards that
    never came. `log.whole()` has the episodes that were seen to their end: a policy can be valued by them.

    Parameters
    ----------
    trial : Trial
        The trial that the log is of.
    events : iterable of Event
        All events from the first on.

    Examples
    --------
    >>> from omg_trial.desk import Desk
    >>> from omg_trial.log.database import Database
    >>> from omg_trial.trial_file import EXAMPLE
    >>> desk = Desk(Trial.parse(EXAMPLE), Database(":memory:"))
    >>> len(live_log(desk.trial, desk.store.read()))
    0
    """
    found = fold_played(trial, events)
    return log_of(trial, [each for each in found.records.values() if each.person not in found.withdrawn])


def log_of(trial: Trial, records: Iterable[Record]) -> Log:
    """Return some episodes of a trial as a log."""
    log = Log(trial.space, reward_range=trial.reward_range)
    for record in records:
        if (example := record.example(trial.missing_reward)) is None:
            continue
        chances = [record.choices[step].probability for step in range(len(example.actions))]
        steps = chances.index(None) if None in chances else len(chances)
        if steps:
            log.add(
                Episode(
                    context=trial.context(record.context),
                    states=example.states[: steps + 1],
                    actions=example.actions[:steps],
                    rewards=example.rewards[:steps],
                    propensities=chances[:steps],  # type: ignore[arg-type]
                )
            )
    return log
