"""Rules between the tables of a trial file: names that exist, probabilities that sum to 1, limits that fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from omg_cmdp.documents import FileError, nearest
from omg_cmdp.mdp.space import Space
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
        raise FileError(f"there is no {name!r}; {nearest(name, names)}", place)
    return names.index(name)


def by_name(table: Mapping[str, Value], names: tuple[str, ...], *place: str) -> dict[int, Value]:
    """Return a table by the indices of its names, in their order; an unknown name is refused."""
    return dict(sorted((index(name, names, *place, name), value) for name, value in table.items()))


def distribution(chances: Mapping[int, float], size: int, *place: str) -> FloatArray:
    """Return probabilities as an array, which must sum to 1."""
    row = np.array([chances.get(each, 0.0) for each in range(size)])
    if abs(row.sum() - 1.0) > 1e-9:
        raise FileError(f"the probabilities of `{'.'.join(place)}` must sum to 1, got {row.sum():g}", place)
    return row


def read_space(file: TrialFile) -> Space:
    """Return the space: sizes, start, and the mask (S, A) of actions that no state forbids."""
    states, actions = file.states.names, file.actions.names
    mask = np.ones((len(states), len(actions)), dtype=bool)
    for state, forbidden in by_name(file.states.forbidden, states, "states", "forbidden").items():
        place = ("states", "forbidden", states[state])
        mask[state, [index(action, actions, *place) for action in forbidden]] = False
        if not mask[state].any():
            raise FileError(f"every action is forbidden in the state {states[state]!r}; leave one", place)
    begin = by_name(file.states.start, states, "states", "start")
    start = distribution(begin, len(states), "states", "start").tolist() if begin else 0
    horizon = file.trial.horizon
    return Space(states=len(states), actions=len(actions), horizon=horizon, start=start, admissible=mask)


def read_fallback(file: TrialFile, space: Space) -> FloatArray:
    """Return the fixed probabilities (A,), which leave an admissible action in every state."""
    place = ("actions", "fallback")
    chances = distribution(by_name(file.actions.fallback, file.actions.names, *place), len(file.actions.names), *place)
    if ((chances * space.admissible).sum(axis=1) <= 0.0).any():
        raise FileError("`actions.fallback` must leave an admissible action in every state", place)
    return chances


def check_between(file: TrialFile) -> None:
    """Check the floor against the number of actions, the missing reward against the range, the window's action."""
    (low, high), missing, floor = file.rewards.range, file.learning.missing_reward, file.exploration.floor
    count, window = len(file.actions.names), file.window
    if missing is not None and not low <= missing <= high:
        place = ("learning", "missing_reward")
        raise FileError(f"`missing_reward` must lie in [{low:g}, {high:g}], got {missing:g}", place)
    if floor > 1.0 / count:
        rule = f"must be at most 1/{count}, as there are {count} actions"
        raise FileError(f"`floor` {rule}, got {floor:g}", ("exploration", "floor"))
    if window is not None:
        index(window.outside, file.actions.names, "window", "outside")
        if any(window.outside in forbidden for forbidden in file.states.forbidden.values()):
            raise FileError(f"some state forbids {window.outside!r}; choose another action", ("window", "outside"))


def read_features(context: ContextSection) -> FeatureMap | None:
    """Return how a record becomes a vector; None if contexts are labels."""
    if context.labels:
        return None
    columns = tuple(column.feature(name) for name, column in context.columns.items())
    try:
        return FeatureMap(columns=columns, crosses=context.crosses)
    except ValueError as error:
        raise FileError(str(error), ("context", "crosses")) from None


def read_limits(actions: Actions) -> Limits:
    """Return the limits of a week, which must be possible to keep."""
    at_most, at_least = ("actions", "most_per_week"), ("actions", "least_per_week")
    most = by_name(actions.most_per_week, actions.names, *at_most)
    least = by_name(actions.least_per_week, actions.names, *at_least)
    limits = Limits(most=most, least=least, decisions_per_week=actions.decisions_per_week)
    if len(most) == len(actions.names):
        raise FileError("`most_per_week` must leave an action without a limit, which is then taken", at_most)
    if least and limits.decisions_per_week is None:
        raise FileError("`least_per_week` needs `decisions_per_week`", at_least)
    needed = sum(least.values())
    if limits.decisions_per_week is not None and needed > limits.decisions_per_week:
        raise FileError(f"`least_per_week` must sum to at most `decisions_per_week`, got {needed}", at_least)
    for action, number in least.items():
        if number > most.get(action, number):
            name = actions.names[action]
            raise FileError(f"{name!r} must be at most {most[action]}, as in `most_per_week`", (*at_least, name))
    return limits
