"""What the page shows: a trial in numbers, and the history of one person."""

from __future__ import annotations

import collections
import datetime
from collections.abc import Sequence
from typing import Any

from omg_cmdp.contexts import context_from_json
from omg_cmdp.oracles.feature_map import Category
from omg_trial.desk import Desk
from omg_trial.episodes import Record
from omg_trial.handlers.handled import find_person
from omg_trial.incident import Incident
from omg_trial.people.participants import Halt, WeekAccount
from omg_trial.trial_file.trial import Trial
from omg_trial.versions import Change
from omg_trial.watching import course
from omg_trial.watching.checks import Finding, findings
from omg_trial.watching.losses import losses
from omg_trial.watching.view import TrialView, WatchedStep

MOST_ROWS = 200


# What a blinded reader sees; all else of these is None. Whether there is a certificate, a cause or a rule tells the
# arm, and whether anything was drawn may tell the action.
_OF_PERSON = ("zone", "enrolled", "consent_from", "consent_to", "end")
_OF_EPISODE = ("episode", "person", "opened", "touched", "closed", "version", "context", "steps")
_OF_STEP = ("version", "time", "local", "drift", "revisions")
_SAID = (
    *("consent", "device clocks", "abandoned openings", "gaps", "repeated decisions", "expected decisions"),
    *("overdue rewards", "unmatched outcomes", "contradictory states", "support", "roster", "learning late"),
    *("clock", "store", "restored log", "unauthorised calls", "memory", "disk", "alerts"),
)
"""Checks whose sentences a blinded reader sees; of the others, the colour."""
_UNSAID = "left out in the blinded view: it may tell actions or arms apart"


def overview(view: TrialView, *, blinded: bool = False) -> dict[str, Any]:
    """Return what the page shows, as JSON has it; a `blinded` reader sees no outcome, and nothing by action."""
    trial = view.trial
    under_way = [record for record in view.records if record.closed is None]
    return {
        "trial": trial.name,
        "time": view.now.astimezone(datetime.UTC).isoformat(timespec="seconds"),
        "zone": trial.zone.key,
        "event": view.state.number,
        "hash": view.state.hash,
        "version": view.state.version.number,
        "states": trial.states,
        "actions": trial.actions,
        "horizon": trial.space.horizon,
        "floor": trial.floor.probability,
        "reward_range": trial.reward_range,
        "context": _context(trial),
        "people": len(view.state.people),
        "people_this_week": len({each.person for each in view.week}),
        "arms": None if blinded else collections.Counter(each.arm for each in view.state.people.values()),
        "halted": _halt(view.state.halted, blinded),
        "halted_actions": {} if blinded else _halted_actions(view),
        "paused": sum(each.paused is not None for each in view.state.people.values()),
        "waiting": _waiting(view),
        "withdrawn": len(view.state.withdrawn) + len(view.state.erased),
        "episodes": len(view.state.episodes),
        "episodes_under_way": len(under_way),
        "rewards_due": len(view.due),
        "rewards_overdue": len(view.overdue),
        "checks": _shown(findings(view), blinded),
        "under_way": [_under_way(record, blinded) for record in reversed(under_way[-MOST_ROWS:])],
        "overdue": [_overdue(trial, step, blinded) for step in view.overdue[:MOST_ROWS]],
        "blinded": blinded,
        "days": course.days(view, blinded=blinded),
        "retention": course.retention(view),
        "versions": [_change(change, blinded) for change in reversed(view.state.changes)],
        "incidents": _shown(view.state.incidents[: -MOST_ROWS - 1 : -1], blinded),
        **({} if blinded else _outcomes(view)),
    }


def _shown(found: Sequence[Finding | Incident], blinded: bool) -> list[dict[str, Any]]:
    """Return findings or incidents; a blinded reader sees the colours, and no sentence about actions or arms."""
    rows = [each._asdict() for each in found]
    return [_without_words(each) if blinded and each["check"] not in _SAID else each for each in rows]


