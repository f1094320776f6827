"""All calls, by name: what handles each, what it answers, its path over HTTP, and whose tokens may make it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import BaseModel

from omg_trial.contract import answers, calls
from omg_trial.decisions import DecisionInputs
from omg_trial.handlers import episodes, people, steering
from omg_trial.handlers.handled import Handled

APP, TEAM = ("app", "phone"), ("administrator",)


class Route(NamedTuple):
    """The way of a call through the service."""

    handler: Callable[..., Handled]
    answer: type[BaseModel]
    path: str | None
    """None for a call that only the service makes."""
    roles: tuple[str, ...]


def handle(at: DecisionInputs, call: calls.Call, target: int | str | None) -> tuple[str, dict[str, Any], BaseModel]:
    """Return kind and body of the event that a call becomes, and its answer; `Refusal` if it is refused.

    The answer has some of the fields of the body, those that the handler adds, and the number of the event.
    """
    route = ROUTES[call.name]
    kind, body, more = route.handler(at, call, target)
    return kind, body, route.answer(**{**body, **more, "event": at.number})


ROUTES = {
    "open": Route(episodes.handle_open, answers.Opened, "/v1/episodes", APP),
    "decide": Route(episodes.handle_decide, answers.Decided, "/v1/episodes/{episode}/decisions", APP),
    "report": Route(episodes.handle_report, answers.Reported, "/v1/episodes/{episode}/outcomes", APP),
    "close": Route(episodes.handle_close, answers.Closed, "/v1/episodes/{episode}/close", APP),
    "enrol": Route(people.handle_enrol, answers.Enrolled, "/v1/people", ("app",)),
    "pause": Route(steering.handle_pause, answers.Steered, "/v1/pause", TEAM),
    "resume": Route(steering.handle_pause, answers.Steered, "/v1/resume", TEAM),
    "stop": Route(steering.handle_pause, answers.Steered, "/v1/stop", TEAM),
    "publish": Route(steering.handle_publish, answers.Published, "/v1/publish", TEAM),
    "withdraw": Route(steering.handle_withdraw, answers.Withdrawn, "/v1/people/{person}/withdraw", TEAM),
    "erase": Route(steering.handle_erase, answers.Erased, "/v1/people/{person}/erase", TEAM),
    "learn": Route(steering.handle_learn, answers.LearningStarted, "/v1/learn", TEAM),
    "roll back": Route(steering.handle_roll_back, answers.RolledBack, "/v1/roll-back", TEAM),
    "acknowledge": Route(
        steering.handle_acknowledge, answers.Acknowledged, "/v1/incidents/{incident}/acknowledge", TEAM
    ),
    "look": Route(steering.handle_look, answers.InLog, None, ()),
}
