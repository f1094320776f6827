"""Turn a call into an event and an answer. Nothing is changed here; a call may be refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel

from omg_trial.contract import Refusal, answers, calls, context_text
from omg_trial.decisions import ChosenPolicy, DecisionInputs, PolicySource, choose_policy, decide_step, draw_ahead
from omg_trial.episodes import Record, StepDecision
from omg_trial.trial_file.trial import Trial


class Handled(NamedTuple):
    """The event that a call becomes, and its answer."""

    kind: str
    body: dict[str, Any]
    answer: BaseModel


def handle(at: DecisionInputs, call: calls.Call, target: int | str | None) -> Handled:
    """Return the event and the answer of a call about an episode or a person; `Refusal` if it is refused."""
    return _HANDLERS[call.name](at, call, target)


def _open(at: DecisionInputs, call: calls.Open, _: None) -> Handled:
    if call.person in at.state.withdrawn:
        raise Refusal(410, "the person has withdrawn")
    records = [at.state.episodes[number] for number in at.state.of_person.get(call.person, ())]
    context = context_text(at.trial, call.context)
    for record in records:
        if call.occasion is not None and record.occasion == call.occasion:
            return _reopen(at, record, context)
    for record in records:
        if record.closed is None:
            raise Refusal(409, f"the person has episode {record.number} under way; go on with it, or close it first")
    chosen, occasion = choose_policy(at, context), call.occasion or at.state.next_occasion(call.person)
    made = _format_policy(at, chosen)
    about = {"person": call.person, "occasion": occasion, "context": context}
    # The number of the event is the name of the episode: unique for ever, without a counter of its own.
    answer = _format_opening(at, made, at.number, draw_ahead(at, call.person, occasion, chosen.policy))
    return Handled("opened", {**about, **made, "gamma": chosen.gamma}, answer)


def _reopen(at: DecisionInputs, record: Record, context: str) -> Handled:
    """Answer an opening of an occasion that exists as it was answered before; a decision point is never made anew."""
    if record.policy is None:
        raise Refusal(409, f"the occasion of this person is episode {record.number}, which is closed")
    if record.context != context:
        raise Refusal(409, "`context`: the occasion was opened with another one")
    names = ("version", "source", "cause", "certificate", "policy")
    drawn = draw_ahead(at, record.person, record.occasion, np.array(record.policy))
    answer = _format_opening(at, {name: vars(record)[name] for name in names}, record.number, drawn)
    return Handled("reopened", {"episode": record.number}, answer)


def _format_opening(
    at: DecisionInputs, made: dict[str, Any], episode: int, drawn: list[list[str]] | None
) -> answers.Opened:
    return answers.Opened(
        **made,
        episode=episode,
        event=at.number,
        horizon=at.trial.space.horizon,
        states=list(at.trial.states),
        actions=list(at.trial.actions),
        drawn=drawn,
    )


def show_policy(at: DecisionInputs, call: calls.AskPolicy) -> answers.PolicyAnswer:
    """Return the policy that an episode would begin with; nothing happens."""
    return answers.PolicyAnswer(**_format_policy(at, choose_policy(at, context_text(at.trial, call.context))))


def _format_policy(at: DecisionInputs, chosen: ChosenPolicy) -> dict[str, Any]:
    return {
        "version": at.state.version.number,
        "source": chosen.source,
        "cause": chosen.cause,
        "certificate": chosen.certificate,
        "policy": chosen.policy.tolist(),
    }


def _decide(at: DecisionInputs, call: calls.Decide, episode: int) -> Handled:
    record, trial = find_episode(at, episode, is_open=True), at.trial
    state = trial.states.index(call.state)
    if call.action is not None and not trial.space.admissible[state, trial.actions.index(call.action)]:
        raise Refusal(422, f"`action`: {call.action} is forbidden in the state {call.state}")
    if call.step in record.choices:
        _check_repeated(trial, call, made := record.choices[call.step])
        body: dict[str, Any] = {"episode": episode, "step": call.step}
        return Handled("repeated", body, _format_decision(at, {**body, **made._asdict()}))
    body = decide_step(at, record, call)
    return Handled("decided", body, _format_decision(at, body))


def _check_repeated(trial: Trial, call: calls.Decide, made: StepDecision) -> None:
    """Refuse a step that was decided before, under another key, for another state or with another action."""
    if call.state != (state := trial.states[made.state]):
        raise Refusal(409, f"`state`: step {call.step} was decided for the state {state}")
    if call.action is not None and call.action != (action := trial.actions[made.action]):
        raise Refusal(409, f"`action`: step {call.step} was decided, with the action {action}")


def _format_decision(at: DecisionInputs, body: Mapping[str, Any]) -> answers.Decided:
    fallback = answers.Fallback(source=body["source"], cause=body["cause"], rules=list(body["rules"]))
    return answers.Decided(
        episode=body["episode"],
        event=at.number,
        step=body["step"],
        action=at.trial.actions[body["action"]],
        probability=body["probability"],
        version=body["version"],
        fallback=fallback if body["source"] != PolicySource.PLAN or body["rules"] else None,
    )


def _report(at: DecisionInputs, call: calls.Report, episode: int) -> Handled:
    known = find_episode(at, episode).outcomes.get(call.step)
    next_state = None if call.next_state is None else at.trial.states.index(call.next_state)
    if known is not None and known.contradicts(call.reward, next_state, call.revision):
        rule = f"step {call.step} was reported with other values; a correction needs one above {call.revision}"
        raise Refusal(409, f"`revision`: {rule}")
    answer = answers.Reported(episode=episode, event=at.number, step=call.step, revision=call.revision)
    return Handled("reported", {**call.model_dump(), "episode": episode, "next_state": next_state}, answer)


def _close(at: DecisionInputs, call: calls.Close, episode: int) -> Handled:
    find_episode(at, episode, is_open=True)  # closing twice, under two keys, is a mistake of the app
    body = {"episode": episode, "cause": call.cause}
    return Handled("closed", body, answers.Closed(episode=episode, event=at.number, cause=call.cause))


def find_episode(at: DecisionInputs, episode: int, *, is_open: bool = False) -> Record:
    """Return an episode by its number; `Refusal` if it is unknown, or closed and must not be."""
    record = at.state.episodes.get(episode)
    if record is None:
        raise Refusal(404, f"there is no episode {episode}")
    if is_open and record.closed is not None:
        raise Refusal(409, f"episode {episode} is closed")
    return record


def find_person(at: DecisionInputs, person: str) -> list[int]:
    """Return the episodes of a person; `Refusal` if nobody has that name, or who had it has withdrawn."""
    if person in at.state.withdrawn:
        raise Refusal(410, "the person has withdrawn")
    if person not in at.state.of_person:
        raise Refusal(404, "there is no such person")
    return at.state.of_person[person]


def _withdraw(at: DecisionInputs, call: calls.Withdraw, person: str) -> Handled:
    find_person(at, person)
    return Handled("withdrawn", {"person": person}, answers.Withdrawn(withdrawn=True, event=at.number))


def _learn(at: DecisionInputs, call: calls.Learn, _: None) -> Handled:
    if at.state.learning is not None:
        raise Refusal(409, "learning is under way; wait until it has ended")
    return Handled("learning", {}, answers.LearningStarted(learning=at.number, event=at.number))


def _roll_back(at: DecisionInputs, call: calls.RollBack, _: None) -> Handled:
    earlier = [version.number for version in at.state.versions[:-1]]
    if call.version not in earlier:
        raise Refusal(409, f"`version`: only versions before the one in use can be used again: {earlier}")
    return Handled("rolled back", {"version": call.version}, answers.RolledBack(version=call.version, event=at.number))


_HANDLERS: dict[str, Callable[..., Handled]] = {
    "open": _open,
    "decide": _decide,
    "report": _report,
    "close": _close,
    "withdraw": _withdraw,
    "learn": _learn,
    "roll back": _roll_back,
}
