"""What the study file of a trial says, checked: the space with its names, the agent, and what is pre-specified."""

from __future__ import annotations

import dataclasses
import functools
import json
import zoneinfo
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp import oracles
from omg_cmdp.agents.omg import OMG
from omg_cmdp.documents import Document, StudyError
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.feature_map import Category, FeatureMap, Number
from omg_cmdp.validation import FloatArray, file_path, instance_of
from omg_trial.log.events import digest
from omg_trial.study.floor import Floor, FlooredDynamics, FlooredRewards
from omg_trial.study.limits import Limits, Window, read_limits, read_window
from omg_trial.study.table import Table
from omg_trial.study.thresholds import Watch, read_watch

REWARDS = {"linear": oracles.LinearRewards, "counts": oracles.CountRewards}
DYNAMICS = {"softmax": oracles.SoftmaxDynamics, "counts": oracles.CountDynamics}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trial:
    """A study file for live decisions."""

    name: str
    states: tuple[str, ...]
    actions: tuple[str, ...]
    space: Space
    features: FeatureMap | None
    """How a record becomes a vector; None if contexts are labels."""
    labels: tuple[str, ...]
    """The contexts, if they are labels."""
    reward_range: tuple[float, float]
    return_range: tuple[float, float] | None
    reward_oracle: tuple[str, Mapping[str, Any]]
    dynamics_oracle: tuple[str, Mapping[str, Any]]
    gamma: str | float
    floor: Floor
    fallback: FloatArray
    """Fixed probabilities (A,), when there is no plan."""
    replan: bool
    """Whether every step is decided by the newest model, instead of the policy that the episode began with."""
    learn_after: int
    """Learning begins by itself after so many closed episodes; 0 for never."""
    missing_reward: float | None
    """What stands for a reward that never came; None leaves it unknown."""
    zone: zoneinfo.ZoneInfo
    window: Window | None
    limits: Limits
    watch: Watch
    content: Mapping[str, Any] = dataclasses.field(repr=False)
    """The file, as it was read."""

    @functools.cached_property
    def digest(self) -> str:
        """What tells this study from any other: a database belongs to one. What is watched may change under way."""
        return digest({name: part for name, part in self.content.items() if name != "watch"})

    @classmethod
    def read(cls, path: str | Path) -> Trial:
        """Return what the file says; `StudyError` names the line that is wrong."""
        file = file_path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StudyError(f"{file}: cannot be read ({error})") from None
        return cls.parse(text, str(file))

    @classmethod
    def parse(cls, text: str, name: str = "study.toml") -> Trial:
        """Return what the text of a file says."""
        instance_of("text", text, str)
        instance_of("name", name, str)
        document = Document(text, (), name)
        try:
            return _trial(Table(document.content))
        except StudyError as error:
            raise document.located(error) from None

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Trial:
        """Return the trial whose file has this content, such as the first event of a log holds."""
        instance_of("content", content, Mapping)
        return _trial(Table(dict(content)))

    def agent(self) -> OMG:
        """Return an agent that has learned nothing."""
        known: dict[str, Any] = {
            "states": self.space.states,
            "actions": self.space.actions,
            "horizon": self.space.horizon,
        }
        if self.features is not None:
            described = {"features": self.features, "dimension": self.features.dimension}
        else:
            described = {"contexts": self.labels}
        rewards = _made(REWARDS, self.reward_oracle, {**known, **described})
        dynamics = _made(DYNAMICS, self.dynamics_oracle, {**known, **described})
        if self.floor.probability:
            rewards, dynamics = FlooredRewards(rewards, self.floor), FlooredDynamics(dynamics, self.floor)
        ranges: dict[str, Any] = {"reward_range": self.reward_range, "return_range": self.return_range}
        return OMG(self.space, rewards, dynamics, self.gamma, **ranges)

    def fixed_policy(self) -> FloatArray:
        """Return the policy (H, S, A) of the fallback probabilities, over admissible actions."""
        rows = self.fallback * self.space.admissible
        return np.tile(rows / rows.sum(axis=1, keepdims=True), (self.space.horizon, 1, 1))


def _plain(content: dict[str, Any]) -> dict[str, Any]:
    """Return the file as JSON has it: times are text."""
    try:
        made: dict[str, Any] = json.loads(json.dumps(content, default=str, allow_nan=False))
        return made
    except ValueError:
        raise StudyError("all numbers must be finite") from None


def _made(kinds: Mapping[str, Callable[..., Any]], wanted: tuple[str, Mapping[str, Any]], known: dict[str, Any]) -> Any:
    kind, options = wanted
    if kind == "counts":
        known = {name: value for name, value in known.items() if name not in ("features", "dimension")}
    return kinds[kind](**known, **options)


