"""What the oracles made of oracles share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.base import Oracle
from omg_cmdp.oracles.frame import Forecasters
from omg_cmdp.oracles.losses import Loss
from omg_cmdp.persistence import State, all_or_nothing, joint_state, part_of
from omg_cmdp.validation import FloatArray, listed


class Composite(Forecasters):
    """Forecasters that hand contexts and episodes on to `oracles`, all judged by `loss`."""

    def __init__(
        self, oracles: Sequence[Any], loss: Loss, *, horizon: int, part_horizon: int | None = None, count: int = 1
    ) -> None:
        super().__init__(horizon, count=count)
        self.loss = loss
        self.oracles = _checked(oracles, loss.judges, part_horizon or horizon)

    def prepare(self, context: Context) -> Context:
        """Return the context as it is: each oracle prepares its own."""
        return context

    def predictions(self, context: Context) -> FloatArray:
        """Return what all oracles predict, as one array."""
        tables = [oracle.predict(context) for oracle in self.oracles]
        shapes = [np.shape(table) for table in tables]
        if len(set(shapes)) > 1:
            raise ValueError(f"`oracles` must predict tables of one shape, got {shapes}")
        return np.stack(tables)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the states of all oracles, each behind its number: "0/loss", "1/loss", ..."""
        return {**super().state(), **joint_state(self._parts())}

    def load_state(self, state: State) -> None:
        """Load the states of all oracles, or of none."""
        with all_or_nothing(*self.oracles):
            for name, oracle in self._parts().items():
                oracle.load_state(part_of(state, name))
            super().load_state(state)  # what the offline fits keep themselves

    def _parts(self) -> dict[str, Oracle]:
        return {str(i): oracle for i, oracle in enumerate(self.oracles)}


def _checked(oracles: Sequence[Any], kind: type[Oracle], horizon: int) -> list[Any]:
    """Return the list of `oracles`: at least one, all of `kind`, none twice, all for episodes of `horizon` steps."""
    found = listed("oracles", oracles)
    if not found or not all(isinstance(oracle, kind) for oracle in found):
        names = [type(oracle).__name__ for oracle in found]
        raise ValueError(f"`oracles` must be at least one {kind.__name__}, got {names}")
    if len({id(oracle) for oracle in found}) < len(found):
        raise ValueError("`oracles` must be different objects, got one of them twice")
    horizons = [getattr(oracle, "horizon", horizon) for oracle in found]
    if any(other != horizon for other in horizons):
        raise ValueError(f"`oracles` must have horizon {horizon}, got {horizons}")
    return found
