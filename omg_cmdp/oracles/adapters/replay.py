"""Models that are saved as the log of what they learned, and restored by learning it again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.oracles.adapters.ensemble import Ensemble
from omg_cmdp.persistence import State, numbers
from omg_cmdp.validation import FloatArray


class Replayed(Ensemble):
    """An ensemble of models of which nothing is known but how they learn.

    The log holds every example: memory grows with their number, and restoring takes as long as learning did. It is the
    price of saving any model to the bit without a pickle.
    """

    _log = np.zeros((0, 1))
    """(n, 1 + d): outcomes and inputs; rows beyond the examples seen are room for more."""

    def _teach(self, copies: list[Any], seen: int, inputs: FloatArray, outcomes: NDArray[Any]) -> None:
        examples = np.column_stack([outcomes, inputs])
        if seen + len(examples) > len(self._log):
            room = np.empty((seen + len(examples), examples.shape[1]))
            self._log = np.concatenate([self._log[:seen].reshape(seen, examples.shape[1]), room])
        self._log[seen : seen + len(examples)] = examples
        super()._teach(copies, seen, inputs, outcomes)

    def _memory(self) -> dict[str, NDArray[Any]]:
        return {"log": self._log[: self._seen()]}

    def _revive(self, memory: State) -> None:
        log = numbers("log", memory, (self._seen(), 1 + int(self._dimension)))
        copies = self._fresh()
        for first in range(0, len(log), self.horizon):
            outcomes, inputs = log[first : first + self.horizon, 0], log[first : first + self.horizon, 1:]
            super()._teach(copies, first, inputs, outcomes.astype(self.outcome_type))
        self._copies, self._log = copies, log
