"""Copies of a foreign model as forecasters, fitted again to all examples now and then; their spread as uncertainty.

A fit costs at least as much as there are examples. With fits to n₁ < n₂ < ... examples, n_{i+1} >= (1 + g)·nᵢ, all of
them together see at most 1 + 1/g times the examples of the last one, however long the run and its episodes. Between two
fits the prediction stays what it was; examples wait in the log. So they do if a model refuses to be fitted to the ones
there are, as one with five neighbours or folds may: a warning says so, and the model is tried again at the next fit.

The delete-a-group jackknife: M copies learn side by side, copy m all but the examples of group m. The prediction is
their mean, and their spread estimates its variance:

    rewards    u = (M-1)/M · Σ_m (f_m - f̄)²      dynamics    u = (M-1)/M · Σ_m D²(P_m, P̄)

It is at least b/(n + 1) after n visits of the pair, b the largest divergence that the untrained prediction can have:
copies may agree by accident. This is a proxy. No theorem says that it bounds the error of a foreign model, and
`regret_bound` is inf.
"""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import threadpoolctl
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.oracles.adapters.inputs import InputMap, Inputs
from omg_cmdp.oracles.adapters.kinds import Tables
from omg_cmdp.oracles.adapters.models import ClassifierCopy, RegressorCopy, described, seeded
from omg_cmdp.oracles.draws import Streams, resample
from omg_cmdp.oracles.forecasters import Forecasters
from omg_cmdp.oracles.losses import Examples
from omg_cmdp.persistence import State, numbers
from omg_cmdp.validation import BoolArray, FloatArray, admissible_mask, positive_integer, probability

PATIENCE = 200
"""The number of examples to which a model must have been fitted once; before, it may refuse because they are few."""


class Answers(NamedTuple):
    """The inputs that the copies were asked about, (S, A, d), and their tables, (M, ...)."""

    inputs: FloatArray
    tables: FloatArray


