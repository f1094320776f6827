"""Cells by the nearest of some centres, found by k-means."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.environments.encoders.base import Encoder
from omg_cmdp.environments.encoders.steps import Steps
from omg_cmdp.persistence import State, numbers
from omg_cmdp.validation import FloatArray, positive_integer, seed_number


@final
class Clusters(Encoder):
    """Cells by the nearest centre of k-means.

    Features are divided by their standard deviations first. Fitting needs scikit-learn.

    Parameters
    ----------
    most : int
        The number of cells; fewer if there are fewer distinct observations.
    seed : int, default 0
        The seed of k-means.

    Examples
    --------
    >>> line = np.repeat([[0.0], [1.0], [5.0]], 10, axis=0)
    >>> none = np.zeros(30, dtype=int)
    >>> steps = Steps(observations=line, next_observations=line, rewards=none, terminated=none > 0, actions=none,
    ...     episodes=none, contexts=none)
    >>> len(set(Clusters(3).fit(steps).encode([[0.1], [1.2], [7.0]]).tolist()))
    3
    """

    def __init__(self, most: int, *, seed: int = 0) -> None:
        self.most, self.seed = positive_integer("most", most), seed_number(seed)

    def __repr__(self) -> str:
        return f"Clusters({self.most}, seed={self.seed})"

    def _fit(self, steps: Steps) -> dict[str, FloatArray]:
        try:
            from sklearn.cluster import KMeans
        except ImportError as error:
            raise ImportError("this needs scikit-learn: pip install scikit-learn") from error
        # Far from zero, squares of the numbers would leave no digit for their differences: all is counted from one of
        # them, which is exact, and not from a mean, which is rounded.
        offset = np.quantile(steps.observations, 0.5, axis=0, method="lower")
        near = steps.observations - offset
        spread = near.std(axis=0)
        # A constant feature has no scale, and tells no cells apart.
        scale = np.where(spread > 0.0, spread, 1.0)
        scaled = near / scale
        # More centres than distinct points make k-means warn, and empty cells.
        distinct = min(self.most, len(np.unique(scaled, axis=0)))
        centres = KMeans(distinct, n_init=1, random_state=self.seed).fit(scaled).cluster_centers_
        return {"centres": np.asarray(centres, dtype=np.float64), "scale": scale, "offset": offset}

    def _load(self, arrays: State, dimension: int) -> None:
        centres, scale = numbers("centres", arrays, (None, dimension)), numbers("scale", arrays, (dimension,))
        offset = numbers("offset", arrays, (dimension,))
        if not 0 < len(centres) <= self.most or not (scale > 0.0).all():
            got = f"{len(centres)} centres, scale {scale}"
            raise ValueError(f"`state` must hold 1 to {self.most} centres and a positive scale, got {got}")
        self._centres, self._scale, self._offset, self._norms = centres, scale, offset, (centres**2).sum(axis=1)
        self.cells = len(centres)

    def _encode(self, observations: FloatArray) -> NDArray[Any]:
        # |x - c|² without |x|², which is the same for all centres.
        scaled = (observations - self._offset) / self._scale
        return np.asarray((self._norms - 2.0 * scaled @ self._centres.T).argmin(axis=1))