def _trial(table: Table) -> Trial:
    head = table.table("study")
    states, actions = table.table("states"), table.table("actions")
    of_states, of_actions = states.names("names"), actions.names("names")
    horizon = head.integer("horizon", least=1)
    space = Space(
        states=len(of_states),
        actions=len(of_actions),
        horizon=horizon,
        start=_start(states, of_states),
        admissible=_admissible(states.table("forbidden", optional=True), of_states, of_actions),
    )
    features, labels = _contexts(table.table("context"))
    rewards, dynamics = table.table("rewards"), table.table("dynamics")
    fixed = actions.table("fallback")
    fallback = np.array([fixed.number(name, 0.0, low=0.0, high=1.0) for name in of_actions])
    if abs(fallback.sum() - 1.0) > 1e-9:
        raise fixed.error("", f"must sum to 1, got {fallback.sum():g}")
    if ((fallback * space.admissible).sum(axis=1) <= 0.0).any():
        raise fixed.error("", "must leave an admissible action in every state")
    exploration = table.table("exploration", optional=True)
    learning = table.table("learning", optional=True)
    low, high = rewards.pair("range", (0.0, 1.0))
    usual = ("counts", "counts") if features is None else ("linear", "softmax")
    most_floor = 1.0 / len(of_actions)
    trial = Trial(
        name=head.text("name"),
        states=of_states,
        actions=of_actions,
        space=space,
        features=features,
        labels=labels,
        reward_range=(low, high),
        return_range=rewards.pair("return_range", None),
        reward_oracle=(rewards.choice("oracle", REWARDS, usual[0]), rewards.options("options")),
        dynamics_oracle=(dynamics.choice("oracle", DYNAMICS, usual[1]), dynamics.options("options")),
        gamma=exploration.gamma("gamma"),
        floor=Floor(space, exploration.number("floor", 0.0, low=0.0, high=most_floor)),
        fallback=fallback,
        replan=learning.choice("replan", ("episode", "step"), "episode") == "step",
        learn_after=learning.integer("after_episodes", 1, least=0),
        missing_reward=learning.number("missing_reward", None, low=low, high=high),
        zone=_zone(head),
        window=read_window(table.table("window", optional=True), of_actions, space),
        limits=read_limits(actions, of_actions),
        watch=read_watch(table.table("watch", optional=True)),
        content=_plain(table.content),
    )
    table.finish()
    try:
        trial.agent()
    except (TypeError, ValueError) as error:
        raise StudyError(str(error), ("rewards",)) from None
    return trial


def _start(table: Table, names: tuple[str, ...]) -> ArrayLike:
    begin = table.table("start", optional=True)
    if not begin.content:
        return 0
    chances = [begin.number(name, 0.0, low=0.0, high=1.0) for name in names]
    if abs(sum(chances) - 1.0) > 1e-9:
        raise begin.error("", f"must sum to 1, got {sum(chances):g}")
    return chances


def _admissible(table: Table, states: tuple[str, ...], actions: tuple[str, ...]) -> Any:
    mask = np.ones((len(states), len(actions)), dtype=bool)
    for place, state in enumerate(states):
        for action in table.names(state, ()):
            if action not in actions:
                raise table.error(state, f"must list actions among {', '.join(actions)}, got {action!r}")
            mask[place, actions.index(action)] = False
        if not mask[place].any():
            raise table.error(state, "must leave an action")
    return mask


def _contexts(table: Table) -> tuple[FeatureMap | None, tuple[str, ...]]:
    labels = table.names("labels", ())
    if labels:
        return None, labels
    columns: list[Number | Category] = []
    described = table.table("columns")
    for name in described.content:
        column = described.table(name)
        if "labels" in column.content:
            columns.append(Category(column=name, labels=column.names("labels")))
            continue
        low, high = column.number("low"), column.number("high")
        if not low < high:
            raise column.error("high", f"must be above `low`, got {high:g}")
        median = column.number("median", (low + high) / 2, low=low, high=high)
        columns.append(Number(column=name, low=low, median=median, high=high, missing=column.flag("missing", False)))
    try:
        return FeatureMap(columns=tuple(columns), crosses=tuple(map(tuple, table.lists("crosses")))), ()
    except ValueError as error:
        raise table.error("", str(error)) from None


def _zone(table: Table) -> zoneinfo.ZoneInfo:
    name = table.text("time_zone", "UTC")
    try:
        return zoneinfo.ZoneInfo(name)
    except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
        raise table.error("time_zone", f"must be a time zone such as 'Europe/Berlin', got {name!r}") from None
