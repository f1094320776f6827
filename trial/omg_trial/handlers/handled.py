"""What every handler needs: the event and the answer that it returns, and the episode or person that it is about."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from omg_trial.contract import Refusal
from omg_trial.decisions import DecisionInputs
from omg_trial.episodes import Record


class Handled(NamedTuple):
    """The event that a call becomes, and what its answer says besides."""

    kind: str
    body: dict[str, Any]
    more: Mapping[str, Any] = MappingProxyType({})
    """Fields of the answer that are not in the body, or are there in another form."""


def find_episode(at: DecisionInputs, episode: int, *, is_open: bool = False) -> Record:
    """Return an episode by its number; `Refusal` if it is unknown, or closed and must not be."""
    record = at.state.episodes.get(episode)
    if record is None:
        raise Refusal(404, f"there is no episode {episode}")
    if is_open and record.closed is not None:
        raise Refusal(409, f"episode {episode} is closed")
    return record


def check_bound(at: DecisionInputs, fields: dict[str, Any], bound: str) -> None:
    """Refuse a call of somebody's phone about anybody else."""
    check_stays(at, bound)  # the episodes of those who have left are unknown by now
    episode = at.state.episodes.get(fields.get("episode", 0))
    if bound not in (fields.get("person"), None if episode is None else episode.person):
        raise Refusal(403, "the token is of the phone of another person")


def check_stays(at: DecisionInputs, person: str) -> None:
    """Refuse a call about somebody who has withdrawn."""
    if at.state.has_left(person):
        raise Refusal(410, "the person has withdrawn")


def find_person(at: DecisionInputs, person: str) -> list[int]:
    """Return the episodes of a person; `Refusal` if nobody has that name, or who had it has withdrawn."""
    check_stays(at, person)
    if person not in at.state.people:
        raise Refusal(404, "there is no such person")
    return at.state.of_person.get(person, [])