class Ensemble(Forecasters):
    """`members` copies of a model, which make one forecaster. It is saved as the log, and how much of it they know.

    The log holds every example: memory grows with their number. That is the price of saving any model to the bit
    without a pickle.
    """

    foreign = True
    learned: ClassVar[tuple[str, ...]] = ("visits", "dimension", "fitted")
    features: Inputs

    def __init__(
        self,
        model: Any,
        tables: Callable[..., Tables],
        *,
        states: int,
        actions: int,
        horizon: int,
        features: InputMap | None = None,
        admissible: ArrayLike | None = None,
        members: int = 4,
        every: float | str = "doubling",
        **cuts: Any,
    ) -> None:
        super().__init__(horizon)
        shape = positive_integer("states", states), positive_integer("actions", actions)
        self.members = positive_integer("members", members)
        self.admissible = admissible_mask(admissible, *shape)
        self.tables = tables(self.admissible, **cuts)
        needs = self.tables.learner.needs
        if missing := [name for name in needs if not hasattr(model, name)]:
            raise ValueError(f"`model` must have {' and '.join(needs)}, got {model!r:.80} without {missing[0]}")
        self.possible = self.tables.possible
        self.features = self.source = Inputs(features, self.admissible)
        self.visits, self.dimension, self.fitted = np.zeros(shape), np.zeros(()), np.zeros(())
        # The caller's model as it is now, seeded so that it learns the same again.
        self._template = seeded(copy.deepcopy(model))
        self._every = _schedule(every)
        own = f"members {self.members}", f"admissible {fingerprint(self.admissible)}", *self.tables.settings
        self.settings = *own, f"model {described(self._template)}", f"every {self._every}"
        # (n, 2 + d): 1 where an episode begins, outcomes, inputs; rows beyond the examples seen are spare.
        self._log = np.zeros((0, 2))
        self._waits = False
        # One thread of BLAS and OpenMP: the same bits on every machine, and small questions are answered faster.
        self._threads = _Threads()
        self.copies = self._fit(self._log)

    def prepare(self, context: Context) -> Answers:
        """Ask all copies that have learned something: after two examples, all of them."""
        inputs = self.features(context, int(self.dimension) or None)
        tables = np.stack([self.tables.prior] * self.members)
        with self._threads.limit(limits=1):
            # A model that was never fitted cannot be asked; example 0 or 1 reaches every copy.
            for m in np.flatnonzero(lessons(min(int(self.fitted), 2), self.members).any(axis=1)):
                answers = np.asarray(self.copies[m].ask(inputs[self.admissible]), dtype=np.float64)
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
        """Remember an episode, and fit the copies to all examples if that is due; raise and change nothing if not."""
        pairs = episode.states, episode.actions
        if not (allowed := self.admissible[pairs]).all():
            state, action = (int(index[~allowed][0]) for index in pairs)
            raise ValueError(f"`actions` must be admissible, got {action} in state {state}")
        log = self._longer_log(asked.inputs[pairs], episode.outcomes)
        if self._is_due(len(log)):
            try:
                self.copies, self.fitted = self._fit(log), np.array(float(len(log)))
                self._waits = False
            except ValueError as error:
                self._wait(len(log), error)
        np.add.at(self.visits, pairs, 1.0)
        self.dimension = np.array(float(log.shape[1] - 2))

    def _longer_log(self, inputs: FloatArray, outcomes: NDArray[Any]) -> FloatArray:
        """Return the log with the examples of an episode, which count once the account has them."""
        seen, examples = self.account.examples, np.column_stack([np.eye(1, len(inputs))[0], outcomes, inputs])
        if seen + len(examples) > len(self._log):  # twice the room: an example costs the same however many there are
            room = np.empty((seen + len(examples), examples.shape[1]))
            self._log = np.concatenate([self._log[:seen].reshape(seen, examples.shape[1]), room])
        self._log[seen : seen + len(examples)] = examples
        return self._log[: seen + len(examples)]

    def _is_due(self, examples: int) -> bool:
        if isinstance(self._every, int):
            return (self.account.episodes + 1) % self._every == 0
        # Geometric: the cost of all fits is a constant times that of the last.
        growth = 1.0 if isinstance(self._every, str) else self._every
        return examples >= (1.0 + growth) * int(self.fitted)

    def _wait(self, examples: int, error: ValueError) -> None:
        """Go on with the copies as they are, and warn once; raise if the model could not be fitted to many examples."""
        if not self.fitted and examples >= PATIENCE:
            raise error
        if not self._waits:
            model = type(self._template).__name__
            rule = f"waits for more than {examples} examples, and the prediction stays as it is: {error}"
            warnings.warn(f"{model} {rule:.300}", stacklevel=5)
        self._waits = True

    def _fit(self, log: FloatArray) -> list[RegressorCopy | ClassifierCopy]:
        """Return copies that are fitted to their part of a log."""
        copies = [self.tables.learner(self._template, len(self.admissible)) for _ in range(self.members)]
        inputs, outcomes = log[:, 2:], log[:, 1].astype(self.tables.outcome_type)
        with self._threads.limit(limits=1):
            for pupil, lesson in zip(copies, lessons(len(log), self.members), strict=True):
                if lesson.any():
                    pupil.fit(inputs[lesson], outcomes[lesson])
                    # Some, such as nearest neighbours, take too few examples and fail when they are asked.
                    pupil.ask(inputs[:1])
        return copies

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what was learned, and from what the copies can be made again."""
        return {**super().state(), "log": self._log[: self.account.examples].copy()}

    def load_state(self, state: State) -> None:
        """Load what was learned, or change nothing."""
        before = super().state()
        super().load_state(state)
        try:
            log = numbers("log", state, (self.account.examples, 2 + int(self.dimension)))
            if not 0 <= self.fitted <= len(log):
                raise ValueError(f"`state` must hold 'fitted' in 0..{len(log)}, got {self.fitted}")
            self.copies, self._log = self._fit(log[: int(self.fitted)]), log
        except BaseException:
            super().load_state(before)
            raise


class _Threads(threadpoolctl.ThreadpoolController):  # type: ignore[misc]
    """The thread pools of the libraries that are loaded by now; a copy, in another process say, looks for its own."""

    def __reduce__(self) -> tuple[type[_Threads], tuple[()]]:
        return _Threads, ()


def lessons(count: int, members: int) -> BoolArray:
    """Return (M, count): which copies learn the examples 0, 1, ...: all but one of them each.

    Copy ⌊M·{φi²}⌋ misses example i, φ the golden ratio: evenly spread over every arithmetic progression (Weyl 1916).
    With i mod M, and M a divisor of the horizon, a copy would miss the same step of every episode.

    >>> lessons(8, 2).astype(int)
    array([[0, 1, 0, 1, 1, 0, 0, 0],
           [1, 0, 1, 0, 0, 1, 1, 1]])
    """
    if members == 1:
        return np.ones((1, count), dtype=np.bool_)
    places = np.arange(count, dtype=np.uint64)
    # In integers, which wrap: floats would lose the fraction for large i.
    fractions = places * places * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)  # {φi²}·2³²: φ·2⁶⁴ wraps around
    groups = fractions * np.uint64(members) >> np.uint64(32)
    return np.asarray(groups != np.arange(members, dtype=np.uint64)[:, None])


def _schedule(every: Any) -> float | str:
    """Return a number of episodes, an int; a fraction of examples, a float; or "doubling"."""
    if isinstance(every, str) and every == "doubling":
        return every
    with contextlib.suppress(ValueError):
        return positive_integer("every", every)
    with contextlib.suppress(ValueError):
        return probability("every", every)
    rule = 'a number of episodes, or a fraction of examples in (0, 1), or "doubling"'
    raise ValueError(f"`every` must be {rule}, got {every!r:.60}")
