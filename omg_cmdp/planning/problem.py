"""A planning problem as one object that can be written to a file and replayed, for instance when a plan stalled."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.planning.barrier import plan
from omg_cmdp.planning.solution import Solution

_FORMAT = 1


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """The arguments of one `plan`.

    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[1.0, 0.0]]), horizon=3)
    >>> Problem(mdp=mdp, gamma=10.0).plan().status.name
    'SOLVED'
    """

    mdp: TabularMDP
    gamma: float | None = None
    weights: ArrayLike | None = None
    uncertainty: ArrayLike | None = None
    tolerance: float = 1e-9

    def plan(self, start: Solution | None = None) -> Solution:
        """Solve it."""
        return plan(
            self.mdp,
            self.gamma,
            weights=self.weights,
            uncertainty=self.uncertainty,
            tolerance=self.tolerance,
            start=start,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the problem to `path` (npz, plain arrays only), whole or not at all."""
        optional = {"gamma": self.gamma, "weights": self.weights, "uncertainty": self.uncertainty}
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in optional.items() if value is not None}
        target = Path(path)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=target.name, delete=False) as file:
            try:
                np.savez_compressed(
                    file,
                    format=_FORMAT,
                    transitions=self.mdp.transitions,
                    rewards=self.mdp.rewards,
                    horizon=self.mdp.horizon,
                    start=self.mdp.start,
                    admissible=self.mdp.admissible,
                    tolerance=self.tolerance,
                    **arrays,  # type: ignore[arg-type]  # the stub takes them for its one option
                )
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(target)
            except BaseException:
                Path(file.name).unlink()
                raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Problem:
        """Read a problem written by `save`."""
        refusal = f"`path` must be a problem of format {_FORMAT} written by `Problem.save`, got {os.fspath(path)}"
        try:
            with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                arrays = dict(file)
            if arrays.pop("format") != _FORMAT:
                raise ValueError(refusal)
            mdp = TabularMDP(
                transitions=arrays["transitions"],
                rewards=arrays["rewards"],
                horizon=arrays["horizon"].item(),
                start=arrays["start"],
                admissible=arrays["admissible"],
            )
            gamma = arrays["gamma"].item() if "gamma" in arrays else None
            tolerance = arrays["tolerance"].item()
        except (AttributeError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(refusal) from error
        weights, uncertainty = arrays.get("weights"), arrays.get("uncertainty")
        return cls(mdp=mdp, gamma=gamma, weights=weights, uncertainty=uncertainty, tolerance=tolerance)