def _without_words(row: dict[str, Any]) -> dict[str, Any]:
    """Return a finding without its sentence, or an incident without its own and what the team wrote beside it."""
    noted = {"note": _UNSAID} if row.get("note") is not None else {}
    return {**row, "message": _UNSAID, **noted}


def _change(change: Change, blinded: bool) -> dict[str, Any]:
    """Return a change of the version; why a model was refused tells a blinded reader what was lost."""
    row = change._asdict()
    return {**row, "cause": _UNSAID} if blinded and change.cause is not None else row


def _halt(halt: Halt | None, blinded: bool) -> dict[str, Any] | None:
    """Return a pause or a stop; its cause may name actions, outcomes or arms."""
    if halt is None:
        return None
    return {**halt._asdict(), **({"cause": _UNSAID} if blinded else {})}


def _only(names: Sequence[str], row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with None for everything that is not named."""
    return {name: value if name in names else None for name, value in row.items()}


def _halted_actions(view: TrialView) -> dict[str, Any]:
    return {view.trial.actions[each]: halt._asdict() for each, halt in view.state.halted_actions.items()}


def _outcomes(view: TrialView) -> dict[str, Any]:
    """Return what a blinded reader does not see, besides the actions of each day."""
    lost = losses(view)
    return {
        "budgets": course.budgets(view),
        "rewards": course.rewards(view),
        "lost": None if lost is None else lost.record(),
    }


def history(desk: Desk, person: str, *, blinded: bool = False) -> dict[str, Any]:
    """Return everything that is known of a person; a `blinded` reader sees neither actions nor outcomes."""
    state, trial = desk.state, desk.trial
    episodes = [_episode(trial, state.episodes[number]) for number in reversed(find_person(desk.inputs(), person))]
    about = state.people[person]._asdict()
    accounts, halt = about.pop("accounts"), about.pop("paused")
    if blinded:
        about, episodes = _only(_OF_PERSON, about), [_only(_OF_EPISODE, each) for each in episodes]
        for step in [step for episode in episodes for step in episode["steps"]]:
            step |= {part: step[part] and _only(_OF_STEP, step[part]) for part in ("decision", "outcome")}
    return {
        "person": person,
        **about,
        "paused": _halt(halt, blinded),
        "week": None if blinded else _week(trial, (accounts or (WeekAccount(),))[-1]),
        "episodes": episodes,
    }


def _week(trial: Trial, account: WeekAccount) -> dict[str, Any]:
    """Return an account by the names of the actions; all zeros before anything was drawn."""
    spent = account.spent or (0.0,) * len(trial.actions)
    return {
        "week": account.week,
        "drawn": account.drawn,
        "spent": dict(zip(trial.actions, spent, strict=True)),
        "taken": {name: account.taken.count(action) for action, name in enumerate(trial.actions)},
    }


def _waiting(view: TrialView) -> dict[str, Any] | None:
    """Return the model that waits to be published; the findings of the checks are beside it."""
    waits = view.state.waiting
    return None if waits is None else {"version": waits.number, "episodes": len(waits.dataset), "time": waits.time}


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
    return {
        "columns": [
            {"name": each.column, "labels": each.labels}
            if isinstance(each, Category)
            else {"name": each.column, "low": each.low, "high": each.high}
            for each in trial.features.columns
        ]
    }


def _under_way(record: Record, blinded: bool) -> dict[str, Any]:
    known = {name: vars(record)[name] for name in ("person", "opened", "touched", "version", "source", "cause")}
    row = {"episode": record.number, **known, "steps": len(record.choices)}
    return _only(_OF_EPISODE, row) if blinded else row


def _overdue(trial: Trial, step: WatchedStep, blinded: bool) -> dict[str, Any]:
    known = {"person": step.person, "episode": step.episode, "step": step.step, "time": step.choice.time}
    return {**known, "action": None if blinded else trial.action_name(step.choice.action)}
