"""Covers: which contexts share a cell, for agents that learn one table for each cell.

Blind        one cell for all contexts
PerContext   one for each context
PerBall      one for each Euclidean ball: the cover of Cover-Rmax (Modi, Jiang, Singh and Tewari, ALT 2018)
"""

from __future__ import annotations

import abc
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context, context_from_json, context_to_json
from omg_cmdp.persistence import State, numbers, read_state
from omg_cmdp.recipes.recipe import Made
from omg_cmdp.validation import UNEXPECTED, FloatArray, at_least_zero, float_table, frozen


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
        except (*UNEXPECTED, ValueError) as error:
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


@final
class PerBall(Cover):
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

    @property
    def centres(self) -> FloatArray:
        """The centres, (K, d); read-only."""
        return frozen(self._centres.view())

    def __len__(self) -> int:
        return len(self._centres)

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

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the centres."""
        return {"centres": self._centres.copy()}

    def load_state(self, state: State) -> None:
        """Load the centres."""
        self._centres = numbers("centres", read_state(state), (None, None))


def _text(context: Context, shape: tuple[int, ...] | None = None) -> str:
    """Return a context as text; refuse a vector of another `shape`, or with what is no finite number."""
    if isinstance(context, np.ndarray):
        wanted = context.shape if shape is None else shape
        if context.dtype.kind not in "biuf" or context.shape != wanted or not np.isfinite(context).all():
            raise ValueError(f"`context` must be finite numbers of shape {wanted}, got {context!r:.60}")
    return context_to_json(context)


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
