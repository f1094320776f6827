"""What the adapters of foreign online learners share: copies of a model, and their spread as uncertainty.

The delete-a-group jackknife: M copies learn side by side, copy m all but the examples of group m. The prediction is
their mean, and their spread estimates its variance:

    rewards    u = (M-1)/M · Σ_m (f_m - f̄)²      dynamics    u = (M-1)/M · Σ_m D²(P_m, P̄)

It is never taken below b/(n + 1) after n visits of the pair, b the largest divergence that the untrained prediction can
have: copies that agree by accident are not believed at once. This is a proxy. No theorem says that it bounds the error
of a foreign model, and the regret bound is `math.inf`.
"""

from __future__ import annotations

import abc
import copy
import math
import re
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.adapters.inputs import InputMap, Inputs
from omg_cmdp.oracles.frame import Forecasters
from omg_cmdp.oracles.losses import Episode
from omg_cmdp.persistence import State
from omg_cmdp.validation import BoolArray, FloatArray, admissible_mask, positive_integer


class Asked(NamedTuple):
    """What the copies were asked, (S, A, d), and their tables, (M, ...)."""

    inputs: FloatArray
    tables: FloatArray


class Ensemble(Forecasters):
    """`members` copies of `model`, one forecaster together; a single copy learns everything, and u = b/(n + 1).

    `features`, context -> (S, A, d), gives the input of each pair; without it contexts are vectors, and pairs one-hot.
    The dimension is fixed by the first episode. Pairs outside `admissible` (S, A) have no reward, no uncertainty and a
    uniform row; the model is not asked about them, and episodes must not visit them.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    """The methods that a model must have."""
    outcome_type: ClassVar[type[Any]]
    learned = ("visits", "dimension")

    def __init__(
        self,
        model: Any,
        *,
        states: int,
        actions: int,
        horizon: int,
        features: InputMap | None = None,
        admissible: ArrayLike | None = None,
        members: int = 4,
    ) -> None:
        super().__init__(horizon, count=1)
        self.states, self.actions = positive_integer("states", states), positive_integer("actions", actions)
        self.members = positive_integer("members", members)
        if missing := [name for name in self.needs if not hasattr(model, name)]:
            raise ValueError(f"`model` must have {' and '.join(self.needs)}, got {model!r:.80} without {missing[0]}")
        self._admissible = admissible_mask(admissible, self.states, self.actions)
        self._inputs = Inputs(features, self._admissible)
        self._visits, self._dimension = np.zeros((self.states, self.actions)), np.zeros(())
        self._model = self._template(model)
        self._copies = self._fresh()

    @abc.abstractmethod
    def _fit(self, pupil: Any, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        """Let one copy learn `inputs` (n, d) with `outcomes` (n,), n >= 1."""

    @abc.abstractmethod
    def _ask(self, pupil: Any, inputs: FloatArray) -> ArrayLike:
        """Return the answers, (n,) or (n, S), of a copy that has learned something."""

    @abc.abstractmethod
    def _rows(self, answers: FloatArray) -> FloatArray:
        """Return the `answers` about the admissible pairs as valid entries of a table."""

    @abc.abstractmethod
    def _prior(self) -> tuple[FloatArray, FloatArray, float]:
        """Return the untrained prediction, b (S, A), and the largest divergence there is."""

    @abc.abstractmethod
    def _memory(self) -> dict[str, NDArray[Any]]:
        """Return arrays from which `_revive` makes the copies again."""

    @abc.abstractmethod
    def _revive(self, memory: State) -> None:
        """Make the copies again, to the bit; or raise and change nothing."""

    def _template(self, model: Any) -> Any:
        """Return the caller's `model` as it is now; all copies are copies of that."""
        return copy.deepcopy(model)

    def _fresh(self) -> list[Any]:
        return [copy.deepcopy(self._model) for _ in range(self.members)]

    def _prepare(self, context: Context) -> Asked:
        inputs = self._inputs(context, int(self._dimension) or None)
        tables = np.stack([self._prior()[0]] * self.members)
        # Who has learned nothing is not asked. Two examples tell, for they are of different groups.
        for m in np.flatnonzero(lessons(0, min(self._seen(), 2), self.members).any(axis=1)):
            answers = np.asarray(self._ask(self._copies[m], inputs[self._admissible]), dtype=np.float64)
            wanted = tables[m, self._admissible].shape
            if answers.size != math.prod(wanted) or not np.isfinite(answers).all():
                got = "nan or inf" if answers.size == math.prod(wanted) else f"shape {answers.shape}"
                raise ValueError(f"`model` must predict finite numbers of shape {wanted}, got {got}")
            tables[m, self._admissible] = self._rows(answers.reshape(wanted))
        return Asked(inputs, tables)

    def _forecasts(self, asked: Asked) -> FloatArray:
        return np.asarray(asked.tables.mean(axis=0, keepdims=True))

    def _expected_divergence(self, asked: Asked, prediction: FloatArray) -> FloatArray:
        """Return the jackknife's estimate, at least b/(n + 1) and at most what is possible."""
        _, largest, cap = self._prior()
        spread = self.game.divergence(asked.tables, prediction).sum(axis=0) * (1.0 - 1.0 / self.members)
        return np.where(self._admissible, np.clip(spread, largest / (self._visits + 1.0), cap), 0.0)

    def _learn(self, asked: Asked, episode: Episode) -> None:
        pairs = episode.states, episode.actions
        if not (allowed := self._admissible[pairs]).all():
            state, action = (int(index[~allowed][0]) for index in pairs)
            raise ValueError(f"`actions` must be admissible, got {action} in state {state}")
        inputs, memory = asked.inputs[pairs], self._memory()
        try:
            self._teach(self._copies, self._seen(), inputs, episode.outcomes)
        except BaseException:
            self._revive(memory)  # a foreign model may give up midway, as scikit-learn's do when they overflow
            raise
        np.add.at(self._visits, pairs, 1.0)
        self._dimension = np.array(float(inputs.shape[1]))

    def _teach(self, copies: list[Any], seen: int, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        """Let each of `copies` learn its part of an episode, which begins after `seen` examples."""
        for pupil, lesson in zip(copies, lessons(seen, len(outcomes), self.members), strict=True):
            if lesson.any():
                self._fit(pupil, inputs[lesson], outcomes[lesson])

    def _seen(self) -> int:
        return self.episodes * self.horizon

    def regret_bound(self, episodes: int, horizon: int) -> float:
        """Return inf: nothing is proven about foreign models."""
        positive_integer("episodes", episodes)
        positive_integer("horizon", horizon)
        return math.inf

    def _description(self) -> str:
        return repr(self._model)

    def _settings(self) -> str:
        model = re.sub(r" at 0x[0-9A-Fa-f]+", "", self._description())  # addresses are new in every process
        return f"{super()._settings()}, members {self.members}, model {model}"

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that was learned, as arrays of numbers and text."""
        return {**super().state(), **{name: array.copy() for name, array in self._memory().items()}}

    def load_state(self, state: State) -> None:
        """Load a state saved by an oracle with the same settings, or change nothing."""
        before = super().state()
        super().load_state(state)
        try:
            self._revive(state)
        except BaseException:
            super().load_state(before)
            raise


def lessons(first: int, count: int, members: int) -> BoolArray:
    """Return (M, count): which copies learn the examples first, first + 1, ...: all but that of the example's group.

    Example i is of group ⌊M·{φi²}⌋, φ the golden ratio: evenly spread over every arithmetic progression (Weyl 1916).
    With i mod M, and M a divisor of the horizon, a copy would miss the same step of every episode.

    >>> lessons(0, 8, 2).astype(int)
    array([[0, 1, 0, 1, 1, 0, 0, 0],
           [1, 0, 1, 0, 0, 1, 1, 1]])
    """
    if members == 1:
        return np.ones((1, count), dtype=np.bool_)
    numbers = np.arange(first, first + count, dtype=np.uint64)
    fractions = numbers * numbers * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)  # {φi²}·2³²: φ·2⁶⁴ wraps around
    groups = fractions * np.uint64(members) >> np.uint64(32)
    return np.asarray(groups != np.arange(members, dtype=np.uint64)[:, None])
