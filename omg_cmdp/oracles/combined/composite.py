"""Oracles made of oracles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.base import Oracle
from omg_cmdp.oracles.frame import Forecasters
from omg_cmdp.persistence import State, all_or_nothing, joint_state, part_of, read_state
from omg_cmdp.validation import FloatArray


class Composite(Forecasters):
    """An oracle that hands contexts and episodes on to `oracles`, all of `kind`."""

    kind: type[Oracle]

    def __init__(self, oracles: Sequence[Any], *, horizon: int, part_horizon: int, count: int) -> None:
        super().__init__(horizon, count)
        self.oracles = _checked(oracles, self.kind, part_horizon)

    def _prepare(self, context: Context) -> Context:
        return context

    def _predictions(self, context: Context) -> FloatArray:
        """Return what all oracles predict, as one array."""
        tables = [oracle.predict(context) for oracle in self.oracles]
        shapes = [np.shape(table) for table in tables]
        if len(set(shapes)) > 1:
            raise ValueError(f"`oracles` must predict tables of one shape, got {shapes}")
        return np.stack(tables)

    def _parts(self) -> dict[str, Oracle]:
        return {str(i): oracle for i, oracle in enumerate(self.oracles)}

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the states of all oracles, each behind its number ("0/loss", "1/loss", ...), and the own account."""
        return {**super().state(), **joint_state(self._parts())}

    def load_state(self, state: State) -> None:
        """Load the states of all oracles and the account, or nothing."""
        state = read_state(state)
        with all_or_nothing(*self.oracles):
            for name, oracle in self._parts().items():
                oracle.load_state(part_of(state, name))
            super().load_state({name: state[name] for name in state if "/" not in name})


def _checked(oracles: Sequence[Any], kind: type[Oracle], horizon: int) -> list[Any]:
    """Return the list of `oracles`: at least one, all of `kind`, none twice, all for episodes of `horizon` steps."""
    found = list(oracles)
    if not found or not all(isinstance(oracle, kind) for oracle in found):
        names = [type(oracle).__name__ for oracle in found]
        raise ValueError(f"`oracles` must be at least one {kind.__name__}, got {names}")
    if len({id(oracle) for oracle in found}) < len(found):
        raise ValueError("`oracles` must be different objects, got one of them twice")
    horizons = [getattr(oracle, "horizon", horizon) for oracle in found]
    if any(other != horizon for other in horizons):
        raise ValueError(f"`oracles` must have horizon {horizon}, got {horizons}")
    return found
