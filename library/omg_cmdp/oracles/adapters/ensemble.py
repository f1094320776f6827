"""Copies of a foreign model as forecasters, and their spread as uncertainty.

The delete-a-group jackknife: M copies learn side by side, copy m all but the examples of group m. The prediction is
their mean, and their spread estimates its variance:

    rewards    u = (M-1)/M · Σ_m (f_m - f̄)²      dynamics    u = (M-1)/M · Σ_m D²(P_m, P̄)

It is at least b/(n + 1) after n visits of the pair, b the largest divergence that the untrained prediction can have:
copies may agree by accident. This is a proxy. No theorem says that it bounds the error of a foreign model, and
`regret_bound` is inf.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.oracles.adapters.inputs import InputMap, Inputs
from omg_cmdp.oracles.adapters.kinds import Tables
from omg_cmdp.oracles.adapters.models import ModelKind, described
from omg_cmdp.oracles.draws import Streams, resample
from omg_cmdp.oracles.forecasters import Forecasters
from omg_cmdp.oracles.losses import Examples
from omg_cmdp.persistence import State, numbers
from omg_cmdp.validation import BoolArray, FloatArray, admissible_mask, positive_integer


class Answers(NamedTuple):
    """The inputs that the copies were asked about, (S, A, d), and their tables, (M, ...)."""

    inputs: FloatArray
    tables: FloatArray


class Ensemble(Forecasters):
    """`members` copies of a model, which make one forecaster. It is saved as the log of what it learned.

    The log holds every example: memory grows with their number, and loading takes as long as learning did. That is the
    price of saving any model to the bit without a pickle.
    """

    foreign = True
    learned: ClassVar[tuple[str, ...]] = ("visits", "dimension")
    features: Inputs

    def __init__(
        self,
        model: Any,
        learner: Callable[[int], ModelKind],
        tables: Callable[..., Tables],
        *,
        states: int,
        actions: int,
        horizon: int,
        features: InputMap | None = None,
        admissible: ArrayLike | None = None,
        members: int = 4,
        **cuts: Any,
    ) -> None:
        super().__init__(horizon)
        shape = positive_integer("states", states), positive_integer("actions", actions)
        self.members = positive_integer("members", members)
        self.learner = learner(shape[0])
        if missing := [name for name in self.learner.needs if not hasattr(model, name)]:
            needs = " and ".join(self.learner.needs)
            raise ValueError(f"`model` must have {needs}, got {model!r:.80} without {missing[0]}")
        self.admissible = admissible_mask(admissible, *shape)
        self.tables = tables(self.admissible, **cuts)
        self.possible = self.tables.possible
        self.features = self.source = Inputs(features, self.admissible)
        self.visits, self.dimension = np.zeros(shape), np.zeros(())
        self._template = self.learner.template(model)
        own = f"members {self.members}", f"admissible {fingerprint(self.admissible)}", *self.tables.settings
        self.settings = *own, f"model {described(self._template)}"
        self.copies = self.fresh()
        # (n, 2 + d): 1 where an episode begins, outcomes, inputs; rows beyond the examples seen are spare.
        self._log = np.zeros((0, 2))

    def fresh(self) -> list[Any]:
        """Return copies that have learned nothing."""
        return [self.learner.fresh(self._template) for _ in range(self.members)]

    def taught(self) -> int:
        """Return the number of examples that the copies have learned."""
        return self.account.examples

    def prepare(self, context: Context) -> Answers:
        """Ask all copies that have learned something: after two examples, all of them."""
        inputs = self.features(context, int(self.dimension) or None)
        tables = np.stack([self.tables.prior] * self.members)
        # A model that was never fitted cannot be asked; example 0 or 1 reaches every copy.
        for m in np.flatnonzero(lessons(0, min(self.taught(), 2), self.members).any(axis=1)):
            answers = np.asarray(self.learner.ask(self.copies[m], inputs[self.admissible]), dtype=np.float64)
            wanted = tables[m, self.admissible].shape
            if answers.size != math.prod(wanted) or not np.isfinite(answers).all():
                got = "nan or inf" if answers.size == math.prod(wanted) else f"shape {answers.shape}"
                raise ValueError(f"`model` must predict finite numbers of shape {wanted}, got {got}")
            tables[m, self.admissible] = self.tables.rows(answers.reshape(wanted))
        return Answers(inputs, tables)

    def forecasts(self, asked: Answers) -> FloatArray:
        """Return the mean of the copies."""
        return np.asarray(asked.tables.mean(axis=0, keepdims=True))

    def expected_divergence(self, asked: Answers, prediction: FloatArray) -> FloatArray:
        """Return the jackknife's estimate, at least b/(n + 1) and at most what is possible."""
        # Copies of an inflexible model agree even where they know nothing.
        least = self.tables.prior_divergence / (self.visits + 1.0)
        return np.where(self.admissible, np.clip(self._spread(asked, prediction), least, self.tables.most), 0.0)

    def _spread(self, asked: Answers, prediction: FloatArray) -> FloatArray:
        """Return (M-1)/M·Σ divergence of the copies from their mean."""
        divergences = self.tables.loss.divergence(asked.tables, prediction)
        return np.asarray(divergences.sum(axis=0) * (1.0 - 1.0 / self.members))

    def draws(self, asked: Answers, streams: Streams) -> FloatArray:
        """Return copies drawn at random, √(M-1) times as far from their mean, and around them what u is beyond that.

        The variance of mean + √(M-1)·(copy - mean) is (M-1)/M·Σ (copy - mean)², the jackknife's; then cut to a table.
        """
        mean = asked.tables.mean(axis=0)
        missing = np.maximum(self.expected_divergence(asked, mean) - self._spread(asked, mean), 0.0)
        # Copies share most of their examples, so that they are too close to each other by this factor.
        wide = mean + math.sqrt(self.members - 1.0) * (asked.tables - mean)
        for table in wide:
            table[self.admissible] = self.tables.rows(table[self.admissible])
        return np.asarray(self.tables.loss.draws(wide, missing, streams, resample(np.ones(self.members), streams)))

    def learn(self, asked: Answers, episode: Examples) -> None:
        """Let each copy learn its part of an episode, or none."""
        pairs = episode.states, episode.actions
        if not (allowed := self.admissible[pairs]).all():
            state, action = (int(index[~allowed][0]) for index in pairs)
            raise ValueError(f"`actions` must be admissible, got {action} in state {state}")
        inputs = asked.inputs[pairs]
        self.take_in(inputs, episode.outcomes)
        np.add.at(self.visits, pairs, 1.0)
        self.dimension = np.array(float(inputs.shape[1]))

    def take_in(self, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        """Learn and remember the examples of an episode, or raise and change nothing."""
        seen = self.account.examples
        try:
            self.teach(self.copies, seen, inputs, outcomes)
        except BaseException:
            # A foreign model may give up midway, as scikit-learn's do when they overflow, and cannot undo a lesson.
            self.copies = self.relearned(self._log[:seen])
            raise
        self.remember(inputs, outcomes)

    def teach(self, copies: list[Any], seen: int, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        """Let each of `copies` learn its part of the examples, which begin after `seen` others."""
        for pupil, lesson in zip(copies, lessons(seen, len(outcomes), self.members), strict=True):
            if lesson.any():
                self.learner.fit(pupil, inputs[lesson], outcomes[lesson])

    def read(self, rows: FloatArray) -> tuple[FloatArray, NDArray[Any]]:
        """Return the inputs and outcomes of rows of the log."""
        return rows[:, 2:], rows[:, 1].astype(self.tables.outcome_type)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what was learned, and from what the copies can be made again."""
        return {**super().state(), "log": self._log[: self.account.examples].copy()}

    def load_state(self, state: State) -> None:
        """Load what was learned, or change nothing."""
        before = super().state()
        super().load_state(state)
        try:
            log = numbers("log", state, (self.account.examples, 2 + int(self.dimension)))
            self.copies, self._log = self.relearned(log), log
        except BaseException:
            super().load_state(before)
            raise

    def remember(self, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        """Add the examples of an episode to the log."""
        seen, examples = self.account.examples, np.column_stack([np.eye(1, len(inputs))[0], outcomes, inputs])
        if seen + len(examples) > len(self._log):  # twice the room: an example costs the same however many there are
            room = np.empty((seen + len(examples), examples.shape[1]))
            self._log = np.concatenate([self._log[:seen].reshape(seen, examples.shape[1]), room])
        self._log[seen : seen + len(examples)] = examples

    def relearned(self, log: FloatArray) -> list[Any]:
        """Return copies that have learned the log, episode by episode."""
        copies, begins = self.fresh(), np.flatnonzero(log[:, 0]).tolist()
        for first, end in itertools.pairwise([*begins, len(log)]):
            self.teach(copies, first, *self.read(log[first:end]))
        return copies


def lessons(first: int, count: int, members: int) -> BoolArray:
    """Return (M, count): which copies learn the examples first, first + 1, ...: all but one of them each.

    Copy ⌊M·{φi²}⌋ misses example i, φ the golden ratio: evenly spread over every arithmetic progression (Weyl 1916).
    With i mod M, and M a divisor of the horizon, a copy would miss the same step of every episode.

    >>> lessons(0, 8, 2).astype(int)
    array([[0, 1, 0, 1, 1, 0, 0, 0],
           [1, 0, 1, 0, 0, 1, 1, 1]])
    """
    if members == 1:
        return np.ones((1, count), dtype=np.bool_)
    numbers = np.arange(first, first + count, dtype=np.uint64)
    # In integers, which wrap: floats would lose the fraction for large i.
    fractions = numbers * numbers * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)  # {φi²}·2³²: φ·2⁶⁴ wraps around
    groups = fractions * np.uint64(members) >> np.uint64(32)
    return np.asarray(groups != np.arange(members, dtype=np.uint64)[:, None])
