"""Covers: which contexts share a cell, for agents that learn one table for each cell.

    Blind        one cell for all contexts
    PerContext   one for each context
    PerBall      one for each ball of a metric: the cover of Cover-Rmax (Modi, Jiang, Singh and Tewari, ALT 2018)
    PerCentre    one for each of some centres, given or found by k-means

Contexts are compared in the form in which they are saved, so that a restored cover has the same cells.
"""

from __future__ import annotations

import abc
import copy
from collections.abc import Callable, Iterable
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context, context_from_json, context_to_json
from omg_cmdp.persistence import State, fingerprint, numbers, read_state
from omg_cmdp.validation import FloatArray, at_least_zero, float_table, listed, positive_integer

Metric = Callable[[Any, Any], float]
"""The distance of two contexts."""


class Cover(abc.ABC):
    """A partition of contexts into cells 0, 1, 2, ...

    >>> cover: Cover = PerContext()
    >>> cover.cell("a"), len(cover)
    (0, 0)
    """

    @abc.abstractmethod
    def __len__(self) -> int:
        """Return the number of open cells."""

    @abc.abstractmethod
    def __str__(self) -> str:
        """Return the settings: the same in a cover that is saved and one that loads its state."""

    @abc.abstractmethod
    def cell(self, context: Context) -> int:
        """Return the cell of `context`; the number of open cells if it would open one. Pure."""

    def open(self, context: Context) -> int:
        """Return the cell of `context`, open from now on."""
        return self.cell(context)

    @abc.abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """Return the cells, as arrays of numbers and text."""

    @abc.abstractmethod
    def load_state(self, state: State) -> None:
        """Load a state saved by a cover with the same settings."""


