"""What rivals share that are told what decisions cost, and what an episode may cost."""

from __future__ import annotations

import dataclasses

import numpy as np

from omg_cmdp.contexts import Context, keyed
from omg_cmdp.mdp.budgets import MOST_BUDGETS, Budgets, best_within
from omg_cmdp.mdp.limits import Given, limits_of
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.persistence import State, numbers
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.declared import Rival


class Limited(Rival):
    """A rival with `costs` and `budgets`, in the forms that `OMG` takes: tables, or functions of the context."""

    _: dataclasses.KW_ONLY
    costs: Given | None = None
    budgets: Given | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        limits = limits_of(self.space, self.costs, self.budgets)
        if limits is None:
            raise ValueError(f"`budgets` must be given to {type(self).__name__}; choose a world that has some")
        self._limits = limits

    def limits(self, context: Context) -> Budgets:
        """Return what decisions cost, and what an episode may cost."""
        return self._limits(keyed(context).context)

    def best_policy(self, context: Context) -> FloatArray:
        """Return the best policy (H, S, A) of the agent's model within the budgets."""
        model = self.model(context)
        assert model is not None  # every rival of this room has one
        return best_within(model, self.limits(context)).policy

    def _settings(self) -> str:
        return f"{super()._settings()}, costs {self._limits}"


class Notes:
    """A vector for each cell of contexts: at first the prices λ = 0, padded to the most budgets, and other zeros."""

    def __init__(self, others: int = 0) -> None:
        self._rows = np.empty((0, MOST_BUDGETS + others))

    def read(self, cell: int, budgets: int) -> tuple[FloatArray, FloatArray]:
        """Return prices (J,) and the other numbers of a cell."""
        row = self._rows[cell] if cell < len(self._rows) else np.zeros(self._rows.shape[1])
        return row[:budgets].copy(), row[MOST_BUDGETS:].copy()

    def write(self, cell: int, prices: FloatArray, others: FloatArray) -> None:
        """Keep both for a cell; earlier ones that have none yet begin with zeros."""
        missing = max(0, cell + 1 - len(self._rows))
        self._rows = np.vstack([self._rows, np.zeros((missing, self._rows.shape[1]))])
        self._rows[cell, : len(prices)], self._rows[cell, MOST_BUDGETS:] = prices, others

    def state(self) -> dict[str, FloatArray]:
        """Return the vectors."""
        return {"notes": self._rows.copy()}

    def load_state(self, state: State) -> None:
        """Load what `state` returned."""
        self._rows = numbers("notes", state, (None, self._rows.shape[1]))


def cheapest_policy(mdp: TabularMDP, given: Budgets) -> FloatArray:
    """Return (H, S, A): in each state the action that costs least at the next step, all costs added in their scales."""
    total = np.where(mdp.admissible, given.costs.sum(axis=0), np.inf)
    return np.array(np.broadcast_to(np.eye(mdp.actions)[total.argmin(axis=2)], (mdp.horizon, *mdp.admissible.shape)))
