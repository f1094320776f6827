"""The two kinds of tables that a foreign model's answers become: mean rewards, and transitions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.oracles.adapters.models import ClassifierCopy, RegressorCopy
from omg_cmdp.oracles.losses import LOG, SMALLEST_PROBABILITY, SQUARE
from omg_cmdp.oracles.simplex import support_mask
from omg_cmdp.validation import BoolArray, FloatArray, positive_number


class RewardTables:
    """A regressor's answers, cut to [0, 1]; untrained ½, from which no reward is further away than ½."""

    loss, learner, outcome_type, most = SQUARE, RegressorCopy, np.float64, 1.0

    def __init__(self, admissible: BoolArray) -> None:
        self.prior = np.where(admissible, 0.5, 0.0)
        self.prior_divergence = np.full(admissible.shape, 0.25)
        self.settings: tuple[str, ...] = ()
        self.possible: BoolArray | None = None

    def rows(self, answers: FloatArray) -> FloatArray:
        """Return the `answers` about the admissible pairs, (n,), as entries of a table."""
        return np.clip(answers, 0.0, 1.0)


class TransitionTables:
    """A classifier's answers, cut to the support, and to about `floor` or more in it.

    Untrained, they are uniform over the K next states of the support, from which certainty is furthest: D² = 2 - 2/√K.
    """

    loss, learner, outcome_type, most = LOG, ClassifierCopy, np.int64, 2.0

    def __init__(self, admissible: BoolArray, support: ArrayLike | None = None, floor: float = 1e-4) -> None:
        states, actions = admissible.shape
        mask = support_mask(support, states, actions)
        self.floor = positive_number("floor", floor)
        # A larger floor than the uniform probability could not be met by all next states at once.
        if self.floor * states > 1.0:
            raise ValueError(f"`floor` must be at most 1/{states}, the uniform probability, got {floor!r}")
        successors = mask.sum(axis=-1).astype(np.float64)
        self.prior = mask / successors[..., None]
        self.prior_divergence = 2.0 - 2.0 / np.sqrt(successors)
        self._support = mask[admissible]
        self.possible = None if mask.all() else mask
        self.settings = (f"floor {self.floor}", f"support {fingerprint(mask)}")

    def rows(self, answers: FloatArray) -> FloatArray:
        """Return the `answers` about the admissible pairs, (n, S), as rows of a table."""
        for least in (SMALLEST_PROBABILITY, self.floor):  # a row without mass in the support becomes uniform
            answers = np.where(self._support, np.maximum(answers, least), 0.0)
            answers /= answers.sum(axis=-1, keepdims=True)
        return answers


Tables = RewardTables | TransitionTables
