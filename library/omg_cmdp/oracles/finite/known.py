"""Known functions, such as a simulator's tables: no regret, no uncertainty, nothing to learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.oracles.finite.function_class import FunctionClass, Functions, Predictions
from omg_cmdp.oracles.forecasters import Forecasters
from omg_cmdp.oracles.frame import DynamicsFrame, RewardFrame
from omg_cmdp.oracles.losses import LOG, SQUARE, Examples, Loss
from omg_cmdp.validation import FloatArray, float_table

Table = ArrayLike | Callable[[Any], ArrayLike] | Mapping[Any, ArrayLike]
"""One table for all contexts, or context -> table."""


class _Known(Forecasters):
    """A class of one function."""

    takes_keyed = True

    def __init__(self, function: Table, loss: Loss, horizon: int) -> None:
        super().__init__(horizon)
        self._loss = loss
        predictions: Predictions
        if isinstance(function, Mapping):
            # Checked now rather than at the first question about the context.
            predictions = {context: self._checked(table) for context, table in function.items()}
        elif callable(function):
            predictions = lambda context: np.asarray(function(context))[None]  # noqa: E731
        else:
            only = self._checked(function)
            predictions = lambda _: only  # noqa: E731
        self._functions = self.source = FunctionClass(predictions, loss, "function")
        self.contexts = self._functions.contexts
        if not callable(function) and not isinstance(function, Mapping):
            self._functions(None)  # one table for all contexts: from now on its sizes are known
        self.sizes = self._functions.sizes

    def _checked(self, table: ArrayLike) -> FloatArray:
        """Return a checked copy of a table, as a class of one."""
        tables = float_table("function", table)[None]
        self._loss.check_tables("function", tables)
        return tables

    def prepare(self, context: Context) -> Functions:
        return self._functions(context)

    def forecasts(self, functions: Functions) -> FloatArray:
        return functions.tables

    def learn(self, functions: Functions, episode: Examples) -> None:
        """There is nothing to learn."""

    def expected_divergence(self, functions: Functions, prediction: FloatArray) -> FloatArray:
        return np.zeros(self._loss.pairs(prediction.shape))

    def draws(self, functions: Functions, streams: Streams) -> FloatArray:
        """Return the only function, for every draw."""
        return np.repeat(functions.tables, streams.count, axis=0)

    def listed(self, functions: Functions) -> FloatArray:
        """Return the only function, (1, ...)."""
        return functions.tables

    def best_loss(self) -> float:
        """Return its own loss."""
        return self.account.loss

    def bound(self, episodes: int, horizon: int) -> float:
        return 0.0

    def late_bound(self, episodes: int, horizon: int, delay: int, constant: bool) -> float:
        return 0.0


@final
class KnownRewards(RewardFrame[_Known]):
    """Rewards that are known, as a simulator's are: no regret, no uncertainty, nothing to learn.

    Parameters
    ----------
    function : array_like, callable or mapping
        One table (S, A) or (H, S, A), in [0, 1], for all contexts; or context -> table.
    horizon : int
        The largest number of steps of an episode, H.

    Examples
    --------
    >>> oracle = KnownRewards([[0.3, 0.7]], horizon=1)
    >>> oracle.predict("any"), oracle.uncertainty("any"), oracle.regret_bound(episodes=100, horizon=1)
    (array([[0.3, 0.7]]), array([[0., 0.]]), 0.0)
    """

    def __init__(self, function: Table, *, horizon: int) -> None:
        super().__init__(_Known(function, SQUARE, horizon))


@final
class KnownDynamics(DynamicsFrame[_Known]):
    """Transitions that are known, as a simulator's are: no regret, no uncertainty, nothing to learn.

    Parameters
    ----------
    function : array_like, callable or mapping
        One table (S, A, S) or (H, S, A, S), rows on the simplex, for all contexts; or context -> table.
    horizon : int
        The largest number of steps of an episode, H.

    Examples
    --------
    >>> KnownDynamics(np.full((2, 1, 2), 0.5), horizon=1).predict("any")[0]
    array([[0.5, 0.5]])
    """

    def __init__(self, function: Table, *, horizon: int) -> None:
        super().__init__(_Known(function, LOG, horizon))
