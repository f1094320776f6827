"""Enrolment, and whether anything may be decided for a person now."""

from __future__ import annotations

import datetime

from omg_trial.contract import OutsideConsent, Refusal, calls
from omg_trial.decisions import DecisionInputs, draw_arm
from omg_trial.handlers.handled import Handled, check_stays
from omg_trial.people.participants import Participant


def handle_enrol(at: DecisionInputs, call: calls.Enrol, _: None) -> Handled:
    """Take a person in, or change zone, consent and end; the arm stays, and so does what is not named."""
    check_stays(at, call.person)
    known = at.state.people.get(call.person)
    if known is None and call.arm is not None and at.trial.people.arms == "drawn":
        advice = "leave it out; only a trial founded with people.arms = 'given' takes one"
        raise Refusal(409, f"`arm`: arms are drawn in this trial; {advice}")
    was = known or Participant(arm=call.arm or draw_arm(at, call.person), zone=at.trial.zone.key, enrolled="")
    if call.arm not in (None, was.arm):
        raise Refusal(409, f"`arm`: the person is in the arm {was.arm}, for good")
    dates = calls.DATES - call.model_fields_set
    kept = {"arm": was.arm, "zone": call.zone or was.zone, **{name: getattr(was, name) for name in dates}}
    body = {**call.model_dump(), **kept, "given": call.arm}
    if None not in (body["consent_from"], body["consent_to"]) and body["consent_from"] > body["consent_to"]:
        raise Refusal(422, "`consent_to` must not be before `consent_from`, which was given before")
    return Handled("enrolled", body, {"enrolled": True})


def find_participant(at: DecisionInputs, person: str) -> Participant:
    """Return a participant, or what an unknown person would be; `Refusal` if the file asks for an enrolment before."""
    known = at.state.people.get(person)
    if known is None:
        if at.trial.people.roster == "required":
            raise Refusal(404, "`person`: nobody with this name was enrolled; perhaps it is misspelt")
        known = Participant(arm=draw_arm(at, person), zone=at.trial.zone.key, enrolled="")
    return known


def check_day(at: DecisionInputs, person: Participant, now: datetime.datetime) -> None:
    """Refuse what lies after the end of the trial, or outside the person's consent."""
    day = person.local(now).date()
    if at.trial.end is not None and day > at.trial.end:
        raise Refusal(409, f"the trial has ended; its last day was {at.trial.end.isoformat()}")
    if (why := person.outside(day.isoformat())) is not None:
        raise OutsideConsent(409, f"nothing may be decided for the person now: {why}")


def check_halt(at: DecisionInputs, person: Participant) -> None:
    """Refuse a decision after a stop, and during a pause if the file names no action for it."""
    halt = at.state.halted or person.paused
    if halt is not None and (halt.kind == "stopped" or at.trial.paused is None):
        raise Refusal(409, f"{'the trial' if at.state.halted else 'the person'} is {halt.kind}: {halt.cause}")
