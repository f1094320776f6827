"""Checks of what should fit together: steps without gaps, decisions with outcomes, states with states."""

from __future__ import annotations

import collections
import datetime
from collections.abc import Mapping

from omg_cmdp.contexts import Context, context_from_json
from omg_cmdp.oracles.feature_map import Category
from omg_trial.episodes import Record
from omg_trial.rules import moment
from omg_trial.trial_file.explain import counted
from omg_trial.trial_file.trial import Trial
from omg_trial.watching.verdicts import Verdict, named, yellow_if
from omg_trial.watching.view import WEEK, TrialView


def abandoned_openings(view: TrialView) -> Verdict:
    """Count episodes that were closed before anything was decided: whoever looks and closes is seen here."""
    closed = [each for each in view.recent if each.closed is not None]
    empty = [each for each in closed if not each.choices]
    message = f"{len(empty)} of {len(closed)} episodes were closed before anything was decided: {named(empty)}"
    return yellow_if(len(empty) > view.trial.watch.abandoned * len(closed), message)


def gaps(view: TrialView) -> Verdict:
    """Look for steps that were left out."""
    gaps = [each for each in _settled(view) if len(each.choices) <= max(each.choices, default=-1)]
    return yellow_if(bool(gaps), f"episodes in which a step was left out: {named(gaps)}")


def repeated_decisions(view: TrialView) -> Verdict:
    """Count steps that were asked for again."""
    recent = [each for each in view.recent if moment(each.touched) > view.now - WEEK]
    repeats, decisions = sum(each.repeats for each in recent), sum(len(each.choices) for each in recent)
    message = f"{repeats} steps were asked for again, of {decisions} decisions; the answer was the same"
    return yellow_if(repeats > view.trial.watch.repeated * decisions, message)


def expected_decisions(view: TrialView) -> Verdict:
    """Compare with the number that the trial file expects; without one, with silence."""
    per_week, watch = view.trial.limits.decisions_per_week, view.trial.watch
    if per_week is None:
        under_way = [each for each in view.records if each.closed is None]
        hours = min(((view.now - moment(each.touched)).total_seconds() / 3600.0 for each in under_way), default=0.0)
        message = f"{len(under_way)} episodes are under way, and for {hours:.0f} hours nobody has asked about any"
        return yellow_if(hours > watch.overdue_hours, message)
    last = {each.person: each for each in view.records}
    people = [
        person
        for person, record in last.items()
        if view.now - moment(record.touched) < 2 * WEEK
        and moment(view.state.episodes[view.state.of_person[person][0]].opened) < view.now - WEEK
        and record.closed != "dropped out"
    ]
    made = collections.Counter(each.person for each in view.week)
    expected, actual = per_week * len(people), sum(made[person] for person in people)
    missing, many = actual < (1.0 - watch.missing) * expected, any(made[person] > per_week for person in people)
    message = (
        f"{actual} decisions in seven days for {counted(len(people), 'person', 'people')}; {expected} were expected"
    )
    return yellow_if(missing or many, message + ("; somebody had more than expected" if many else ""))


def overdue_rewards(view: TrialView) -> Verdict:
    """Compare rewards that have not come with those that should have."""
    overdue, due = len(view.overdue), len(view.due)
    message = f"{overdue} of {due} rewards of seven days are overdue"
    return yellow_if(overdue > view.trial.watch.missing * due, message)


def unmatched_outcomes(view: TrialView) -> Verdict:
    """Look for outcomes of steps that nobody decided."""
    found = [each for each in _settled(view) if each.outcomes.keys() - each.choices.keys()]
    return yellow_if(bool(found), f"episodes with an outcome of a step that was not decided: {named(found)}")


def contradictory_states(view: TrialView) -> Verdict:
    """Look for outcomes that say another state than the next decision."""
    found = [record for record in view.recent if any(_contradicts(record, step) for step in record.outcomes)]
    return yellow_if(bool(found), f"episodes in which an outcome and the next decision differ: {named(found)}")


def _contradicts(record: Record, step: int) -> bool:
    reported, after = record.outcomes[step].next_state, record.choices.get(step + 1)
    return reported is not None and after is not None and reported != after.state


def support(view: TrialView) -> Verdict:
    """Look for values outside their support."""
    start = view.trial.space.start
    states = [each for each in view.recent if 0 in each.choices and not start[each.choices[0].state]]
    contexts = [each for each in view.recent if not _described(view.trial, context_from_json(each.context))]
    calls, most = view.process.lately("422"), view.trial.watch.invalid
    message = (
        f"{counted(calls, 'call')} with wrong values in the last hour; numbers of episodes with an impossible first"
        f" state: {named(states)}; with a context that the trial file does not describe: {named(contexts)}"
    )
    return yellow_if(calls > most or bool(states or contexts), message)


def _described(trial: Trial, context: Context) -> bool:
    """Return whether every known entry of a record is a number in its range, or one of the labels."""
    if trial.features is None or not isinstance(context, Mapping):
        return True
    known = [(each, context[each.column]) for each in trial.features.columns if context.get(each.column) is not None]
    return all(
        column.label(value) in column.labels
        if isinstance(column, Category)
        else isinstance(value, (int, float)) and column.low <= value <= column.high
        for column, value in known
    )


def roster(view: TrialView) -> Verdict:
    """Count calls about unknown people or episodes, and about people who have withdrawn."""
    unknown, withdrawn = view.process.lately("404"), view.process.lately("410")
    calls = counted(unknown, "call")
    message = f"in the last hour {calls} about unknown people or episodes, {withdrawn} about people who have withdrawn"
    return yellow_if(unknown + withdrawn > 0, message)


def _settled(view: TrialView) -> list[Record]:
    """Return the recent episodes in which nothing more is likely to come."""
    until = view.now - datetime.timedelta(hours=view.trial.watch.overdue_hours)
    return [each for each in view.recent if each.closed is not None or moment(each.touched) <= until]
