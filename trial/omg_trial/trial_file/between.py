"""Rules between the tables of a trial file: names that exist, probabilities that sum to 1, limits that fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from omg_cmdp.documents import FileError, nearest
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.feature_map import FeatureMap
from omg_cmdp.validation import FloatArray
from omg_trial.trial_file.floor import Floor
from omg_trial.trial_file.sections import ContextSection, TrialFile

Value = TypeVar("Value")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """How often actions are taken, at most and at least, for each person and week; by the index of the action."""

    most: Mapping[int, int]
    least: Mapping[int, int]
    mean: Mapping[int, float]
    """The most that is expected; empty if nobody says how many decisions a week has."""
    decisions_per_week: int | None

    @property
    def any(self) -> bool:
        """Whether there are limits at all."""
        return bool(self.most or self.least or self.mean)

    @property
    def capped(self) -> frozenset[int]:
        """Actions that are taken at most a number of times."""
        return frozenset({*self.most, *self.mean})


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
    """Check the floor against the number of actions, the missing reward against the range, actions without a draw."""
    (low, high), missing, floor = file.rewards.range, file.learning.missing_reward, file.exploration.floor
    count, window, actions = len(file.actions.names), file.window, file.actions
    if missing is not None and not low <= missing <= high:
        place = ("learning", "missing_reward")
        raise FileError(f"`missing_reward` must lie in [{low:g}, {high:g}], got {missing:g}", place)
    if floor > 1.0 / count:
        rule = f"must be at most 1/{count}, as there are {count} actions"
        raise FileError(f"`floor` {rule}, got {floor:g}", ("exploration", "floor"))
    undrawn = {("actions", "unavailable"): actions.unavailable, ("actions", "paused"): actions.paused}
    if window is not None:
        undrawn["window", "outside"] = window.outside
    for place, name in undrawn.items():
        if name is not None:
            index(name, actions.names, *place)
            if any(name in forbidden for forbidden in file.states.forbidden.values()):
                raise FileError(f"some state forbids {name!r}; choose another action", place)
            if name in {**actions.most_per_week, **actions.mean_per_week}:
                raise FileError(f"{name!r} has a weekly limit, which cannot hold here; choose another action", place)


def read_features(context: ContextSection) -> FeatureMap | None:
    """Return how a record becomes a vector; None if contexts are labels."""
    if context.labels:
        return None
    columns = tuple(column.feature(name) for name, column in context.columns.items())
    try:
        return FeatureMap(columns=columns, crosses=context.crosses)
    except ValueError as error:
        raise FileError(str(error), ("context", "crosses")) from None


class EpisodeBudgets(NamedTuple):
    """What actions cost, and what an episode may cost in expectation; J = 0 without budgets."""

    names: tuple[str, ...]
    costs: FloatArray
    """(J, S, A), without the floor."""
    most: FloatArray
    """(J,)"""

    def expected(self, state: int, chances: Sequence[float]) -> FloatArray:
        """Return the expected costs (J,) of a decision with these probabilities (A,)."""
        return np.asarray(self.costs[:, state] @ np.asarray(chances))


def read_budgets(file: TrialFile, space: Space, floor: Floor) -> EpisodeBudgets:
    """Return the budgets of an episode, if any, which plans can keep beside the floor whatever states follow."""
    costs = np.zeros((len(file.budgets), space.states, space.actions))
    for table, (name, budget) in zip(costs, file.budgets.items(), strict=True):
        for action, cost in by_name(budget.costs, file.actions.names, "budgets", name, "costs").items():
            table[:, action] = cost
        cheapest = np.where(space.admissible, floor.rewards(table), np.inf).min(axis=1)
        if (least := space.horizon * float(cheapest.max())) >= budget.most:
            made = f"the floor and the cheapest actions may cost {least:g} in an episode"
            raise FileError(f"{made}: give more than that, or lower the floor", ("budgets", name, "most"))
    return EpisodeBudgets(tuple(file.budgets), costs, np.array([each.most for each in file.budgets.values()]))


def read_limits(file: TrialFile, space: Space) -> Limits:
    """Return the limits of a week, which must be possible to keep, also beside the floor."""
    actions, names, floor = file.actions, file.actions.names, file.exploration.floor
    at_most, at_least, at_mean = (("actions", f"{word}_per_week") for word in ("most", "least", "mean"))
    most = by_name(actions.most_per_week, names, *at_most)
    least, mean = by_name(actions.least_per_week, names, *at_least), by_name(actions.mean_per_week, names, *at_mean)
    week = actions.decisions_per_week
    for given, place in ((least, at_least), (mean, at_mean)):
        if given and week is None:
            raise FileError(f"`{place[1]}` needs `decisions_per_week`", place)
    for action, number in mean.items():
        if number > most.get(action, number):
            raise FileError(f"{names[action]!r} must be at most {most[action]}, as in `most_per_week`", at_mean)
    spread = {} if week is None else {**most, **mean}
    limits = Limits(most=most, least=least, mean=spread, decisions_per_week=week)
    for state, row in enumerate(space.admissible):
        if limits.capped and not np.delete(row, list(limits.capped)).any():
            rule = "must leave an action without a limit, which is then taken"
            raise FileError(f"`most_per_week` and `mean_per_week` {rule}, in {file.states.names[state]!r} too", at_most)
    for action, number in spread.items():
        if week is not None and floor * week > number * (1.0 + 1e-9):
            made = f"the floor alone makes {floor * week:g} of {names[action]!r} in {week} decisions"
            raise FileError(f"{made}, and its limit is {number:g}: lower the floor or raise the limit", at_most)
    needed = sum(least.values())
    if week is not None and needed > week:
        raise FileError(f"`least_per_week` must sum to at most `decisions_per_week`, got {needed}", at_least)
    for action, number in least.items():
        if number > min(most.get(action, number), spread.get(action, number)):
            name, highest = names[action], spread[action]
            raise FileError(f"{name!r} must be at most {highest:g}, its limit above", (*at_least, name))
    return limits
