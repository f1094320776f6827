"""Calls of the team: take a person out, learn, go back to an earlier model."""

from __future__ import annotations

from omg_trial.contract import Refusal, answers, calls
from omg_trial.decisions import DecisionInputs
from omg_trial.handlers.handled import Handled, find_person


def handle_withdraw(at: DecisionInputs, call: calls.Withdraw, person: str) -> Handled:
    """Take a person out."""
    find_person(at, person)
    return Handled("withdrawn", {"person": person}, answers.Withdrawn(withdrawn=True, event=at.number))


def handle_learn(at: DecisionInputs, call: calls.Learn, _: None) -> Handled:
    """Begin to learn."""
    if at.state.learning is not None:
        raise Refusal(409, "learning is under way; wait until it has ended")
    return Handled("learning", {}, answers.LearningStarted(learning=at.number, event=at.number))


def handle_roll_back(at: DecisionInputs, call: calls.RollBack, _: None) -> Handled:
    """Go back to an earlier version."""
    earlier = [version.number for version in at.state.versions[:-1]]
    if call.version not in earlier:
        raise Refusal(409, f"`version`: only versions before the one in use can be used again: {earlier}")
    return Handled("rolled back", {"version": call.version}, answers.RolledBack(version=call.version, event=at.number))


def handle_acknowledge(at: DecisionInputs, call: calls.Acknowledge, incident: int) -> Handled:
    """Note that somebody looks after an incident."""
    try:
        _, known = at.state.find_incident(incident)
    except KeyError:
        raise Refusal(404, f"there is no incident {incident}") from None
    if known.note is not None:
        raise Refusal(409, f"incident {incident} was acknowledged: {known.note:.100}")
    answer = answers.Acknowledged(incident=incident, event=at.number, note=call.note)
    return Handled("acknowledged", {"incident": incident, "note": call.note}, answer)
