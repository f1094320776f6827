"""Calls of the team: take a person out, pause, resume, stop, learn, publish, go back to an earlier model."""

from __future__ import annotations

import re

from omg_trial.contract import Refusal, calls
from omg_trial.decisions import DecisionInputs
from omg_trial.handlers.handled import Handled, find_person
from omg_trial.keys.marks import alias_of


def handle_withdraw(at: DecisionInputs, call: calls.Withdraw, person: str) -> Handled:
    """Take a person out."""
    find_person(at, person)
    _check_nameless(person, call.cause or "")
    return Handled("withdrawn", {"person": person, "cause": call.cause}, {"withdrawn": True})


def handle_erase(at: DecisionInputs, call: calls.Erase, person: str) -> Handled:
    """Erase a person, who may have withdrawn before."""
    alias = alias_of(at.state.secret, person)
    if alias in at.state.erased:
        raise Refusal(410, "the person was erased")
    if person not in {*at.state.people, *at.state.withdrawn}:
        raise Refusal(404, "there is no such person")
    _check_nameless(person, call.cause)
    return Handled("erased", {"person": alias, "cause": call.cause}, {"erased": True})


def _check_nameless(person: str, cause: str) -> None:
    """Refuse a cause that names the person."""
    if re.search(rf"(?<!\w){re.escape(person)}(?!\w)", cause, re.IGNORECASE):
        raise Refusal(422, "`cause`: it stays in the log, so say it without the person's name")


def handle_look(at: DecisionInputs, call: calls.Look, _: None) -> Handled:
    """Note that somebody has looked."""
    return Handled("looked", {"what": call.what, **({} if call.person is None else {"person": call.person})})


def handle_learn(at: DecisionInputs, call: calls.Learn, _: None) -> Handled:
    """Begin to learn."""
    if at.state.learning is not None:
        raise Refusal(409, "learning is under way; wait until it has ended")
    return Handled("learning", {}, {"learning": at.number})


def handle_roll_back(at: DecisionInputs, call: calls.RollBack, _: None) -> Handled:
    """Go back to an earlier version."""
    earlier = [version.number for version in at.state.versions[:-1]]
    if call.version not in earlier:
        raise Refusal(409, f"`version`: only versions before the one in use can be used again: {earlier}")
    return Handled("rolled back", {"version": call.version, "cause": call.cause})


def handle_acknowledge(at: DecisionInputs, call: calls.Acknowledge, incident: int) -> Handled:
    """Note that somebody looks after an incident."""
    try:
        _, known = at.state.find_incident(incident)
    except KeyError:
        raise Refusal(404, f"there is no incident {incident}") from None
    if known.note is not None:
        raise Refusal(409, f"incident {incident} was acknowledged: {known.note:.100}")
    return Handled("acknowledged", {"incident": incident, "note": call.note})


def handle_publish(at: DecisionInputs, call: calls.Publish, _: None) -> Handled:
    """Use the model that waits; the event keeps the checks that were not green at that time."""
    waiting = at.state.waiting
    if waiting is None or waiting.number != call.version:
        found = "no model waits" if waiting is None else f"version {waiting.number} waits"
        raise Refusal(409, f"`version`: {found}")
    if not waiting.model:
        raise Refusal(409, "somebody who was learned from has withdrawn; wait for the next model")
    noted = {each.check: each for each in at.state.incidents}.values()
    facts = "check", "severity", "message"
    findings = [{name: getattr(each, name) for name in facts} for each in noted if each.severity != "green"]
    return Handled("published", {"version": call.version, "cause": call.cause, "findings": findings})


def handle_pause(at: DecisionInputs, call: calls.Pause, _: None) -> Handled:
    """Pause, resume or stop a person, an action, or the whole trial."""
    action = None if call.action is None else at.trial.actions.index(call.action)
    if call.person is not None:
        find_person(at, call.person)
        _check_nameless(call.person, call.cause)
        about, halt = "the person", at.state.people[call.person].paused
    elif action is not None:
        about, halt = f"the action {call.action}", at.state.halted_actions.get(action)
    else:
        about, halt = "the trial", at.state.halted
    if halt is not None and halt.kind == "stopped":
        raise Refusal(409, f"{about} is stopped, for good: {halt.cause}")
    if (call.name, halt is None) in (("pause", False), ("resume", True)):
        raise Refusal(409, f"{about} is {'not ' if halt is None else ''}paused")
    if action is not None and call.name != "resume":
        _check_left(at, action)
    done = {"pause": "paused", "resume": "resumed", "stop": "stopped"}[call.name]
    return Handled(done, {"person": call.person, "action": action, "cause": call.cause}, {"done": done})


def _check_left(at: DecisionInputs, action: int) -> None:
    """Refuse to close an action without which a state has none, or none without a weekly limit; or one never drawn."""
    trial = at.trial
    outside = None if trial.window is None else trial.actions.index(trial.window.outside)
    if action in (outside, trial.unavailable, trial.paused):
        when = "outside the window, during a pause, or for somebody who is not available"
        raise Refusal(409, f"`action`: the trial file takes it without a draw, {when}; stop the whole trial instead")
    left = trial.space.admissible.copy()
    left[:, [action, *at.state.halted_actions, *trial.limits.capped]] = False
    for state, row in zip(trial.states, left, strict=True):
        if not row.any():
            raise Refusal(409, f"`action`: no other action without a weekly limit is left in the state {state}")
