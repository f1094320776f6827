"""What the page shows: a trial in numbers, and the history of one person."""

from __future__ import annotations

import collections
import dataclasses
import datetime
from collections.abc import Sequence
from typing import Any

from omg_cmdp.contexts import context_from_json
from omg_trial.desk import Desk
from omg_trial.episodes import DecidedStep, Record
from omg_trial.handlers.handled import find_person
from omg_trial.people.participants import WeekAccount
from omg_trial.trial_file.trial import Trial
from omg_trial.watching import course
from omg_trial.watching.checks import findings
from omg_trial.watching.losses import losses
from omg_trial.watching.view import TrialView

MOST_ROWS = 200


# What a blinded reader sees of each row. Whether there is a certificate, a cause or a rule tells the arm, and whether
# anything was drawn may tell the action.
_OF_PERSON = ("zone", "enrolled", "consent_from", "consent_to", "end")
_OF_EPISODE = ("episode", "person", "opened", "touched", "closed", "version", "context", "steps")
_OF_STEP = ("version", "time", "local", "drift", "revisions")
_OF_OVERDUE = ("person", "episode", "step", "time")
_OF_DAY = ("day", "enrolled", "decisions", "people", "missing", "waiting")
_OUTCOMES = ("budgets", "rewards", "lost")
_CHECKED = ("checks", "incidents")
_SAID = (
    *("consent", "device clocks", "abandoned openings", "gaps", "repeated decisions", "expected decisions"),
    *("overdue rewards", "unmatched outcomes", "contradictory states", "support", "roster"),
    *("clock", "store", "restored log", "unauthorised calls", "memory", "disk", "alerts"),
)
"""Checks that a blinded reader sees: a colour that changes after somebody's decision can tell their arm, too."""
_UNSAID = "left out in the blinded view: it may tell actions or arms apart"


def overview(view: TrialView, *, blinded: bool = False) -> dict[str, Any]:
    """Return what the page shows, as JSON has it; a `blinded` reader sees no outcome, and nothing by action."""
    trial, state, lost, waiting = view.trial, view.state, losses(view), view.state.waiting
    under_way = [record for record in view.records if record.closed is None]
    found = {
        "trial": trial.name,
        "time": view.now.astimezone(datetime.UTC).isoformat(timespec="seconds"),
        "zone": trial.zone.key,
        "event": state.number,
        "hash": state.hash,
        "version": state.version.number,
        "states": trial.states,
        "actions": trial.actions,
        "horizon": trial.space.horizon,
        "floor": trial.floor.probability,
        "reward_range": trial.reward_range,
        "context": _context(trial),
        "people": len(state.people),
        "people_this_week": len({each.person for each in view.week}),
        "arms": collections.Counter(each.arm for each in state.people.values()),
        "halted": state.halted and state.halted._asdict(),
        "halted_actions": {trial.actions[each]: halt._asdict() for each, halt in state.halted_actions.items()},
        "paused": sum(each.paused is not None for each in state.people.values()),
        "waiting": waiting and {"version": waiting.number, "episodes": len(waiting.dataset), "time": waiting.time},
        "withdrawn": len(state.withdrawn) + len(state.erased),
        "episodes": len(state.episodes),
        "episodes_under_way": len(under_way),
        "rewards_due": len(view.due),
        "rewards_overdue": len(view.overdue),
        "checks": [each._asdict() for each in findings(view)],
        "under_way": [_under_way(record) for record in reversed(under_way[-MOST_ROWS:])],
        "overdue": [_overdue(trial, step) for step in view.overdue[:MOST_ROWS]],
        "blinded": blinded,
        "days": course.days(view),
        "retention": course.retention(view),
        "versions": [each._asdict() for each in reversed(state.changes)],
        "incidents": [each._asdict() for each in state.incidents[: -MOST_ROWS - 1 : -1]],
        "budgets": course.budgets(view),
        "rewards": course.rewards(view),
        "lost": lost and lost.text(),
    }
    return _blind(found) if blinded else found


