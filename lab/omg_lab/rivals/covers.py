"""Covers: which contexts share a cell, for agents that learn one table for each cell.

Blind        one cell for all contexts
PerContext   one for each context
PerBall      one for each Euclidean ball: the cover of Cover-Rmax (Modi, Jiang, Singh and Tewari, ALT 2018)
PerCentre    one for each of some centres, given or found by k-means
"""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omg_cmdp.contexts import Context, context_from_json, context_to_json
from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.persistence import State, numbers, read_state
from omg_cmdp.recipes.recipe import Made
from omg_cmdp.validation import FloatArray, at_least_zero, float_table, frozen, listed, positive_integer


class Cover(Made, abc.ABC):
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


@final
class PerContext(Cover):
    """One cell for each context.

    >>> cover = PerContext()
    >>> cover.open("a"), cover.open("b"), cover.open("a"), cover.cell("c")
    (0, 1, 0, 2)
    """

    def __init__(self) -> None:
        # Contexts are compared in the form in which they are saved, so that a restored cover has the same cells.
        self._cells: dict[str, int] = {}
        self._shape: tuple[int, ...] | None = None  # of vectors

    def __len__(self) -> int:
        return len(self._cells)

    def __str__(self) -> str:
        return "PerContext()"

    def cell(self, context: Context) -> int:
        """Return the cell of `context`; the number of open cells if it would open one."""
        return self._cells.get(_text(context, self._shape), len(self))

    def open(self, context: Context) -> int:
        """Return the cell of `context`, open from now on."""
        cell = self._cells.setdefault(_text(context, self._shape), len(self))
        self._shape = context.shape if isinstance(context, np.ndarray) else self._shape
        return cell

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the contexts, as text."""
        return {"centres": np.array(list(self._cells), dtype=np.str_)}

    def load_state(self, state: State) -> None:
        """Load the contexts."""
        fresh = PerContext()
        try:
            for text in read_state(state)["centres"].tolist():
                fresh.open(context_from_json(text))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"`state` must hold contexts under 'centres', got {error!r}") from error
        self.__dict__.update(vars(fresh))


@final
class Blind(Cover):
    """One cell for all contexts.

    >>> cover = Blind()
    >>> cover.open("a"), cover.open("b")
    (0, 0)
    """

    def __len__(self) -> int:
        return 1

    def __str__(self) -> str:
        return "Blind()"

    def cell(self, context: Context) -> int:
        """Return 0, for any context that could be saved."""
        _text(context)
        return 0

    def state(self) -> dict[str, NDArray[Any]]:
        """Return nothing: there is nothing to learn."""
        return {}

    def load_state(self, state: State) -> None:
        """Load nothing."""


class _Points(Cover):
    """A cover by the distances to its centres, (K, d)."""

    _centres: FloatArray

    @property
    def centres(self) -> FloatArray:
        """The centres, (K, d); read-only."""
        return frozen(self._centres.view())

    def __len__(self) -> int:
        return len(self._centres)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the centres."""
        return {"centres": self._centres.copy()}


@final
class PerBall(_Points):
    """Balls of one radius: a context belongs to the nearest, or becomes the centre of a new one if it is in none.

    Contexts are vectors, or numbers, at Euclidean distances.

    Parameters
    ----------
    radius : float
        0 gives each context a cell of its own, an infinite radius one cell to all.

    >>> cover = PerBall(1.0)
    >>> [cover.open(context) for context in (0.0, 0.9, 3.0, 1.9, 2.2)]
    [0, 0, 1, 2, 2]
    """

    def __init__(self, radius: float) -> None:
        self.radius = at_least_zero("radius", radius)
        self._centres = np.empty((0, 0))

    def __str__(self) -> str:
        return f"PerBall({self.radius})"

    def cell(self, context: Context) -> int:
        """Return the nearest ball; the number of balls if `context` is in none."""
        distances = _distances(self._centres, context)
        if not len(distances):
            return 0
        nearest = int(distances.argmin())
        return nearest if distances[nearest] <= self.radius else len(self)

    def open(self, context: Context) -> int:
        """Return the ball of `context`, open from now on."""
        cell = self.cell(context)
        if cell == len(self):
            self._centres = np.array([*self._centres, _point(context)])
        return cell

    def load_state(self, state: State) -> None:
        """Load the centres."""
        self._centres = numbers("centres", read_state(state), (None, None))


@final
class PerCentre(_Points):
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
        self._centres = _points("centres", centres).copy()

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

    def __str__(self) -> str:
        return f"PerCentre({len(self)} centres {fingerprint(self._centres)})"

    def cell(self, context: Context) -> int:
        """Return the nearest centre."""
        return int(_distances(self._centres, context).argmin())

    def load_state(self, state: State) -> None:
        """Load the centres."""
        self._centres = numbers("centres", read_state(state), self._centres.shape)


def _text(context: Context, shape: tuple[int, ...] | None = None) -> str:
    """Return a context as text; refuse a vector of another `shape`, or with what is no finite number."""
    if isinstance(context, np.ndarray):
        wanted = context.shape if shape is None else shape
        if context.dtype.kind not in "biuf" or context.shape != wanted or not np.isfinite(context).all():
            raise ValueError(f"`context` must be finite numbers of shape {wanted}, got {context!r:.60}")
    return context_to_json(context)


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
