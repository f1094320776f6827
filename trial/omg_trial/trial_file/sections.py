"""The tables of a trial file as pydantic models: their keys, the kinds and ranges of values, what may be left out.

An unknown key is refused with the nearest known one. Rules between tables are in `trial.py`.
"""

from __future__ import annotations

import datetime
import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from omg_cmdp.documents import FileError
from omg_cmdp.mdp.budgets import MOST_BUDGETS
from omg_cmdp.oracles.feature_map import Category, Number
from omg_trial.trial_file.alerts import Alerts
from omg_trial.trial_file.kinds import (
    Count,
    Cross,
    Day,
    Name,
    Names,
    Pair,
    Positive,
    PositiveCount,
    PrintableName,
    Probability,
    TimeOfDay,
    Zone,
)
from omg_trial.trial_file.table import FileTable
from omg_trial.trial_file.watch import Watch


def _exploration(value: Any) -> str | float:
    if value in ("adaptive", "uncertainty", "anytime"):
        return str(value)
    if type(value) in (int, float) and 0.0 < value < math.inf:
        return float(value)
    raise ValueError("give adaptive, uncertainty, anytime, or a positive number")


class Head(FileTable):
    """Name and size of the trial."""

    name: PrintableName
    """Name of the trial."""
    horizon: PositiveCount
    """Decisions in an episode."""
    time_zone: Zone = "UTC"
    """Weeks, days and windows are by this clock, for people who have no zone of their own."""
    end: Day | None = None
    """The last day on which anything is decided, by each person's own clock."""
    offline: bool = False
    """Whether an app must act without a network: it is then told all draws when an episode opens."""
    allowances: bool = False
    """Whether it may also where the week has limits: probabilities then assume the worst of later states."""


class States(FileTable):
    """States of a person, by name."""

    names: Names
    """Names of the states."""
    start: dict[str, Probability] = {}
    """Probabilities of the first state; the first name, if left out."""
    forbidden: dict[str, Names] = {}
    """Actions that must not be taken in a state."""


class Actions(FileTable):
    """Actions, by name, and how often each may or must be taken."""

    names: Names
    """Names of the actions."""
    fallback: dict[str, Probability]
    """Fixed probabilities, when there is no plan."""
    unavailable: Name | None = None
    """Taken without a draw for somebody who is not available; none if left out."""
    paused: Name | None = None
    """Taken without a draw while the trial or a person is paused; if left out, decisions are refused meanwhile."""
    most_per_week: dict[str, Count] = {}
    """A guard: an action that was taken as often as this is closed until the week ends."""
    mean_per_week: dict[str, Positive] = {}
    """The most that is expected of an action; `most_per_week` if left out, and `decisions_per_week` is known."""
    least_per_week: dict[str, PositiveCount] = {}
    """A guard from below: when the rest of the week is needed for an action, nothing else is drawn."""
    decisions_per_week: PositiveCount | None = None
    """Decisions that are expected for each person; `least_per_week` and `mean_per_week` need it."""


class ContextColumn(FileTable):
    """A column of a record: numbers from `low` to `high`, or one of `labels`."""

    labels: Names | None = None
    """What is known; anything else counts as unknown."""
    low: float | None = None
    """A number below it counts as this one."""
    high: float | None = None
    """A number above it counts as this one."""
    median: float | None = None
    """Stands for a missing number; the middle of the range, if left out."""
    missing: bool = False
    """Whether the model learns a separate effect of a missing number."""

    @model_validator(mode="after")
    def _be_one_kind(self) -> ContextColumn:
        if self.labels is not None:
            if self.model_fields_set != {"labels"}:
                raise ValueError("a column with `labels` has nothing else")
        elif self.low is None or self.high is None:
            raise ValueError("give `low` and `high`, or `labels`")
        self.feature("it")  # refuses what is no range
        return self

    def feature(self, name: str) -> Number | Category:
        """Return the rule that turns an entry of this column into numbers."""
        if self.labels is not None:
            return Category(column=name, labels=self.labels)
        assert self.low is not None
        assert self.high is not None
        median = (self.low + self.high) / 2 if self.median is None else self.median
        return Number(column=name, low=self.low, median=median, high=self.high, missing=self.missing)