def _blind(found: dict[str, Any]) -> dict[str, Any]:
    """Return what a blinded reader sees of an overview: no outcome, and nothing by action or arm."""
    said = {name: [_unsaid(each, "note") for each in found[name] if each["check"] in _SAID] for name in _CHECKED}
    return {
        **{name: each for name, each in found.items() if name not in _OUTCOMES},
        **said,
        "arms": None,
        "halted": _unsaid(found["halted"], "cause"),
        "halted_actions": {},
        "under_way": [_only(_OF_EPISODE, each) for each in found["under_way"]],
        "overdue": [_only(_OF_OVERDUE, each) for each in found["overdue"]],
        "days": [{name: each[name] for name in _OF_DAY} for each in found["days"]],
        # The episodes that were learned from are of one arm: a count of them, before and after one is closed, tells it.
        "versions": [{**each, "cause": each["cause"] and _UNSAID, "episodes": None} for each in found["versions"]],
        "waiting": found["waiting"] and {**found["waiting"], "episodes": None},
    }


def _unsaid(row: dict[str, Any] | None, *words: str) -> dict[str, Any] | None:
    """Return a row without what the team has said: that may name actions, outcomes or arms."""
    return row and {name: _UNSAID if name in words and value is not None else value for name, value in row.items()}


def _only(names: Sequence[str], row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with None for everything that is not named."""
    return {name: value if name in names else None for name, value in row.items()}


def history(desk: Desk, person: str, *, blinded: bool = False) -> dict[str, Any]:
    """Return everything that is known of a person; a `blinded` reader sees neither actions nor outcomes."""
    state, trial = desk.state, desk.trial
    episodes = [_episode(trial, state.episodes[number]) for number in reversed(find_person(desk.inputs(), person))]
    about = state.people[person]._asdict()
    week, halt = (about.pop("accounts") or (WeekAccount(),))[-1], about.pop("paused")
    paused = halt and halt._asdict()
    found = {"person": person, **about, "paused": paused, "week": _week(trial, week), "episodes": episodes}
    if not blinded:
        return found
    for step in [step for episode in episodes for step in episode["steps"]]:
        step |= {part: step[part] and _only(_OF_STEP, step[part]) for part in ("decision", "outcome")}
    hidden = {"paused": _unsaid(paused, "cause"), "episodes": [_only(_OF_EPISODE, each) for each in episodes]}
    return {**found, **_only(_OF_PERSON, about), "week": None, **hidden}


def _week(trial: Trial, account: WeekAccount) -> dict[str, Any]:
    """Return an account by the names of the actions; all zeros before anything was drawn."""
    spent = account.spent or (0.0,) * len(trial.actions)
    return {
        "week": account.week,
        "drawn": account.drawn,
        "spent": dict(zip(trial.actions, spent, strict=True)),
        "taken": {name: account.taken.count(action) for action, name in enumerate(trial.actions)},
    }


def _episode(trial: Trial, record: Record) -> dict[str, Any]:
    steps = [_step(trial, record, step) for step in sorted({*record.choices, *record.outcomes})]
    known = {name: vars(record)[name] for name in ("opened", "closed", "version", "source", "cause", "certificate")}
    return {"episode": record.number, **known, "context": context_from_json(record.context), "steps": steps}


def _step(trial: Trial, record: Record, step: int) -> dict[str, Any]:
    choice, outcome = record.choices.get(step), record.outcomes.get(step)
    found: dict[str, Any] = {"step": step, "decision": None, "outcome": None}
    if choice is not None:
        names = {"state": trial.states[choice.state], "action": trial.action_name(choice.action)}
        found["decision"] = {**choice._asdict(), **names}
    if outcome is not None:
        after = None if outcome.next_state is None else trial.states[outcome.next_state]
        found["outcome"] = {**outcome._asdict(), "next_state": after}
    return found


def _context(trial: Trial) -> dict[str, Any]:
    """Return what a context is made of, for the form that asks for its policy."""
    if trial.features is None:
        return {"labels": trial.labels}
    return {"columns": [dataclasses.asdict(each) for each in trial.features.columns]}


def _under_way(record: Record) -> dict[str, Any]:
    known = {name: vars(record)[name] for name in ("person", "opened", "touched", "version", "source", "cause")}
    return {"episode": record.number, **known, "steps": len(record.choices)}


def _overdue(trial: Trial, step: DecidedStep) -> dict[str, Any]:
    known = {"person": step.person, "episode": step.record.number, "step": step.number, "time": step.choice.time}
    return {**known, "action": trial.action_name(step.choice.action)}
