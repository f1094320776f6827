"""A planning problem as one object that can be written to a file and replayed, for instance when a plan stalled."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.mdp.budgets import checked_budgets
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.persistence import read_arrays, write_arrays
from omg_cmdp.planning.plan import plan
from omg_cmdp.planning.regularisers import regulariser
from omg_cmdp.planning.solution import Solution
from omg_cmdp.validation import UNEXPECTED, file_path, float_table, frozen, instance_of, positive_number

_KIND, _VERSION = "planning problem", 3
_TABLES = ("transitions", "rewards", "horizon", "start", "admissible")
"""The arguments of a `TabularMDP`."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """The arguments of one `plan`, as an object that can be saved, sent and replayed.

    Parameters
    ----------
    mdp, gamma, weights, uncertainty, floor, costs, budgets, tolerance
        As `plan` takes them.

    Examples
    --------
    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[1.0, 0.0]]), horizon=3)
    >>> Problem(mdp=mdp, gamma=10.0).plan().status.name
    'SOLVED'
    """

    mdp: TabularMDP
    gamma: float | None = None
    weights: ArrayLike | None = None
    uncertainty: ArrayLike | None = None
    floor: float = 0.0
    costs: ArrayLike | None = None
    budgets: ArrayLike | None = None
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        instance_of("mdp", self.mdp, TabularMDP)
        regulariser(self.mdp, self.gamma, self.weights, self.uncertainty, self.floor)
        checked_budgets(self.mdp, self.costs, self.budgets)
        positive_number("tolerance", self.tolerance)
        for name in ("weights", "uncertainty", "costs", "budgets"):
            if (value := getattr(self, name)) is not None:
                self.__dict__[name] = frozen(float_table(name, value))

    def plan(self, start: Solution | None = None) -> Solution:
        """Solve it."""
        return plan(**vars(self), start=start)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the problem to `path` (npz, plain arrays only), whole or not at all."""
        tables = {name: getattr(self.mdp, name) for name in _TABLES}
        given = {name: value for name, value in vars(self).items() if name != "mdp" and value is not None}
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in given.items()}
        write_arrays(file_path(path), tables | arrays, kind=_KIND, version=_VERSION)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Problem:
        """Read a problem written by `save`."""
        arrays = read_arrays(file_path(path), kind=_KIND, version=_VERSION)
        try:
            given: dict[str, Any] = {name: each if each.ndim else each.item() for name, each in arrays.items()}
            return cls(mdp=TabularMDP(**{name: given.pop(name) for name in _TABLES}), **given)
        except (*UNEXPECTED, ValueError) as error:
            raise ValueError(f"`path` must be a {_KIND} of format {_VERSION}, got {os.fspath(path)}") from error
