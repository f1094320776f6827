"""What the checks and the page look at: a copy of the last episodes, which stays as it is while the desk goes on."""

from __future__ import annotations

import collections
import copy
import dataclasses
import datetime
import functools
import itertools

from omg_trial.episodes import DecidedStep, Record
from omg_trial.rules import moment
from omg_trial.state import State
from omg_trial.trial_file.trial import Trial
from omg_trial.watching.process import Process

MOST_EPISODES = 5000
"""Number of the last episodes that are looked at, besides all that are open."""
WEEK = datetime.timedelta(days=7)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialView:
    """A trial at one moment."""

    trial: Trial
    now: datetime.datetime
    """Time by the clock, even if the log is ahead of it."""
    process: Process
    state: State
    """The state at that moment; its records may grow, those of `records` do not."""
    records: list[Record]
    """The last episodes and all open ones, in the order in which they were opened."""

    @classmethod
    def of(cls, trial: Trial, state: State, now: datetime.datetime, process: Process) -> TrialView:
        """Return a view of the state as it is now. What grows in place is copied, and so stays as it is."""
        last = {record.number for record in itertools.islice(reversed(state.episodes.values()), MOST_EPISODES)}
        records = [_copied(state.episodes[number]) for number in sorted(last | state.open.keys())]
        then = State(**{name: copy.copy(value) for name, value in vars(state).items()})
        then.of_person = {name: list(numbers) for name, numbers in state.of_person.items()}
        return cls(trial=trial, now=now, process=process, state=then, records=records)

    @functools.cached_property
    def steps(self) -> list[DecidedStep]:
        """All decisions of the records, by time."""
        return sorted((step for record in self.records for step in record.steps()), key=lambda each: each.choice.time)

    @functools.cached_property
    def week(self) -> list[DecidedStep]:
        """The decisions of the last seven days."""
        return [each for each in self.steps if each.time > self.now - WEEK]

    @functools.cached_property
    def recent(self) -> list[Record]:
        """Episodes in which something has happened in the last two weeks, beyond what is not overdue."""
        watch = self.trial.watch
        hours = datetime.timedelta(hours=max(watch.overdue_hours, watch.learn_hours))
        return [each for each in self.records if moment(each.touched) > self.now - 2 * WEEK - hours]

    @functools.cached_property
    def due(self) -> list[DecidedStep]:
        """Decisions of seven days whose reward should have come by now."""
        until = self.now - datetime.timedelta(hours=self.trial.watch.overdue_hours)
        return [each for each in self.steps if until - WEEK < each.time <= until]

    @functools.cached_property
    def overdue(self) -> list[DecidedStep]:
        """Decisions whose reward should have come by now and has not."""
        return [each for each in self.due if each.outcome.reward is None]

    def by_person(self, steps: list[DecidedStep]) -> dict[str, list[DecidedStep]]:
        """Return the steps of each person, by time."""
        found: dict[str, list[DecidedStep]] = collections.defaultdict(list)
        for each in steps:
            found[each.person].append(each)
        return found


# Decisions and outcomes are tuples; only the dictionaries grow while the checks look at them.
def _copied(record: Record) -> Record:
    return dataclasses.replace(record, choices=dict(record.choices), outcomes=dict(record.outcomes))
