"""Models that cannot learn online, such as gradient boosting, as oracles: fitted again to all examples, now and then.

A fit costs at least as much as there are examples. With fits to n₁ < n₂ < ... examples, n_{i+1} >= (1 + g)·nᵢ, all of
them together see at most 1 + 1/g times the examples of the last one, however long the run and its episodes. Between two
fits the prediction stays what it was; examples wait in the log.
"""

from __future__ import annotations

import contextlib
from typing import Any, Unpack, final

import numpy as np
import threadpoolctl
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.adapters.ensemble import Asked, DynamicsOptions, Ensemble, Learner, Options
from omg_cmdp.oracles.adapters.kinds import RewardTables, TransitionTables
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.frame import Frame, learn_rewards, learn_transitions
from omg_cmdp.validation import FloatArray, positive_integer, probability


class _Regressor(Learner):
    """A `random_state` of None becomes 0, in every step of a pipeline, so that a fit can be made again to the bit."""

    needs = ("fit", "predict")

    def template(self, model: Any) -> Any:
        made = super().template(model)
        parameters = made.get_params().items() if hasattr(made, "get_params") else ()
        unset = [name for name, value in parameters if name.split("__")[-1] == "random_state" and value is None]
        return made.set_params(**dict.fromkeys(unset, 0)) if unset else made

    def fit(self, pupil: Any, inputs: FloatArray, outcomes: NDArray[Any], seen: int) -> None:
        pupil.fit(inputs, outcomes)

    def ask(self, pupil: Any, inputs: FloatArray) -> ArrayLike:
        return np.asarray(pupil.predict(inputs))


class _Pupil:
    """A classifier, and the next states that it has seen, sorted."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.seen = np.zeros(0, dtype=np.int64)


class _Classifier(_Regressor):
    """Next states are numbered anew, as some packages want classes 0, 1, ...; a single one needs no model."""

    needs = ("fit", "predict_proba")

    def fresh(self, template: Any) -> _Pupil:
        return _Pupil(super().fresh(template))

    def fit(self, pupil: _Pupil, inputs: FloatArray, outcomes: NDArray[Any], seen: int) -> None:
        pupil.seen, classes = np.unique(outcomes, return_inverse=True)
        if len(pupil.seen) > 1:
            pupil.model.fit(inputs, classes)

    def ask(self, pupil: _Pupil, inputs: FloatArray) -> ArrayLike:
        answers = np.zeros((len(inputs), self.states))
        answers[:, pupil.seen] = pupil.model.predict_proba(inputs) if len(pupil.seen) > 1 else 1.0
        return answers


class _OneThread:
    """Holds BLAS and OpenMP to one thread: the same bits on every machine, and small questions are answered faster."""

    def __init__(self) -> None:
        self._controller = threadpoolctl.ThreadpoolController()  # it knows the libraries that are loaded by now

    def __reduce__(self) -> tuple[type[_OneThread], tuple[()]]:
        return _OneThread, ()

    def __call__(self) -> Any:
        return self._controller.limit(limits=1)


class _Refitted(Ensemble):
    """Copies that are fitted to the log when they are due. It is saved as the log, and how much of it they know."""

    learned = (*Ensemble.learned, "fitted")

    def __init__(self, *arguments: Any, every: float = 0.1, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.every = _schedule(every)
        self.settings = (*self.settings, f"every {self.every}")
        self.fitted = np.zeros(())
        self._one_thread = _OneThread()

    def taught(self) -> int:
        return int(self.fitted)

    def prepare(self, context: Context) -> Asked:
        with self._one_thread():
            return super().prepare(context)

    def take_in(self, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        self.remember(self.written(inputs, outcomes))  # beyond `seen`: nothing has changed if the fit fails
        count = self.seen() + len(outcomes)
        if self._is_due(count):
            self.copies, self.fitted = self._fit(self._log[:count]), np.array(float(count))

    def relearned(self, log: FloatArray) -> list[Any]:
        if not 0 <= self.fitted <= len(log):
            raise ValueError(f"`state` must hold 'fitted' in 0..{len(log)}, got {self.fitted}")
        return self._fit(log[: self.taught()])

    def _is_due(self, examples: int) -> bool:
        if isinstance(self.every, int):
            return (self.account.episodes + 1) % self.every == 0
        return examples >= (1.0 + self.every) * self.taught()

    def _fit(self, log: FloatArray) -> list[Any]:
        copies = self.fresh()
        with self._one_thread():
            self.teach(copies, 0, *self.read(log))
        return copies


@final
class RefittedRewards(Frame[_Refitted], RewardOracle):
    """Rewards by anything with `fit` and `predict`: boosting, a forest, a pipeline. See `Ensemble` and `Options`.

    The copies are fitted after every so many episodes if `every` is an integer; if it is a fraction, whenever there are
    so many more examples than at the last fit. Before the first fit, and without data, all rewards are ½.
    """

    update = learn_rewards

    def __init__(self, model: Any, *, every: float = 0.1, **options: Unpack[Options]) -> None:
        super().__init__(_Refitted(model, _Regressor, RewardTables, every=every, **options))


@final
class RefittedDynamics(Frame[_Refitted], DynamicsOracle):
    """Transitions by anything with `fit` and `predict_proba`. See `RefittedRewards` and `DynamicsOptions`.

    Before the first fit rows are uniform; after it next states that were never seen have the `floor`.
    """

    update = learn_transitions

    def __init__(self, model: Any, *, every: float = 0.1, **options: Unpack[DynamicsOptions]) -> None:
        super().__init__(_Refitted(model, _Classifier, TransitionTables, every=every, **options))


def _schedule(every: Any) -> float:
    """Return a number of episodes, an int, or a fraction of examples, a float."""
    with contextlib.suppress(ValueError):
        return positive_integer("every", every)
    with contextlib.suppress(ValueError):
        return probability("every", every)
    raise ValueError(f"`every` must be a number of episodes, or a fraction of examples in (0, 1), got {every!r}")
