"""Cells by bins of each feature, like scikit-learn's `KBinsDiscretizer`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np

from omg_cmdp.environments.encoders.base import Encoder
from omg_cmdp.environments.encoders.steps import IntArray, Steps
from omg_cmdp.persistence import State, numbers
from omg_cmdp.validation import FloatArray, one_of, positive_integer

_STRATEGIES = ("quantile", "uniform")


@final
class Bins(Encoder):
    """Cells by bins of each feature, of which a cell has one each, like scikit-learn's `KBinsDiscretizer`.

    Edges that coincide are one, so that there may be fewer cells.

    Parameters
    ----------
    bins : int or sequence of int
        The number of bins of each feature, or of each feature in turn.
    strategy : {"quantile", "uniform"}, default "quantile"
        Whether bins hold equally many of the steps, or are equally wide.

    Examples
    --------
    >>> line = np.linspace(0.0, 1.0, 101)[:, None]
    >>> none = np.zeros(101, dtype=int)
    >>> steps = Steps(observations=line, next_observations=line, rewards=none, terminated=none > 0, actions=none,
    ...     episodes=none, contexts=none)
    >>> bins = Bins(4).fit(steps)
    >>> bins.cells, bins.encode([[-7.0], [0.3], [0.9]])
    (4, array([0, 1, 3]))
    """

    def __init__(self, bins: int | Sequence[int], *, strategy: str = "quantile") -> None:
        one_of("strategy", strategy, _STRATEGIES)
        several = isinstance(bins, (Sequence, np.ndarray)) and not isinstance(bins, str)
        self.bins = tuple(positive_integer("bins", each) for each in (bins if several else [bins]))  # type: ignore[union-attr]
        if not self.bins:
            raise ValueError("`bins` must name at least one number, got none")
        self.strategy = strategy

    def __repr__(self) -> str:
        return f"Bins({self.bins[0] if len(self.bins) == 1 else self.bins}, strategy={self.strategy!r})"

    def _fit(self, steps: Steps) -> dict[str, FloatArray]:
        dimension = steps.observations.shape[1]
        if len(self.bins) not in (1, dimension):
            raise ValueError(f"`bins` must be one number, or one for each of {dimension} features, got {self.bins}")
        counts = self.bins * dimension if len(self.bins) == 1 else self.bins
        edges = [self._edges(column, count) for column, count in zip(steps.observations.T, counts, strict=True)]
        return {"edges": np.concatenate(edges), "inner": np.array([float(len(each)) for each in edges])}

    def _edges(self, column: FloatArray, count: int) -> FloatArray:
        shares = np.arange(1, count) / count
        low, high = column.min(), column.max()
        edges = np.quantile(column, shares) if self.strategy == "quantile" else low + shares * (high - low)
        # An edge at the minimum would make an empty first bin.
        return np.unique(edges[(edges > low) & (edges <= high)])

    def _load(self, arrays: State, dimension: int) -> None:
        edges, inner = numbers("edges", arrays, (None,)), numbers("inner", arrays, (dimension,))
        # A file may say anything: counts that do not add up would send observations to cells that do not exist.
        if (inner < 0).any() or (inner != inner.round()).any() or inner.sum() != len(edges):
            raise ValueError(f"`state` must count its {len(edges)} edges under 'inner', got {inner}")
        split = np.split(edges, inner.astype(int).cumsum()[:-1])
        if any((np.diff(each) <= 0).any() for each in split):
            raise ValueError(f"`state` must hold increasing edges, got {edges}")
        self._split, self._counts = split, tuple(len(each) + 1 for each in split)
        self.cells = math.prod(self._counts)

    def _encode(self, observations: FloatArray) -> IntArray:
        codes = [np.searchsorted(edges, x, side="right") for edges, x in zip(self._split, observations.T, strict=True)]
        return np.asarray(np.ravel_multi_index(tuple(codes), self._counts))
