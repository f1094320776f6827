"""Calls about an episode: open it, decide a step, report an outcome, close it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from omg_trial.contract import Refusal, answers, calls
from omg_trial.contract.models import context_text
from omg_trial.decisions import (
    ChosenPolicy,
    DecisionInputs,
    PolicySource,
    choose_policy,
    decide_step,
    decided_at,
    draw_ahead,
    grant_allowance,
)
from omg_trial.episodes import Record, StepDecision
from omg_trial.handlers.allowances import check_allowance, sign_allowance
from omg_trial.handlers.handled import Handled, check_stays, find_episode
from omg_trial.handlers.people import check_day, check_halt, find_participant
from omg_trial.people.participants import Participant, week_of
from omg_trial.trial_file.trial import Trial


def handle_open(at: DecisionInputs, call: calls.Open, _: None) -> Handled:
    """Begin an episode, or answer again for an occasion that exists."""
    check_stays(at, call.person)
    records = [at.state.episodes[number] for number in at.state.of_person.get(call.person, ())]
    context, person = context_text(at.trial, call.context), find_participant(at, call.person)
    check_day(at, person, at.now)
    check_halt(at, person)
    for record in records:
        if call.occasion is not None and record.occasion == call.occasion:
            return _reopen(at, record, context, call.available)
    for record in records:
        if record.closed is None:
            raise Refusal(409, f"the person has episode {record.number} under way; go on with it, or close it first")
    chosen, occasion = choose_policy(at, context, person.arm), call.occasion or at.state.next_occasion(call.person)
    made = _format_policy(at, chosen)
    about = {"person": call.person, "occasion": occasion, "context": context, "arm": person.arm, "zone": person.zone}
    # The number of the event is the name of the episode: unique for ever, without a counter of its own.
    allowance = grant_allowance(at, person, call.person, occasion, chosen.policy) if call.available else None
    more = _format_opening(at, {**about, **made, "allowance": allowance}, at.number, person, call.available)
    asked = {"available": call.available, "device_time": call.device_time}
    return Handled("opened", {**about, **made, **asked, "allowance": allowance and allowance._asdict()}, more)


def _reopen(at: DecisionInputs, record: Record, context: str, available: bool) -> Handled:
    """Answer an opening of an occasion that exists as it was answered before; a decision point is never made anew."""
    if record.policy is None:
        raise Refusal(409, f"the occasion of this person is episode {record.number}, which is closed")
    if record.context != context:
        raise Refusal(409, "`context`: the occasion was opened with another one")
    if record.available != available:
        raise Refusal(409, "`available`: the occasion was opened with another one")
    person, made = at.state.people[record.person], vars(record)
    if record.allowance is not None and not record.allowance.holds(at.now, week_of(person.local(at.now))):
        made = {**made, "allowance": None}
    more = _format_opening(at, made, record.number, person, available)
    return Handled("reopened", {"episode": record.number}, more)


def _format_opening(
    at: DecisionInputs, made: Mapping[str, Any], episode: int, person: Participant, available: bool
) -> dict[str, Any]:
    """Return the answer; an app without a network is told no draws if nothing would be drawn."""
    name, occasion, allowance = made["person"], made["occasion"], made["allowance"]
    policy = made["policy"] if allowance is None else allowance.policy
    halted = at.state.halted or person.paused or at.state.halted_actions or not available
    ahead = None if halted else draw_ahead(at, name, occasion, np.array(policy), allowed=allowance is not None)
    allowed = None
    if allowance is not None:
        signature = sign_allowance(at, episode, name, occasion, allowance.until)
        allowed = {"until": allowance.until, "signature": signature}
    return {
        **{each: made[each] for each in ("version", "source", "cause", "certificate")},
        "policy": policy,
        "allowance": allowed,
        "episode": episode,
        "horizon": at.trial.space.horizon,
        "states": at.trial.states,
        "actions": at.trial.actions,
        "drawn": ahead,
    }


def show_policy(at: DecisionInputs, call: calls.AskPolicy) -> answers.PolicyAnswer:
    """Return the policy that an episode would begin with; nothing happens."""
    return answers.PolicyAnswer(**_format_policy(at, choose_policy(at, context_text(at.trial, call.context))))


def _format_policy(at: DecisionInputs, chosen: ChosenPolicy) -> dict[str, Any]:
    return {**chosen._asdict(), "version": at.state.version.number, "policy": chosen.policy.tolist()}


def handle_decide(at: DecisionInputs, call: calls.Decide, episode: int) -> Handled:
    """Decide a step, or answer as it was decided."""
    record, trial = find_episode(at, episode, is_open=True), at.trial
    state = trial.states.index(call.state)
    if call.action is not None and not trial.offline:
        raise Refusal(422, "`action`: no app of this trial acts without a network, as its file does not say `offline`")
    if call.action is not None and not trial.space.admissible[state, trial.actions.index(call.action)]:
        raise Refusal(422, f"`action`: {call.action} is forbidden in the state {call.state}")
    if call.action is not None and not record.available:
        raise Refusal(422, "`action`: is for what was drawn, and the episode was opened for somebody not available")
    if call.step in record.choices:
        _check_repeated(trial, call, made := record.choices[call.step])
        asked = {name: vars(call)[name] for name in ("step", "available", "device_time", "allowance")}
        known = made._asdict()
        return Handled("repeated", {"episode": episode, **asked}, {**known, **_format_decision(at, known)})
    check_allowance(at, record, call)
    person = at.state.people[record.person]
    check_day(at, person, decided_at(at, record, call))
    if call.action is None:  # what an app did without a network is kept: it had not heard of a pause
        check_halt(at, person)
    body = decide_step(at, record, call)
    return Handled("decided", body, _format_decision(at, body))


def _check_repeated(trial: Trial, call: calls.Decide, made: StepDecision) -> None:
    """Refuse a step that was decided before, under another key, for another state or with another action."""
    if call.state != (state := trial.states[made.state]):
        raise Refusal(409, f"`state`: step {call.step} was decided for the state {state}")
    done = None if made.action is None else trial.actions[made.action]
    if call.action is not None and call.action != done:
        raise Refusal(409, f"`action`: step {call.step} was decided, with the action {done or 'that is none'}")


def _format_decision(at: DecisionInputs, made: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the answer says in another form than the event."""
    is_plan = made["source"] == PolicySource.PLAN and not made["rules"]
    fallback = None if is_plan else {name: made[name] for name in ("source", "cause", "rules")}
    return {"action": at.trial.action_name(made["action"]), "fallback": fallback}


def handle_report(at: DecisionInputs, call: calls.Report, episode: int) -> Handled:
    """Keep an outcome; a correction has a higher revision."""
    known = find_episode(at, episode).outcomes.get(call.step)
    next_state = None if call.next_state is None else at.trial.states.index(call.next_state)
    if known is not None and known.contradicts(call.reward, next_state, call.revision):
        rule = f"step {call.step} was reported with other values; a correction needs one above {call.revision}"
        raise Refusal(409, f"`revision`: {rule}")
    return Handled("reported", {**call.model_dump(), "episode": episode, "next_state": next_state})


def handle_close(at: DecisionInputs, call: calls.Close, episode: int) -> Handled:
    """End an episode."""
    find_episode(at, episode, is_open=True)  # closing twice, under two keys, is a mistake of the app
    return Handled("closed", {"episode": episode, "cause": call.cause})
