"""Known functions, such as a simulator's tables: no regret, no uncertainty, nothing to learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.frame import DynamicsForecasters, Forecasters, RewardForecasters
from omg_cmdp.oracles.function_class import FunctionClass, Functions, Predictions
from omg_cmdp.oracles.losses import Episode
from omg_cmdp.validation import FloatArray, float_table, positive_integer

Known = ArrayLike | Callable[[Any], ArrayLike] | Mapping[Any, ArrayLike]
"""One table for all contexts, or context -> table."""


class _Known(Forecasters):
    """A class of one function."""

    def __init__(self, function: Known, *, horizon: int) -> None:
        super().__init__(horizon, count=1)
        predictions: Predictions
        if isinstance(function, Mapping):
            predictions = {context: self._table(table) for context, table in function.items()}
        elif callable(function):
            predictions = lambda context: np.asarray(function(context))[None]  # noqa: E731
        else:
            only = self._table(function)
            predictions = lambda _: only  # noqa: E731
        self._functions = FunctionClass(predictions, self.game)

    def _table(self, table: ArrayLike) -> FloatArray:
        """Return a checked copy of a table, as a class of one."""
        tables = float_table("function", table)[None]
        self.game.check_tables("function", tables)
        return tables

    @property
    def contexts(self) -> tuple[Any, ...] | None:
        """The contexts of a mapping; None for a callable or a table."""
        return self._functions.contexts

    def _prepare(self, context: Context) -> Functions:
        return self._functions(context)

    def _forecasts(self, prepared: Functions) -> FloatArray:
        return prepared.tables

    def _learn(self, prepared: Functions, episode: Episode) -> None:
        """There is nothing to learn."""

    def _expected_divergence(self, prepared: Functions, prediction: FloatArray) -> FloatArray:
        return np.zeros(self.game.pairs(prediction.shape))

    def sample(self, context: Context, generator: np.random.Generator) -> FloatArray:
        """Return the function: there is no other."""
        return self.predict(context)

    def best_loss(self) -> float:
        """Return its own loss: there is no other function."""
        return self.loss

    def regret_bound(self, episodes: int, horizon: int) -> float:
        """Return 0."""
        positive_integer("episodes", episodes)
        positive_integer("horizon", horizon)
        return 0.0


@final
class KnownRewards(_Known, RewardForecasters):
    """Rewards that are known: a table (S, A) or (H, S, A), or context -> table.

    >>> oracle = KnownRewards([[0.3, 0.7]], horizon=1)
    >>> oracle.predict("any"), oracle.uncertainty("any"), oracle.regret_bound(episodes=100, horizon=1)
    (array([[0.3, 0.7]]), array([[0., 0.]]), 0.0)
    """


@final
class KnownDynamics(_Known, DynamicsForecasters):
    """Transitions that are known: a table (S, A, S) or (H, S, A, S), or context -> table.

    >>> KnownDynamics(np.full((2, 1, 2), 0.5), horizon=1).predict("any")[0]
    array([[0.5, 0.5]])
    """