class Growing(Cover):
    """A cover that opens a cell for each context that is in none; that context is the cell's centre."""

    centres: list[Context]

    def __init__(self) -> None:
        self._clear()

    @abc.abstractmethod
    def _find(self, context: Context) -> int:
        """Return the cell of a well-formed context, or the number of cells if it is in none."""

    def _clear(self) -> None:
        """Forget all cells."""
        self.centres = []

    def _add(self, centre: Context) -> None:
        """Open a cell."""
        self.centres.append(centre)

    def __len__(self) -> int:
        return len(self.centres)

    @final
    def cell(self, context: Context) -> int:
        """Return the cell of `context`; the number of open cells if it would open one."""
        if isinstance(context, np.ndarray):
            first = self.centres[0] if self.centres else None
            shape = first.shape if isinstance(first, np.ndarray) else context.shape
            if context.dtype.kind not in "biuf" or context.shape != shape or not np.isfinite(context).all():
                raise ValueError(f"`context` must be finite numbers of shape {shape}, got {context!r:.60}")
        return self._find(context)

    @final
    def open(self, context: Context) -> int:
        """Return the cell of `context`, open from now on."""
        cell = self.cell(context)
        if cell == len(self):
            self._add(context_from_json(context_to_json(context)))
        return cell

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the centres, as text."""
        return {"centres": np.array([context_to_json(centre) for centre in self.centres], dtype=np.str_)}

    def load_state(self, state: State) -> None:
        """Load the centres."""
        fresh = copy.copy(self)
        fresh._clear()
        try:
            for text in read_state(state)["centres"].tolist():
                fresh.open(context_from_json(text))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"`state` must hold contexts under 'centres', got {error!r}") from error
        self.__dict__.update(fresh.__dict__)


@final
class Blind(Growing):
    """One cell for all contexts.

    >>> cover = Blind()
    >>> cover.open("a"), cover.open("b")
    (0, 0)
    """

    def __str__(self) -> str:
        return "Blind()"

    def _find(self, context: Context) -> int:
        context_to_json(context)  # raises if it could not be saved as a centre
        return 0


@final
class PerContext(Growing):
    """One cell for each context.

    >>> cover = PerContext()
    >>> cover.open("a"), cover.open("b"), cover.open("a"), cover.cell("c")
    (0, 1, 0, 2)
    """

    def __str__(self) -> str:
        return "PerContext()"

    def _clear(self) -> None:
        super()._clear()
        self._cells: dict[str, int] = {}

    def _add(self, centre: Context) -> None:
        super()._add(centre)
        self._cells[context_to_json(centre)] = len(self._cells)

    def _find(self, context: Context) -> int:
        return self._cells.get(context_to_json(context), len(self))


@final
class PerBall(Growing):
    """Balls of one radius: a context belongs to the nearest, or becomes the centre of a new one if it is in none.

    Parameters
    ----------
    radius : float
        0 gives each context a cell of its own, an infinite radius one cell to all.
    metric : str or function of two contexts
        "euclidean", the default, for contexts that are vectors or numbers.

    >>> cover = PerBall(1.0)
    >>> [cover.open(context) for context in (0.0, 0.9, 3.0, 1.9, 2.2)]
    [0, 0, 1, 2, 2]
    """

    def __init__(self, radius: float, metric: str | Metric = "euclidean") -> None:
        number = at_least_zero("radius", radius)
        if not callable(metric) and not (isinstance(metric, str) and metric == "euclidean"):
            raise ValueError(f"`metric` must be 'euclidean' or a function of two contexts, got {metric!r:.60}")
        self.radius = number
        self.metric = metric
        super().__init__()

    def __str__(self) -> str:
        return f"PerBall({self.radius}, {'a function' if callable(self.metric) else self.metric})"

    def _clear(self) -> None:
        super()._clear()
        self._points = np.empty((0, 0))

    def _add(self, centre: Context) -> None:
        super()._add(centre)
        if not callable(self.metric):
            self._points = np.array([_point(each) for each in self.centres])

    def _find(self, context: Context) -> int:
        distances = self._measure(context)
        nearest = int(distances.argmin()) if self.centres else 0
        return nearest if self.centres and distances[nearest] <= self.radius else len(self)

    def _measure(self, context: Context) -> FloatArray:
        if not callable(self.metric):
            return _distances(self._points, context)
        distances = np.array([self.metric(context, centre) for centre in self.centres], dtype=np.float64)
        if not (distances >= 0.0).all():
            raise ValueError(f"`metric` must return numbers of at least 0, got {distances.min()}")
        return distances


@final
class PerCentre(Cover):
    """The nearest of some centres, in Euclidean distance: a fixed number of cells.

    With centres from k-means this stands in for CECE (Hallak, Di Castro and Mannor, 2015), which is a different method:
    there contexts are hidden, and what happens in episodes is clustered. Here contexts are observed.

    Parameters
    ----------
    centres : array (K, d)
        The centres.

    >>> cover = PerCentre.by_means([[0.0], [0.2], [5.0], [5.2]], count=2)
    >>> cover.centres.tolist(), cover.cell([4.0])
    ([[0.1], [5.1]], 1)
    """

    def __init__(self, centres: ArrayLike) -> None:
        self.centres = _points("centres", centres)

    @classmethod
    def by_means(cls, contexts: Iterable[Context], *, count: int) -> PerCentre:
        """Return the `count` clusters of a sample of contexts by Lloyd's algorithm.

        It starts from the first of the sample and points far from each other (Gonzalez, 1985). Nothing is random.
        """
        sample = _points("contexts", listed("contexts", contexts))
        if not positive_integer("count", count) <= len(np.unique(sample, axis=0)):
            raise ValueError(f"`count` must be at most the number of different contexts, got {count}")
        centres = sample[:1]
        while len(centres) < count:
            apart = np.min([_distances(sample, centre) for centre in centres], axis=0)
            centres = np.vstack([centres, sample[apart.argmax()]])
        for _ in range(1000):  # each round but the last lowers the sum of squares
            nearest = np.argmin([_distances(sample, centre) for centre in centres], axis=0)
            moved = [sample[nearest == k].mean(axis=0) if k in nearest else centres[k] for k in range(count)]
            if np.array_equal(moved, centres):
                break
            centres = np.array(moved)
        return cls(centres)

    def __len__(self) -> int:
        return len(self.centres)

    def __str__(self) -> str:
        return f"PerCentre({len(self)} centres {fingerprint(self.centres)})"

    def cell(self, context: Context) -> int:
        """Return the nearest centre."""
        return int(_distances(self.centres, context).argmin())

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the centres."""
        return {"centres": self.centres.copy()}

    def load_state(self, state: State) -> None:
        """Load the centres."""
        self.centres = numbers("centres", read_state(state), self.centres.shape)


def _points(name: str, values: ArrayLike) -> FloatArray:
    """Return a table (N, d) of finite numbers."""
    table = float_table(name, values)
    if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all():
        raise ValueError(f"`{name}` must be finite numbers of shape (N, d), got shape {table.shape}")
    return table


def _point(context: Context) -> FloatArray:
    """Return a context that is a vector, or a number, as a vector."""
    array = float_table("context", context)
    if array.ndim > 1 or not np.isfinite(array).all():
        raise ValueError(f"`context` must be a vector of finite numbers, got {context!r:.60}")
    return array.reshape(-1)


def _distances(points: FloatArray, context: Context) -> FloatArray:
    """Return the Euclidean distances of `points` (N, d) and a context."""
    place = _point(context)
    if len(points) and points.shape[1] != len(place):
        raise ValueError(f"`context` must be a vector of {points.shape[1]} numbers, got {context!r:.60}")
    return np.asarray(np.sqrt(((points - place) ** 2).sum(axis=1))) if len(points) else np.empty(0)
