"""What a call comes to: an event, and what is answered. Nothing is changed here; a call may be refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from omg_trial import calls
from omg_trial.calls import Refusal
from omg_trial.deciding import Situation, decided, drawn_actions, highest_rung
from omg_trial.episodes import Choice, Record
from omg_trial.study.trial import Trial


class Happening(NamedTuple):
    """An event that is to be, and what is answered."""

    kind: str
    body: dict[str, Any]
    answer: dict[str, Any]


def happening(at: Situation, call: calls.Call) -> Happening:
    """Return what a call comes to; `Refusal` if it is refused."""
    return _HANDLERS[type(call)](at, call)


def _open(at: Situation, call: calls.Open) -> Happening:
    if call.person in at.state.withdrawn:
        raise Refusal(410, "`person` must be in the study, got one who has withdrawn")
    for number in at.state.of_person.get(call.person, ()):
        if number in at.state.open:
            raise Refusal(409, f"`person` must have no open episode, got one with episode {number} under way")
    rung = highest_rung(at, call.context)
    number, policy = at.state.number + 1, rung.policy.tolist()
    made = {
        "version": at.state.version.number,
        "rung": rung.name,
        "cause": rung.cause,
        "certificate": rung.certificate,
        "policy": policy,
    }
    answer = {
        **made,
        "episode": number,
        "horizon": at.trial.space.horizon,
        "states": at.trial.states,
        "actions": at.trial.actions,
        "drawn": drawn_actions(at, call.person, number, rung.policy),
    }
    return Happening("opened", {**call._asdict(), **made, "gamma": rung.gamma}, answer)


def _decide(at: Situation, call: calls.Decide) -> Happening:
    record = _record(at, call.episode, is_open=True)
    if call.action is not None and not at.trial.space.admissible[call.state, call.action]:
        names = at.trial.states[call.state], at.trial.actions[call.action]
        raise Refusal(422, f"`action` must be admissible in the state {names[0]}, got {names[1]}")
    if call.step in record.choices:
        return _repeated(at.trial, call, record.choices[call.step])
    body = decided(at, record, call)
    return Happening("decided", body, _told(at.trial, body))


def _repeated(trial: Trial, call: calls.Decide, made: Choice) -> Happening:
    """Answer a step that was decided before, under another key: with the same action."""
    if call.state != made.state:
        names = trial.states[made.state], trial.states[call.state]
        raise Refusal(409, f"`state` must be {names[0]}, for which step {call.step} was decided, got {names[1]}")
    if call.action is not None and call.action != made.action:
        raise Refusal(409, f"`action` must be {trial.actions[made.action]}, as was decided, got another one")
    body = {"episode": call.episode, "step": call.step}
    return Happening("repeated", body, _told(trial, {**body, **made._asdict()}))


def _told(trial: Trial, body: dict[str, Any]) -> dict[str, Any]:
    fallback = {"rung": body["rung"], "cause": body["cause"], "rules": list(body["rules"])}
    return {
        "episode": body["episode"],
        "step": body["step"],
        "action": trial.actions[body["action"]],
        "probability": body["probability"],
        "version": body["version"],
        "fallback": fallback if body["rung"] != "plan" or body["rules"] else None,
    }


def _report(at: Situation, call: calls.Report) -> Happening:
    known = _record(at, call.episode).outcomes.get(call.step)
    if known is not None and known.contradicts(call.reward, call.next_state, call.revision):
        rule = f"be above {call.revision} for a correction of step {call.step}"
        raise Refusal(409, f"`revision` must {rule}, got {call.revision} with other values than before")
    answer = {"episode": call.episode, "step": call.step, "revision": call.revision}
    return Happening("reported", call._asdict(), answer)


def _close(at: Situation, call: calls.Close) -> Happening:
    _record(at, call.episode, is_open=True)
    return Happening("closed", call._asdict(), call._asdict())


def _record(at: Situation, episode: int, *, is_open: bool = False) -> Record:
    record = at.state.episodes.get(episode)
    if record is None:
        raise Refusal(404, f"`episode` must be one that was opened, got {episode}")
    if is_open and record.closed is not None:
        raise Refusal(409, f"`episode` must be open, got {episode}, which is closed")
    return record


def _withdraw(at: Situation, call: calls.Withdraw) -> Happening:
    if call.person not in at.state.of_person:
        status, got = (410, "one who has withdrawn") if call.person in at.state.withdrawn else (404, "another")
        raise Refusal(status, f"`person` must be in the study, got {got}")
    return Happening("withdrawn", call._asdict(), {"withdrawn": True})


def _learn(at: Situation, call: calls.Learn) -> Happening:
    if at.state.learning is not None:
        raise Refusal(409, "learning must have ended before it begins again, got learning under way")
    return Happening("learning", {}, {"learning": at.state.number + 1})


def _roll_back(at: Situation, call: calls.RollBack) -> Happening:
    earlier = [version.number for version in at.state.versions[:-1]]
    if call.version not in earlier:
        rule = f"be one of {earlier}, those before the one in use"
        raise Refusal(409, f"`version` must {rule}, got {call.version}")
    return Happening("rolled back", call._asdict(), call._asdict())


_HANDLERS: dict[type, Callable[..., Happening]] = {
    calls.Open: _open,
    calls.Decide: _decide,
    calls.Report: _report,
    calls.Close: _close,
    calls.Withdraw: _withdraw,
    calls.Learn: _learn,
    calls.RollBack: _roll_back,
}
