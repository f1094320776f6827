"""The base of oracles made of oracles, which hand contexts and episodes on and save the states of their parts."""

from __future__ import annotations

import abc
import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.base import Oracle
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.oracles.forecasters import Forecasters
from omg_cmdp.oracles.losses import Examples, Loss
from omg_cmdp.persistence import undone_on_failure
from omg_cmdp.validation import FloatArray, listed


class Composite(Forecasters):
    """Forecasters that hand contexts and episodes on to `oracles`, all judged by `loss`."""

    def __init__(
        self, oracles: list[Any], loss: Loss, horizon: int, *, part_horizon: int | None = None, count: int = 1
    ) -> None:
        super().__init__(horizon, count=count)
        # An outsider's oracle may take episodes of any length; its horizon is None.
        wanted = part_horizon or self.horizon
        horizons = [oracle.horizon for oracle in oracles]
        if any(found not in (None, wanted) for found in horizons):
            raise ValueError(f"`oracles` must have horizon {wanted}, got {horizons}")
        declared = {oracle.sizes for oracle in oracles} - {None}
        if len(declared) > 1:
            told = " and ".join(f"{states} states and {actions} actions" for states, actions in sorted(declared))
            raise ValueError(f"`oracles` must be made for the same sizes, got {told}")
        self.oracles, self.loss, self.sizes = oracles, loss, next(iter(declared), None)
        self.foreign = not all(oracle.surely_learns for oracle in oracles)

    def prepare(self, context: Context) -> Context:
        """Return the context as it is: each oracle prepares its own."""
        return context

    def check(self, states: ArrayLike, actions: ArrayLike, outcomes: ArrayLike) -> None:
        """Raise if one of the steps cannot happen for one of the oracles."""
        for oracle in self.oracles:
            oracle.check_steps(states, actions, outcomes)

    def teach(self, lessons: Iterable[tuple[Any, Examples]], context: Context) -> None:
        """Let each of some oracles learn its examples, or none of them."""
        # Those that may refuse learn first: the others are sure to follow, and only what came before must be undone.
        ordered = sorted(lessons, key=lambda lesson: bool(lesson[0].surely_learns))
        doubtful = [oracle for oracle, _ in ordered if not oracle.surely_learns]
        with undone_on_failure(*doubtful[:-1]):
            for oracle, examples in ordered:
                oracle.update(context, examples.states, examples.actions, examples.outcomes)

    def predictions(self, context: Context) -> FloatArray:
        """Return what all oracles predict, as one array."""
        tables = [oracle.predict(context) for oracle in self.oracles]
        shapes = [np.shape(table) for table in tables]
        if len(set(shapes)) > 1:
            raise ValueError(f"`oracles` must predict tables of one shape, got {shapes}")
        return np.stack(tables)

    def parts(self) -> dict[str, Oracle]:
        """Return all oracles, each behind its number: their states have "0/loss", "1/loss", ..."""
        return {str(i): oracle for i, oracle in enumerate(self.oracles)}


class Alternating(Composite):
    """Copies of one oracle, the *speaker* among which answers all questions until the next update."""

    def __init__(self, oracle: Any, copies: int, loss: Loss) -> None:
        (first,) = checked_oracles([oracle], loss)
        if first.horizon is None:
            raise ValueError(f"`oracle` must have a `horizon`, got a {type(first).__name__} without one")
        super().__init__([first, *(copy.deepcopy(first) for _ in range(copies))], loss, first.horizon)
        self.contexts, self.settings = first.contexts, (f"copies {copies}",)

    @property
    @abc.abstractmethod
    def speaker(self) -> Any:
        """The oracle that predicts now."""

    def forecasts(self, context: Context) -> FloatArray:
        """Return the table of the speaker."""
        return np.asarray(self.speaker.predict(context))[None]

    def expected_divergence(self, context: Context, prediction: FloatArray) -> FloatArray:
        """Return the uncertainty of the speaker."""
        return np.asarray(self.speaker.uncertainty(context))

    def draws(self, context: Context, streams: Streams) -> FloatArray:
        """Return draws of the speaker."""
        return np.asarray(self.speaker.draws_from(context, streams))

    def listed(self, context: Context) -> FloatArray | None:
        """Return the functions of the class, which is the same for all copies."""
        tables: FloatArray | None = self.oracles[0].functions(context)
        return tables


def checked_oracles(oracles: Iterable[Any], loss: Loss) -> list[Any]:
    """Return the list of `oracles`: at least one, all judged by `loss`, and none of them twice."""
    found = listed("oracles", oracles)
    if not found or not all(isinstance(oracle, loss.judges) for oracle in found):
        names = [type(oracle).__name__ for oracle in found]
        raise ValueError(f"`oracles` must be at least one {loss.judges.__name__}, got {names}")
    if len({id(oracle) for oracle in found}) < len(found):
        raise ValueError("`oracles` must be different objects, got one of them twice")
    return found
