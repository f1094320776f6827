"""The ledger of a run: one row per episode, exact."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context, context_from_json, context_to_json
from omg_cmdp.persistence import State
from omg_cmdp.validation import FloatArray

if TYPE_CHECKING:
    import pandas

COLUMNS = (
    "regret",
    "value",
    "optimal_value",
    "return",
    "gamma",
    "tuples",
    "certificate",
    "iterations",
    "optimum_error",
    "plan_gap",
    "policy_error",
    "reward_error",
    "dynamics_error",
    "reward_loss",
    "dynamics_loss",
    "seconds_deciding",
    "seconds_playing",
    "seconds_learning",
    "seconds_accounting",
)


class Ledger:
    """What happened, by episode. `regret` is V*(c) - V^π(c) of the policy played, computed and not estimated.

    `optimum_error`, `plan_gap` and `policy_error` are the three value differences that sum to the regret;
    `reward_error` and `dynamics_error` are Σ q·(f̂ - f*)² and Σ q·D²(P̂, P*) under the true occupancy q.
    """

    def __init__(self) -> None:
        self.contexts: list[Context] = []
        self.propensities: list[FloatArray] = []
        """Of the actions taken, if the run was asked to keep them."""
        self._rows: list[tuple[float, ...]] = []
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def episodes(self) -> int:
        """The number of episodes so far, with those that were drained."""
        return self._forgotten + len(self._rows)

    def drain(self) -> Ledger:
        """Return all rows as a ledger of their own, and forget them: a long run keeps its memory flat."""
        drained = copy.copy(self)
        self._forgotten = self.episodes
        self._rows, self.contexts, self.propensities = [], [], []
        return drained

    def add(self, context: Context, row: tuple[float, ...], propensities: FloatArray | None = None) -> None:
        """Append one episode, its numbers in the order of `COLUMNS`."""
        self._rows.append(row)
        self.contexts.append(context)
        if propensities is not None:
            self.propensities.append(propensities)

    def column(self, name: str) -> FloatArray:
        """Return one column, (T,)."""
        if name not in COLUMNS:
            raise ValueError(f"`name` must be one of {', '.join(COLUMNS)}, got {name!r}")
        place = COLUMNS.index(name)
        return np.array([row[place] for row in self._rows], dtype=np.float64)

    @property
    def regret(self) -> FloatArray:
        """The exact regret of every episode, (T,)."""
        return self.column("regret")

    def table(self) -> pandas.DataFrame:
        """Return a data frame with a row per episode, indexed by the episode, which counts from 1."""
        import pandas

        index = pandas.RangeIndex(self._forgotten + 1, self.episodes + 1, name="episode")
        return pandas.DataFrame(self.rows(), columns=list(COLUMNS), index=index)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all of it, for a checkpoint."""
        contexts = np.array([context_to_json(context) for context in self.contexts], dtype=np.str_)
        propensities = np.array(self.propensities, dtype=np.float64)
        forgotten = np.array(self._forgotten)
        return {"rows": self.rows(), "contexts": contexts, "propensities": propensities, "forgotten": forgotten}

    def rows(self) -> FloatArray:
        """Return a row per episode, (T, columns)."""
        return np.array(self._rows, dtype=np.float64).reshape(-1, len(COLUMNS))

    def load_state(self, state: State) -> None:
        """Load a state."""
        rows = [tuple(row) for row in state["rows"].tolist()]
        contexts = [context_from_json(text) for text in state["contexts"].tolist()]
        self._forgotten = int(state["forgotten"])
        self._rows, self.contexts, self.propensities = rows, contexts, list(state["propensities"])
