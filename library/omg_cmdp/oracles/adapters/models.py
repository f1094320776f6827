"""Copies of a foreign package's models, and the options of their oracles."""

from __future__ import annotations

import copy
import re
import types
from typing import Any, ClassVar, NotRequired, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.oracles.adapters.inputs import InputMap
from omg_cmdp.validation import FloatArray


def seeded(model: Any) -> Any:
    """Return `model` with 0 for every `random_state` of None, also in the steps of a pipeline; it is changed itself."""
    parameters = model.get_params().items() if hasattr(model, "get_params") else ()
    unset = [name for name, value in parameters if name.split("__")[-1] == "random_state" and value is None]
    return model.set_params(**dict.fromkeys(unset, 0)) if unset else model


def described(value: Any) -> str:
    """Return a text that tells models apart: their classes and settings, and those of the models inside them.

    Functions have their names only, and classes not their code. An address is no setting.

    >>> described({"weights": [0.5, None], "kind": int})
    "{'weights': [0.5, None], 'kind': builtins.int}"
    """
    match value:
        case type() | types.FunctionType() | types.BuiltinFunctionType():
            return f"{value.__module__}.{value.__qualname__}"
        case np.ndarray():  # whose repr is shortened
            return f"array {fingerprint(value)}"
        case np.random.RandomState():
            return f"RandomState {fingerprint(value.get_state(legacy=True))}"
        case dict():
            return "{" + ", ".join(f"{name!r}: {described(each)}" for name, each in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(described(each) for each in value) + "]"
    if hasattr(value, "get_params"):  # scikit-learn's, whose repr may be cut short or leave settings out
        return f"{described(type(value))} {described(value.get_params(deep=False))}"
    if repr(value).startswith("<"):  # Python's own, which says nothing
        return f"{described(type(value))} {described(getattr(value, '__dict__', {}))}"
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))


class RegressorCopy:
    """A copy of anything with `fit` and `predict`; `needs` names the methods that a model must have."""

    needs: ClassVar[tuple[str, ...]] = ("fit", "predict")

    def __init__(self, model: Any, states: int) -> None:
        self.model = copy.deepcopy(model)

    def fit(self, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        """Learn `inputs` (n, d) with `outcomes` (n,), n >= 1."""
        self.model.fit(inputs, outcomes)

    def ask(self, inputs: FloatArray) -> ArrayLike:
        """Return the answers (n,), once something was learned."""
        return np.asarray(self.model.predict(inputs))


class ClassifierCopy:
    """A copy of anything with `fit` and `predict_proba`, and the next states that it has seen, sorted."""

    needs: ClassVar[tuple[str, ...]] = ("fit", "predict_proba")

    def __init__(self, model: Any, states: int) -> None:
        self.model, self._states = copy.deepcopy(model), states
        self._seen = np.zeros(0, dtype=np.int64)

    def fit(self, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        """Learn `inputs` (n, d) with next states (n,), n >= 1."""
        # Numbered anew: some packages refuse labels that are not 0, 1, 2, ..., and most a single one.
        self._seen, classes = np.unique(outcomes, return_inverse=True)
        if len(self._seen) > 1:
            self.model.fit(inputs, classes)

    def ask(self, inputs: FloatArray) -> ArrayLike:
        """Return the probabilities of all next states, (n, S), once something was learned."""
        answers = np.zeros((len(inputs), self._states))
        answers[:, self._seen] = self.model.predict_proba(inputs) if len(self._seen) > 1 else 1.0
        return answers


class Options(TypedDict):
    """Keyword arguments of both oracles besides `model` and `every`.

    Parameters
    ----------
    states : int
        The number of states, S.
    actions : int
        The number of actions, A.
    horizon : int
        The largest number of steps of an episode, H.
    features : callable, optional
        context -> (S, A, d), the input of each pair; or (d,), to which state and action are added one-hot, as they are
        to a context that is a vector where no `features` are given. The first episode fixes d.
    admissible : array_like of bool, shape (S, A), optional
        The pairs that may be visited; by default all. Other pairs have no reward, no uncertainty and a uniform row, and
        the model is not asked about them.
    members : int, default 4
        The number of copies, whose spread is the uncertainty. A single copy learns everything, and u = b/(n + 1).
    """

    states: int
    actions: int
    horizon: int
    features: NotRequired[InputMap | None]
    admissible: NotRequired[ArrayLike | None]
    members: NotRequired[int]


class DynamicsOptions(Options):
    """Keyword arguments of the oracle of classifiers: those of `Options`, and two more.

    Parameters
    ----------
    support : array_like of bool, shape (S, A, S), optional
        The transitions that can happen, to which answers are cut; by default all. An episode with another one is
        refused.
    floor : float, default 1e-4
        The probability to which answers are raised, about, within the support.
    """

    support: NotRequired[ArrayLike | None]
    floor: NotRequired[float]
