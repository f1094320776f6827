"""A planning problem as one object that can be written to a file and replayed, for instance when a plan stalled."""

from __future__ import annotations

import dataclasses
import os

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.persistence import read_arrays, write_arrays
from omg_cmdp.planning.plan import plan
from omg_cmdp.planning.regularisers import regulariser
from omg_cmdp.planning.solution import Solution
from omg_cmdp.validation import file_path, instance_of, positive_number

_KIND, _VERSION = "planning problem", 3


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """The arguments of one `plan`, as an object that can be saved, sent and replayed.

    Parameters
    ----------
    mdp, gamma, weights, uncertainty, floor, tolerance
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
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        instance_of("mdp", self.mdp, TabularMDP)
        regulariser(self.mdp, self.gamma, self.weights, self.uncertainty, self.floor)
        positive_number("tolerance", self.tolerance)

    def plan(self, start: Solution | None = None) -> Solution:
        """Solve it."""
        return plan(
            self.mdp,
            self.gamma,
            weights=self.weights,
            uncertainty=self.uncertainty,
            floor=self.floor,
            tolerance=self.tolerance,
            start=start,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the problem to `path` (npz, plain arrays only), whole or not at all."""
        optional = {"gamma": self.gamma, "weights": self.weights, "uncertainty": self.uncertainty}
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in optional.items() if value is not None}
        mdp = {name: getattr(self.mdp, name) for name in ("transitions", "rewards", "horizon", "start", "admissible")}
        numbers = {"tolerance": self.tolerance, "floor": self.floor}
        write_arrays(file_path(path), {**mdp, **numbers, **arrays}, kind=_KIND, version=_VERSION)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Problem:
        """Read a problem written by `save`."""
        arrays = read_arrays(file_path(path), kind=_KIND, version=_VERSION)
        try:
            mdp = TabularMDP(
                transitions=arrays["transitions"],
                rewards=arrays["rewards"],
                horizon=arrays["horizon"].item(),
                start=arrays["start"],
                admissible=arrays["admissible"],
            )
            return cls(
                mdp=mdp,
                gamma=arrays["gamma"].item() if "gamma" in arrays else None,
                weights=arrays.get("weights"),
                uncertainty=arrays.get("uncertainty"),
                floor=arrays["floor"].item(),
                tolerance=arrays["tolerance"].item(),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"`path` must be a {_KIND} of format {_VERSION}, got {os.fspath(path)}") from error
