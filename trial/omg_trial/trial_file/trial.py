"""A trial: what its file says, checked: the space with its names, the agent, and what is pre-specified."""

from __future__ import annotations

import functools
import hashlib
import json
import tomllib
import zoneinfo
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import numpy as np

from omg_cmdp import oracles
from omg_cmdp.agents.exploration.gain import GainWeighted
from omg_cmdp.agents.omg import OMG
from omg_cmdp.contexts import Context, context_from_json
from omg_cmdp.documents import Document, FileError
from omg_cmdp.oracles.feature_map import Number
from omg_cmdp.validation import FloatArray, file_path, instance_of
from omg_trial.trial_file.between import (
    check_between,
    read_budgets,
    read_fallback,
    read_features,
    read_limits,
    read_space,
)
from omg_trial.trial_file.floor import Floor, FlooredDynamics, FlooredRewards
from omg_trial.trial_file.sections import Dynamics, Rewards, TrialFile, read_sections

REWARDS = {"linear": oracles.LinearRewards, "counts": oracles.CountRewards}
DYNAMICS = {"softmax": oracles.SoftmaxDynamics, "counts": oracles.CountDynamics}


@final
class Trial:
    """A checked trial file: the space with its names, the agent, and what is pre-specified. It does not change.

    Make one by `Trial.read` or `Trial.parse`.

    Parameters
    ----------
    file : TrialFile
        The tables of the file, each checked by itself; rules between them are checked here.
    text : str
        The file, byte for byte, as the log keeps it.

    Attributes
    ----------
    file : TrialFile
        The tables of the file.
    name : str
        Name of the trial.
    offline : bool
        Whether an app may have to act without a network; it then gets all draws when an episode opens.
    allowances : bool
        Whether that holds also where the week has limits.
    states, actions : tuple of str
        Their names, in the order of their indices.
    space : Space
        Sizes, start and admissible actions.
    features : FeatureMap or None
        Turns a record into a vector; None if contexts are labels.
    labels : tuple of str
        The contexts, if they are labels.
    reward_range, return_range : pair of float
        Range of a reward, and of the sum of an episode's rewards; the latter may be None.
    floor : Floor
        The least probability of every admissible action.
    budgets : EpisodeBudgets
        What an episode may cost in expectation, and what actions cost.
    fallback : array (A,)
        Fixed probabilities, when there is no plan.
    replan : bool
        Whether every step is planned with the newest model, instead of the model that the episode began with.
    learn_after : int
        Closed episodes after which learning begins by itself; 0 for never.
    missing_reward : float or None
        Stands for a reward that never came; None leaves it out.
    zone : ZoneInfo
        The clock of weeks, days and windows, for people who have no zone of their own.
    window : Window or None
        When people may be asked to do something.
    limits : Limits
        How often actions may and must be taken in a week.
    end : date or None
        The last day on which anything is decided, by each person's own clock.
    people : People
        Whether unknown people are refused, and the share of people in the control group.
    unavailable, paused : int or None
        The action that is taken without a draw for somebody who is not available, and during a pause.
    by_hand : bool
        Whether a model waits until somebody publishes it.
    watch : Watch
        Thresholds of the checks.
    alerts : Alerts
        Who is told of incidents.

    Examples
    --------
    >>> from omg_trial.trial_file import EXAMPLE
    >>> trial = Trial.parse(EXAMPLE)
    >>> trial.actions, trial.floor.probability
    (('nothing', 'reminder'), 0.2)
    >>> Trial.parse(EXAMPLE.replace("floor", "flor"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    omg_cmdp.documents.FileError: trial.toml, line 21: `exploration.flor`: there is no such key; did you mean 'floor'...
    """

    def __init__(self, file: TrialFile, text: str) -> None:
        rewards, learning, window = file.rewards, file.learning, file.window
        self.name, self.zone = file.trial.name, zoneinfo.ZoneInfo(file.trial.time_zone)
        self.offline, self.allowances = file.trial.offline, file.trial.allowances
        self.states, self.actions, self.labels = file.states.names, file.actions.names, file.context.labels
        self.space, self.features = read_space(file), read_features(file.context)
        self.limits, self.fallback = read_limits(file, self.space), read_fallback(file, self.space)
        self.reward_range, self.return_range = rewards.range, rewards.return_range
        self.floor = Floor(self.space, file.exploration.floor)
        self.budgets = read_budgets(file, self.space, self.floor)
        self.replan, self.learn_after = learning.replan == "step", learning.after_episodes
        self.missing_reward, self.window, self.watch = learning.missing_reward, window, file.watch
        self.alerts = file.alerts
        self.end, self.people, self.by_hand = file.trial.end, file.people, learning.publish == "by hand"
        without = file.actions.unavailable, file.actions.paused
        self.unavailable, self.paused = (None if name is None else self.actions.index(name) for name in without)
        self.file, self.text = file, text

    @functools.cached_property
    def digest(self) -> str:
        """Tells this trial from any other: a database belongs to one. Thresholds and alerts may change under way."""
        parts = {name: part for name, part in tomllib.loads(self.text).items() if name not in ("watch", "alerts")}
        # In the order of the file, as that of columns is the order of features; comments and spaces do not count.
        return hashlib.sha256(json.dumps(parts, default=str, ensure_ascii=False).encode()).hexdigest()

    @classmethod
    def read(cls, path: str | Path) -> Trial:
        """Return the trial of a file; the error names the line that is wrong."""
        file = file_path(path)
        try:
            text = file.read_bytes().decode()  # with the ends of lines as they are
        except UnicodeDecodeError:
            raise FileError(f"{file}: is no text; a trial file is TOML, and a database goes to --database") from None
        return cls.parse(text, str(file))

    @classmethod
    def parse(cls, text: str, name: str = "trial.toml") -> Trial:
        """Return the trial of a file with this text; `name` is for error messages."""
        instance_of("text", text, str)
        instance_of("name", name, str)
        document = Document(text, name)
        try:
            file = read_sections(document.content)
            check_between(file)
            trial = cls(file, text)
            trial.agent()  # options of oracles are checked by their constructors, now and not at the first call
        except FileError as error:
            raise document.located(error) from None
        except (TypeError, ValueError) as error:
            raise document.located(FileError(str(error), ("rewards",))) from None
        return trial

    def oracles(self) -> tuple[Any, Any]:
        """Return oracles of rewards and dynamics that have learned nothing, without the floor."""
        space, features = self.space, self.features
        sizes: dict[str, Any] = {"states": space.states, "actions": space.actions, "horizon": space.horizon}
        counted = sizes if features is not None else {**sizes, "contexts": self.labels}
        fitted = counted if features is None else {**sizes, "features": features, "dimension": features.dimension}

        def make(kinds: Mapping[str, Any], section: Rewards | Dynamics, usual: str) -> Any:
            kind = section.oracle or ("counts" if features is None else usual)
            return kinds[kind](**(counted if kind == "counts" else fitted), **section.options)

        return make(REWARDS, self.file.rewards, "linear"), make(DYNAMICS, self.file.dynamics, "softmax")

    def agent(self) -> OMG:
        """Return an agent that has learned nothing."""
        rewards, dynamics = self.oracles()
        if self.floor.probability:
            rewards, dynamics = FlooredRewards(rewards, self.floor), FlooredDynamics(dynamics, self.floor)
        ranges: dict[str, Any] = {"reward_range": self.reward_range, "return_range": self.return_range}
        # Outcomes of a trial come late, and models in batches: the default's account would prove nothing.
        gamma = self.file.exploration.gamma
        rule = GainWeighted() if gamma == "adaptive" else gamma
        if self.budgets.names:  # what a plan costs with the floor
            ranges |= {"costs": self.floor.rewards(self.budgets.costs), "budgets": self.budgets.most}
        return OMG(self.space, rewards, dynamics, rule, **ranges)

    def context(self, text: str) -> Context:
        """Return a context of the log as the model has it: a text where a number belongs counts as missing.

        The model could read "71", but nobody else would: the export leaves it empty, and a check turns yellow.
        """
        found = context_from_json(text)
        if self.features is None or not isinstance(found, Mapping):
            return found
        wrong = {each.column for each in self.features.columns if isinstance(each, Number)}
        return {name: None if name in wrong and isinstance(value, str) else value for name, value in found.items()}

    @property
    def dimension(self) -> int:
        """Length of `vector`."""
        return len(self.labels) if self.features is None else self.features.dimension

    def vector(self, context: Context) -> FloatArray:
        """Return a context in numbers: the features of a record, or 1 at the place of a label."""
        found = [label == context for label in self.labels] if self.features is None else self.features(context)
        return np.asarray(found, dtype=np.float64)

    @property
    def steps_may_differ(self) -> bool:
        """Whether a step may be decided in another way than by the policy that its episode began with."""
        return bool(self.replan or self.window or self.limits.any)

    @property
    def grants_allowances(self) -> bool:
        """Whether an app may act without a network although the week has limits.

        Not with a window or new models for each step, nor with a least number: to assume the worst does not keep it.
        """
        later = self.window or self.limits.least or self.replan
        return bool(self.offline and self.allowances and self.limits.any and not later)

    def action_name(self, action: int | None) -> str | None:
        """Return the name of an action; None if nothing was done."""
        return None if action is None else self.actions[action]

    def fixed_policy(self) -> FloatArray:
        """Return the policy (H, S, A) of the fallback probabilities, over admissible actions."""
        rows = self.fallback * self.space.admissible
        return np.tile(rows / rows.sum(axis=1, keepdims=True), (self.space.horizon, 1, 1))
