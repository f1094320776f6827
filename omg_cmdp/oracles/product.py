"""Product classes: another function of a finite class may be right in every state of every context.

N functions in each of C contexts and S states make a class of N^{CS} functions, too many to list; but their losses add
up over (context, state), so that Vovk's algorithm keeps N weights for each. Regret (docs/oracles.md, Theorem 1):

    (H/2)·C·S·log N     and (H/2)·log 2 more if guarded.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import final

import numpy as np

from omg_cmdp.contexts import Context, label_index
from omg_cmdp.oracles.frame import RewardForecasters, Tempered
from omg_cmdp.oracles.function_class import FunctionClass, Functions, Predictions
from omg_cmdp.oracles.losses import Episode
from omg_cmdp.sampling import draw_indices
from omg_cmdp.validation import FloatArray, positive_integer


@final
class ProductRewards(Tempered, RewardForecasters):
    """Rewards from `predictions`, context -> (N, S, A), where each (context, state) has a best function of its own.

    `contexts` lists the labels that may come; `functions` is N.

    >>> arms = np.eye(2)[:, None]  # in each state one of two arms pays
    >>> oracle = ProductRewards(lambda context: arms, contexts=["a", "b"], states=1, functions=2, horizon=1)
    >>> oracle.update("a", states=[0], actions=[0], rewards=[1.0])
    >>> oracle.predict("a").round(2), oracle.predict("b")
    (array([[0.83, 0.17]]), array([[0.5, 0.5]]))
    """

    learned = ("class_losses",)

    def __init__(
        self,
        predictions: Predictions,
        *,
        contexts: Iterable[Hashable],
        states: int,
        functions: int,
        horizon: int,
        rate: str = "guarded",
    ) -> None:
        super().__init__(horizon, rate)
        self._functions = FunctionClass(predictions, self.game)
        self._index = label_index(contexts)
        shape = (len(self._index), positive_integer("states", states), positive_integer("functions", functions))
        self._class_losses = np.zeros(shape)

    @property
    def contexts(self) -> tuple[Hashable, ...]:
        """The labels that may come."""
        return tuple(self._index)

    def _prepare(self, context: Context) -> tuple[int, Functions]:
        try:
            index = self._index[context]
        except (KeyError, TypeError):
            raise ValueError(f"`context` must be one of the {len(self._index)} listed, got {context!r}") from None
        functions = self._functions(context)
        _, states, count = self._class_losses.shape
        if functions.tables.ndim != 3 or functions.tables.shape[:2] != (count, states):
            wanted = f"({count}, {states}, A)"
            raise ValueError(f"`predictions` must return shape {wanted}, got {functions.tables.shape}")
        return index, functions

    def _posteriors(self, index: int, rates: FloatArray) -> FloatArray:
        """Return (rates, S, N): the weights of the functions in each state."""
        losses = self._class_losses[index]
        exponents = -rates[:, None, None] * (losses - losses.min(axis=-1, keepdims=True))
        weights = np.exp(np.maximum(exponents, -700.0))
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

    def _forecasts(self, prepared: tuple[int, Functions]) -> FloatArray:
        index, functions = prepared
        posteriors = self._posteriors(index, self.game.rate / self.tempers)
        halves = functions.exponentials.reshape(2, *functions.shape, -1)
        at_zero, at_one = np.einsum("ksn,ysan->yksa", posteriors, halves)
        return np.asarray(np.clip(0.5 + 0.25 * np.log(at_one / at_zero), 0.0, 1.0))

    def _learn(self, prepared: tuple[int, Functions], episode: Episode) -> None:
        index, functions = prepared
        errors = functions.columns[episode.cells] - episode.outcomes[:, None]
        np.add.at(self._class_losses[index], episode.states, errors**2)

    def _expected_divergence(self, prepared: tuple[int, Functions], prediction: FloatArray) -> FloatArray:
        """Return E(f - f̂)² under the textbook's posterior of each state."""
        index, functions = prepared
        (posterior,) = self._posteriors(index, np.array([self.game.rate]))
        return np.asarray(np.einsum("sn,nsa->sa", posterior, (functions.tables - prediction) ** 2))

    def sample(self, context: Context, generator: np.random.Generator) -> FloatArray:
        """Return, for every state, one of the N functions, drawn with its posterior weight there."""
        index, functions = self._prepare(context)
        (posterior,) = self._posteriors(index, np.array([self.game.rate]))
        drawn = draw_indices(posterior, generator.random(len(posterior)))
        return np.asarray(functions.tables[drawn, np.arange(len(drawn))])

    def best_loss(self) -> float:
        """Return the sum of the smallest losses of all (context, state)."""
        return float(self._class_losses.min(axis=-1).sum())

    def _textbook_bound(self, episodes: int) -> float:
        labels, states, count = self._class_losses.shape
        return labels * states * math.log(count) / self.game.rate
