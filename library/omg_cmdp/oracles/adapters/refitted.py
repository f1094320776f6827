"""Models that cannot learn online, such as gradient boosting, as oracles: fitted again to all examples, now and then.

A fit costs at least as much as there are examples. With fits to n₁ < n₂ < ... examples, n_{i+1} >= (1 + g)·nᵢ, all of
them together see at most 1 + 1/g times the examples of the last one, however long the run and its episodes. Between two
fits the prediction stays what it was; examples wait in the log. So they do if a model refuses to be fitted to the ones
there are, as one with five neighbours or folds may: a warning says so, and the model is tried again at the next fit.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Unpack, final

import numpy as np
import threadpoolctl
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.adapters.ensemble import Answers, Ensemble, lessons
from omg_cmdp.oracles.adapters.kinds import RewardTables, TransitionTables
from omg_cmdp.oracles.adapters.models import DynamicsOptions, ModelKind, Options
from omg_cmdp.oracles.frame import DynamicsFrame, RewardFrame
from omg_cmdp.validation import FloatArray, positive_integer, probability

PATIENCE = 200
"""The number of examples to which a model must have been fitted once; before, it may refuse because they are few."""


class _Regressor(ModelKind):
    """Anything with `fit`."""

    needs = ("fit", "predict")

    def fit(self, pupil: Any, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        pupil.fit(inputs, outcomes)


class _Pupil:
    """A classifier, and the next states that it has seen, sorted."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.seen = np.zeros(0, dtype=np.int64)