class ContextSection(FileTable):
    """What is known at the start of an episode: one of `labels`, or a record of `columns`."""

    labels: Names = ()
    """The contexts."""
    columns: dict[str, ContextColumn] = {}
    """Columns of a record, by name."""
    crosses: tuple[Cross, ...] = Field((), strict=False)
    """Pairs of columns whose products are features too."""

    @model_validator(mode="after")
    def _be_one_kind(self) -> ContextSection:
        if bool(self.labels) == bool(self.columns):
            raise ValueError("give either `labels` or `columns`")
        return self


class OracleSection(FileTable):
    """How something is learned: a kind of oracle, and options that its constructor takes."""

    options: dict[str, Any] = {}
    """What the constructor is given."""


class Rewards(OracleSection):
    """Range of rewards, and how they are learned."""

    oracle: Literal["linear", "counts"] | None = None
    """By default linear for columns, counts for labels."""
    range: Pair = (0.0, 1.0)
    """The least and the largest reward of a decision."""
    return_range: Pair | None = None
    """Range of the sum of an episode's rewards, if that is narrower than horizon times `range`."""


class Dynamics(OracleSection):
    """How transitions between states are learned."""

    oracle: Literal["softmax", "counts"] | None = None
    """By default softmax for columns, counts for labels."""


class Exploration(FileTable):
    """How much the trial explores."""

    gamma: Annotated[str | float, BeforeValidator(_exploration)] = "adaptive"
    """The exploration rule."""
    floor: Probability = 0.0
    """The least probability of every admissible action."""


class LearningSection(FileTable):
    """When the model learns, and from what."""

    after_episodes: Count = 1
    """Closed episodes after which learning begins by itself; 0 for never."""
    missing_reward: float | None = None
    """Stands for a reward that never came; without it such a reward is left out."""
    replan: Literal["episode", "step"] = "episode"
    """Whether every step is planned with the newest model, instead of the model that the episode began with.

    Regret bounds are about the latter; probabilities are exact all the same."""
    publish: Literal["at once", "by hand"] = "at once"
    """Whether a model that passes its checks is used at once, or waits until somebody publishes it."""


class People(FileTable):
    """Who takes part."""

    roster: Literal["open", "required"] = "open"
    """Whether somebody's first opening enrols them, or unknown people are refused."""
    control: Probability = 0.0
    """The share of people who are decided for by the fixed probabilities, drawn when they are enrolled.

    Nothing is learned from them."""
    arms: Literal["drawn", "given"] = "drawn"
    """Whether whoever enrols a person may choose the arm; if not, it is always drawn."""


class Window(FileTable):
    """When people may be asked to do something, by their own clock; outside of it the action is `outside`."""

    begin: TimeOfDay
    """When the window opens."""
    end: TimeOfDay
    """When it closes."""
    outside: str
    """The action outside of it, for certain."""

    def holds(self, time: datetime.time) -> bool:
        """Return whether `time` lies in the window, which may run over midnight."""
        if self.begin <= self.end:
            return self.begin <= time < self.end
        return time >= self.begin or time < self.end


class Budget(FileTable):
    """The most that an episode may cost in expectation; plans keep it."""

    most: Positive
    """The expected cost of an episode, floor included."""
    costs: dict[str, Positive]
    """Cost of actions, by name; the others cost nothing."""


class TrialFile(FileTable):
    """The whole file."""

    trial: Head
    states: States
    actions: Actions
    context: ContextSection
    rewards: Rewards
    dynamics: Dynamics
    budgets: dict[PrintableName, Budget] = Field({}, max_length=MOST_BUDGETS)
    exploration: Exploration = Exploration()
    learning: LearningSection = LearningSection()
    people: People = People()
    window: Window | None = None
    watch: Watch = Watch()
    alerts: Alerts = Alerts()


def read_sections(content: dict[str, Any]) -> TrialFile:
    """Return the checked content of a file; the error names the key that is wrong."""
    try:
        return TrialFile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        # Our own validators raise `FileError` with the key inside their table; pydantic knows the table.
        cause = first.get("ctx", {}).get("error")
        place = tuple(map(str, first["loc"])) + (cause.place if isinstance(cause, FileError) else ())
        message = cause.message if isinstance(cause, FileError) else str(cause or first["msg"])
        if first["type"] in ("model_type", "dict_type"):
            message = "must be a table, { key = value }"
            if len(place) > 2:  # TOML gives a key to the last header above it
                message += f"; a key of [{'.'.join(place[:-2])}] belongs above [{'.'.join(place[:-1])}]"
        raise FileError(f"`{'.'.join(place)}`: {message}", place) from None
