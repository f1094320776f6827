"""The two kinds of ensembles: regressors for rewards, classifiers for dynamics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.oracles.adapters.ensemble import Ensemble
from omg_cmdp.oracles.adapters.inputs import InputMap
from omg_cmdp.oracles.frame import DynamicsForecasters, RewardForecasters
from omg_cmdp.oracles.losses import SMALLEST_PROBABILITY
from omg_cmdp.oracles.support import support_mask
from omg_cmdp.validation import FloatArray, positive_number


class EnsembleRewards(Ensemble, RewardForecasters):
    """Copies of a regressor, whose answers are cut to [0, 1]."""

    outcome_type = np.float64

    def _prior(self) -> tuple[FloatArray, FloatArray, float]:
        """½, from which no reward is further away than ½."""
        return np.where(self._admissible, 0.5, 0.0), np.full((self.states, self.actions), 0.25), 1.0

    def _rows(self, answers: FloatArray) -> FloatArray:
        return np.clip(answers, 0.0, 1.0)


class EnsembleDynamics(Ensemble, DynamicsForecasters):
    """Copies of a classifier, whose answers are cut to the `support` (S, A, S), and to about `floor` or more in it.

    The other arguments are those of `Ensemble`.
    """

    outcome_type = np.int64

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
        support: ArrayLike | None = None,
        floor: float = 1e-4,
    ) -> None:
        super().__init__(
            model,
            states=states,
            actions=actions,
            horizon=horizon,
            features=features,
            admissible=admissible,
            members=members,
        )
        self._support = support_mask(support, self.states, self.actions)
        self.floor = positive_number("floor", floor)
        if self.floor * self.states > 1.0:
            raise ValueError(f"`floor` must be at most 1/{self.states}, the uniform probability, got {floor!r}")

    def _prior(self) -> tuple[FloatArray, FloatArray, float]:
        """Uniform over the K next states of the support, from which certainty is furthest: D² = 2 - 2/√K."""
        successors = self._support.sum(axis=-1).astype(np.float64)
        return self._support / successors[..., None], 2.0 - 2.0 / np.sqrt(successors), 2.0

    def _rows(self, answers: FloatArray) -> FloatArray:
        support = self._support[self._admissible]
        for least in (SMALLEST_PROBABILITY, self.floor):  # a row without mass in the support becomes uniform
            answers = np.where(support, np.maximum(answers, least), 0.0)
            answers /= answers.sum(axis=-1, keepdims=True)
        return answers