class _Classifier(ModelKind):
    """Next states are numbered anew, as some packages want classes 0, 1, ...; a single one needs no model."""

    needs = ("fit", "predict_proba")

    def fresh(self, template: Any) -> _Pupil:
        return _Pupil(super().fresh(template))

    def fit(self, pupil: _Pupil, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        # Some packages refuse labels that are not 0, 1, 2, ...
        pupil.seen, classes = np.unique(outcomes, return_inverse=True)
        if len(pupil.seen) > 1:
            pupil.model.fit(inputs, classes)

    def ask(self, pupil: _Pupil, inputs: FloatArray) -> ArrayLike:
        answers = np.zeros((len(inputs), self.states))
        answers[:, pupil.seen] = pupil.model.predict_proba(inputs) if len(pupil.seen) > 1 else 1.0
        return answers


class _Threads(threadpoolctl.ThreadpoolController):  # type: ignore[misc]
    """The thread pools of the libraries that are loaded by now; a copy, in another process say, looks for its own."""

    def __reduce__(self) -> tuple[type[_Threads], tuple[()]]:
        return _Threads, ()


class _Refitted(Ensemble):
    """Copies that are fitted to the log when they are due. It is saved as the log, and how much of it they know."""

    learned = (*Ensemble.learned, "fitted")

    def __init__(self, *arguments: Any, every: float | str = "doubling", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.every = _schedule(every)
        self.settings = (*self.settings, f"every {self.every}")
        self.fitted = np.zeros(())
        self._waits = False
        # One thread of BLAS and OpenMP: the same bits on every machine, and small questions are answered faster.
        self._threads = _Threads()

    def taught(self) -> int:
        return int(self.fitted)

    def prepare(self, context: Context) -> Answers:
        with self._threads.limit(limits=1):
            return super().prepare(context)

    def take_in(self, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        self.remember(inputs, outcomes)  # beyond `seen`: nothing has changed if the fit fails
        count = self.account.examples + len(outcomes)
        if self._is_due(count):
            try:
                self.copies, self.fitted = self._fit(self._log[:count]), np.array(float(count))
                self._waits = False
            except ValueError as error:
                self._wait(count, error)

    def _wait(self, examples: int, error: ValueError) -> None:
        """Go on with the copies as they are, and warn once; raise if the model could not be fitted to many examples."""
        if not self.taught() and examples >= PATIENCE:
            raise error
        if not self._waits:
            model = type(self._template).__name__
            rule = f"waits for more than {examples} examples, and the prediction stays as it is: {error}"
            warnings.warn(f"{model} {rule:.300}", stacklevel=6)
        self._waits = True

    def relearned(self, log: FloatArray) -> list[Any]:
        if not 0 <= self.fitted <= len(log):
            raise ValueError(f"`state` must hold 'fitted' in 0..{len(log)}, got {self.fitted}")
        return self._fit(log[: self.taught()])

    def _is_due(self, examples: int) -> bool:
        if isinstance(self.every, int):
            return (self.account.episodes + 1) % self.every == 0
        # Geometric: the cost of all fits is a constant times that of the last.
        growth = 1.0 if isinstance(self.every, str) else self.every
        return examples >= (1.0 + growth) * self.taught()

    def _fit(self, log: FloatArray) -> list[Any]:
        copies = self.fresh()
        with self._threads.limit(limits=1):
            inputs, outcomes = self.read(log)
            self.teach(copies, 0, inputs, outcomes)
            # Some, such as nearest neighbours, take too few examples and fail when they are asked.
            for pupil, lesson in zip(copies, lessons(0, len(log), self.members), strict=True):
                if lesson.any():
                    self.learner.ask(pupil, inputs[:1])
        return copies


@final
class RefittedRewards(RewardFrame[_Refitted]):
    """Rewards by any regressor, fitted anew to all examples now and then: boosting, a forest, a pipeline.

    Between two fits the prediction stays as it was; before the first one all rewards are ½. A model that needs more
    examples waits for them, with a warning. The uncertainty is a proxy, the jackknife's, and `regret_bound` is inf:
    aggregate the oracle with one that has a bound.

    Parameters
    ----------
    model : regressor
        Anything with `fit` and `predict`. It is copied as it is now; a `random_state` of None becomes 0.
    every : "doubling", int or float, default "doubling"
        "doubling" fits anew whenever there are twice as many examples as at the last fit: all fits together see at most
        2 times the examples of the last one. A fraction g fits when there are g times more, and sees at most 1 + 1/g
        times its examples; an integer fits after that number of episodes, at a cost that grows like their square.
    **options
        Those of `adapters.models.Options`: `states`, `actions` and `horizon`, which are required, and `features`,
        `admissible` and `members`.

    Examples
    --------
    >>> class Mean:
    ...     def fit(self, inputs, rewards):
    ...         self.mean = rewards.mean()
    ...     def predict(self, inputs):
    ...         return np.full(len(inputs), self.mean)
    >>> oracle = RefittedRewards(Mean(), every=10, states=1, actions=1, horizon=1)
    >>> for _ in range(19):
    ...     oracle.update([1.0], states=[0], actions=[0], rewards=[0.75])
    >>> oracle.predict([1.0])  # fitted once, to ten examples
    array([[0.75]])
    """

    def __init__(self, model: Any, *, every: float | str = "doubling", **options: Unpack[Options]) -> None:
        super().__init__(_Refitted(model, _Regressor, RewardTables, every=every, **options))


@final
class RefittedDynamics(DynamicsFrame[_Refitted]):
    """Transitions by any classifier, fitted anew to all examples now and then: boosting, a forest, a pipeline.

    Before the first fit rows are uniform; after it next states that were never seen have the `floor`. A model that
    needs more examples waits for them, with a warning. The uncertainty is a proxy, the jackknife's, and `regret_bound`
    is inf: aggregate the oracle with one that has a bound.

    Parameters
    ----------
    model : classifier
        Anything with `fit` and `predict_proba`. It is copied as it is now; a `random_state` of None becomes 0.
    every : "doubling", int or float, default "doubling"
        "doubling" fits anew whenever there are twice as many examples as at the last fit: all fits together see at most
        2 times the examples of the last one. A fraction g fits when there are g times more, and sees at most 1 + 1/g
        times its examples; an integer fits after that number of episodes, at a cost that grows like their square.
    **options
        Those of `adapters.models.DynamicsOptions`: `states`, `actions` and `horizon`, which are required, and
        `features`, `admissible`, `members`, `support` and `floor`.

    Examples
    --------
    >>> class Shares:
    ...     def fit(self, inputs, classes):
    ...         self.shares = np.bincount(classes) / len(classes)
    ...     def predict_proba(self, inputs):
    ...         return np.tile(self.shares, (len(inputs), 1))
    >>> oracle = RefittedDynamics(Shares(), every=1, members=1, states=2, actions=1, horizon=4)
    >>> oracle.update([1.0], states=[0, 0, 0, 0], actions=[0, 0, 0, 0], next_states=[1, 1, 0, 1])
    >>> oracle.predict([1.0])[0]
    array([[0.25, 0.75]])
    """

    def __init__(self, model: Any, *, every: float | str = "doubling", **options: Unpack[DynamicsOptions]) -> None:
        super().__init__(_Refitted(model, _Classifier, TransitionTables, every=every, **options))


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
