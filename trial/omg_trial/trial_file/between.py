"""Rules between the tables of a trial file: names that exist, probabilities that sum to 1, limits that fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from omg_cmdp.documents import StudyError, nearest
from omg_cmdp.oracles.feature_map import FeatureMap
from omg_cmdp.validation import FloatArray
from omg_trial.trial_file.sections import Actions, ContextSection, TrialFile

Value = TypeVar("Value")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """How often actions are taken, at most and at least, for each person and week; by the index of the action."""

    most: Mapping[int, int]
    least: Mapping[int, int]
    decisions_per_week: int | None


def index(name: str, names: tuple[str, ...], *place: str) -> int:
    """Return the index of a name; an unknown one is refused with the nearest known one."""
    if name not in names:
        raise StudyError(f"there is no {name!r}; {nearest(name, names)}", place)
    return names.index(name)


def by_name(table: Mapping[str, Value], names: tuple[str, ...], *place: str) -> dict[int, Value]:
    """Return a table by the indices of its names, in their order; an unknown name is refused."""
    return dict(sorted((index(name, names, *place, name), value) for name, value in table.items()))


def distribution(chances: Mapping[int, float], size: int, *place: str) -> FloatArray:
    """Return probabilities as an array, which must sum to 1."""
    row = np.array([chances.get(each, 0.0) for each in range(size)])
    if abs(row.sum() - 1.0) > 1e-9:
        raise StudyError(f"the probabilities of `{'.'.join(place)}` must sum to 1, got {row.sum():g}", place)
    return row


def read_admissible(file: TrialFile) -> Any:
    """Return the mask (S, A) of actions that no state forbids."""
    mask = np.ones((len(file.states.names), len(file.actions.names)), dtype=bool)
    for state, actions in by_name(file.states.forbidden, file.states.names, "states", "forbidden").items():
        place = ("states", "forbidden", file.states.names[state])
        mask[state, [index(action, file.actions.names, *place) for action in actions]] = False
        if not mask[state].any():
            raise StudyError(f"every action is forbidden in the state {file.states.names[state]!r}; leave one", place)
    return mask


def read_features(context: ContextSection) -> FeatureMap | None:
    """Return how a record becomes a vector; None if contexts are labels."""
    if context.labels:
        return None
    columns = tuple(column.feature(name) for name, column in context.columns.items())
    try:
        return FeatureMap(columns=columns, crosses=context.crosses)
    except ValueError as error:
        raise StudyError(str(error), ("context", "crosses")) from None


def read_limits(actions: Actions) -> Limits:
    """Return the limits of a week, which must be possible to keep."""
    most = by_name(actions.most_per_week, actions.names, "actions", "most_per_week")
    least = by_name(actions.least_per_week, actions.names, "actions", "least_per_week")
    limits = Limits(most=most, least=least, decisions_per_week=actions.decisions_per_week)
    at_least = ("actions", "least_per_week")
    if len(most) == len(actions.names):
        raise StudyError(
            "`most_per_week` must leave an action without a limit, which is then taken", ("actions", "most_per_week")
        )
    if least and limits.decisions_per_week is None:
        raise StudyError("`least_per_week` needs `decisions_per_week`", at_least)
    if limits.decisions_per_week is not None and sum(least.values()) > limits.decisions_per_week:
        raise StudyError(
            f"`least_per_week` must sum to at most `decisions_per_week`, got {sum(least.values())}", at_least
        )
    for action, number in least.items():
        if number > most.get(action, number):
            name = actions.names[action]
            raise StudyError(f"{name!r} must be at most {most[action]}, as in `most_per_week`", (*at_least, name))
    return limits
