"""River and scikit-learn in the place of an oracle: all predictions of an episode, then its examples, one at a time.

Each gets the data in its own form, made beforehand, and one model for each (state, action), as the oracles have it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from river import linear_model as river
from sklearn import linear_model as sklearn

from omg_cmdp.contexts import Context
from omg_cmdp.validation import FloatArray

DIMENSION, STATES, ACTIONS, HORIZON = 10, 10, 4, 10
PAIRS = STATES * ACTIONS


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """One episode of H examples; the inputs of the peers are derived from it once."""

    context: Context
    states: NDArray[np.int64]
    actions: NDArray[np.int64]
    rewards: FloatArray
    next_states: NDArray[np.int64]

    @functools.cached_property
    def pairs(self) -> list[int]:
        """The model of each example."""
        return [int(pair) for pair in self.states * ACTIONS + self.actions]

    @functools.cached_property
    def named(self) -> dict[str, float]:
        """The features as River wants them."""
        return {f"x{i}": float(x) for i, x in enumerate(self.context)}

    @functools.cached_property
    def row(self) -> FloatArray:
        """The features as scikit-learn wants them."""
        return np.array([self.context])

    @functools.cached_property
    def stacked(self) -> Any:
        """The features of all pairs side by side, (S·A, S·A·d): those of a pair are zero in the columns of others."""
        return sp.csr_matrix(sp.kron(sp.eye_array(PAIRS), self.row))

    @functools.cached_property
    def stacked_examples(self) -> Any:
        """The rows of `stacked` that were visited."""
        return self.stacked[self.pairs]


Learner = Callable[[Data], object]
"""Predicts everything for the context, then learns from the episode."""


def river_rewards() -> Learner:
    """Return S·A linear regressions."""
    models: list[Any] = [river.LinearRegression() for _ in range(PAIRS)]

    def learn(data: Data) -> object:
        table = [model.predict_one(data.named) for model in models]
        for pair, reward in zip(data.pairs, data.rewards.tolist(), strict=True):
            models[pair].learn_one(data.named, reward)
        return table

    return learn


def river_dynamics() -> Learner:
    """Return S·A softmax regressions."""
    models: list[Any] = [river.SoftmaxRegression() for _ in range(PAIRS)]

    def learn(data: Data) -> object:
        table = [model.predict_proba_one(data.named) for model in models]
        for pair, successor in zip(data.pairs, data.next_states.tolist(), strict=True):
            models[pair].learn_one(data.named, successor)
        return table

    return learn


def sklearn_rewards() -> Learner:
    """Return S·A linear regressions; since the models differ, every example is a call of its own."""
    models = [_regressor(DIMENSION) for _ in range(PAIRS)]

    def learn(data: Data) -> object:
        table = [model.predict(data.row) for model in models]
        for pair, reward in zip(data.pairs, data.rewards[:, None], strict=True):
            models[pair].partial_fit(data.row, reward)
        return table

    return learn


def sklearn_dynamics() -> Learner:
    """Return S·A logistic regressions, one against the rest for each next state; a call for every example."""
    models = [_classifier(DIMENSION) for _ in range(PAIRS)]

    def learn(data: Data) -> object:
        table = [model.predict_proba(data.row) for model in models]
        for pair, successor in zip(data.pairs, data.next_states[:, None], strict=True):
            models[pair].partial_fit(data.row, successor)
        return table

    return learn


def stacked_rewards() -> Learner:
    """Return scikit-learn at its best, one regression in sparse features of (c, s, a): two calls for an episode."""
    model = _regressor(PAIRS * DIMENSION)
    return lambda data: (model.predict(data.stacked), model.partial_fit(data.stacked_examples, data.rewards))


def stacked_dynamics() -> Learner:
    """Return the same for transitions."""
    model = _classifier(PAIRS * DIMENSION)
    return lambda data: (model.predict_proba(data.stacked), model.partial_fit(data.stacked_examples, data.next_states))


def _regressor(size: int) -> Any:
    """Return a model that has seen an example: without one it does not predict."""
    return sklearn.SGDRegressor().partial_fit(np.zeros((1, size)), [0.5])


def _classifier(size: int) -> Any:
    """Return a model that has seen an example of each class."""
    classes = np.arange(STATES)
    return sklearn.SGDClassifier(loss="log_loss").partial_fit(np.zeros((STATES, size)), classes, classes=classes)
