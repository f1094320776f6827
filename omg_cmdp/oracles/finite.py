"""Finite classes: Vovk's aggregating algorithm for rewards, the Bayes mixture for dynamics.

Regret against the best of N functions, with predictions frozen for H steps (docs/oracles.md, Theorem 1):

    rewards    regret <= (H/2)·log N       weights ∝ exp(-(2/H)·loss), substitution at rate 2
    dynamics   regret <= H·log N           weights ∝ exp(-(1/H)·loss), mean

The textbook's rates are 2 and 1 (Vovk 1990, 1998); "guarded" turns log N into log 2N.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.jit import lazy
from omg_cmdp.oracles.frame import DynamicsForecasters, RewardForecasters, Tempered
from omg_cmdp.oracles.function_class import FunctionClass, Functions, Predictions
from omg_cmdp.oracles.losses import SMALLEST_PROBABILITY, Episode
from omg_cmdp.oracles.support import Smoothing
from omg_cmdp.sampling import draw_index
from omg_cmdp.validation import FloatArray, frozen

kernels = lazy("omg_cmdp.oracles.kernels.classes")


class _Finite(Tempered):
    """What both share: the functions, and the loss of each. The weights of any temper follow from the losses."""

    learned = ("class_losses",)

    def __init__(self, predictions: Predictions, horizon: int, rate: str) -> None:
        super().__init__(horizon, rate)
        self._functions = FunctionClass(predictions, self.game)
        self._class_losses = np.zeros(0)
        self._rates = self.game.rate / self.tempers

    @property
    def contexts(self) -> tuple[Any, ...] | None:
        """The contexts of a mapping; None for a callable."""
        return self._functions.contexts

    def _prepare(self, context: Context) -> Functions:
        return self._functions(context)

    def _textbook_posterior(self, functions: Functions) -> FloatArray:
        weights = np.empty(len(functions.tables))
        kernels.exponential_weights(self._losses_of(functions), self.game.rate, weights)
        return weights

    def _losses_of(self, functions: Functions) -> FloatArray:
        known, count = len(self._class_losses), len(functions.tables)
        if known == count:
            return self._class_losses
        if known:
            raise ValueError(f"`predictions` must hold {known} functions as before, got {count}")
        return np.zeros(count)

    def _textbook_bound(self, episodes: int) -> float:
        """(1/η)·log N; nothing before the first context, when N is not known yet."""
        size = len(self._class_losses) or self._functions.size
        return math.inf if size is None else math.log(size) / self.game.rate

    def functions(self, context: Context) -> FloatArray:
        """Return the tables of all N functions, (N, ...), read-only."""
        return frozen(self._functions(context).tables.view())

    def posterior(self, context: Context) -> FloatArray:
        """Return their textbook's weights, (N,); the context only tells N."""
        return self._textbook_posterior(self._functions(context))

    def sample(self, context: Context, generator: np.random.Generator) -> FloatArray:
        """Return one of the N functions, drawn with its posterior weight."""
        functions = self._functions(context)
        drawn = draw_index(self._textbook_posterior(functions), generator.random())
        return np.array(functions.tables[drawn])

    def best_loss(self) -> float:
        """Return the smallest loss of the class."""
        return float(self._class_losses.min(initial=np.inf)) if len(self._class_losses) else 0.0

    def _learned_shape(self, name: str) -> tuple[int | None]:
        return (self._functions.size,)


@final
class FiniteRewards(_Finite, RewardForecasters):
    """Rewards from a class of N functions, `predictions`: context -> (N, S, A) or (N, H, S, A), in [0, 1].

    `predictions` is a callable, evaluated for all N at once, or a mapping from labels. Regret: (H/2)·log N proven,
    (H/2)·log 2N guarded; for H = 1 ½·log N.

    >>> oracle = FiniteRewards({"c": np.array([[[0.0]], [[1.0]]])}, horizon=2)  # one pair; the reward is 0, or it is 1
    >>> oracle.predict("c"), oracle.uncertainty("c")
    (array([[0.5]]), array([[0.25]]))
    >>> oracle.update("c", states=[0, 0], actions=[0, 0], rewards=[1.0, 1.0])
    >>> oracle.predict("c").round(2), oracle.uncertainty("c").round(3)
    (array([[0.89]]), array([[0.026]]))
    >>> oracle.loss, oracle.best_loss(), round(oracle.regret_bound(episodes=1, horizon=2), 3)
    (0.5, 0.0, 1.386)
    """

    def __init__(self, predictions: Predictions, *, horizon: int, rate: str = "guarded") -> None:
        super().__init__(predictions, horizon, rate)

    def _forecasts(self, functions: Functions) -> FloatArray:
        forecasts = np.empty((len(self.tempers), *functions.shape))
        kernels.substitute_class(self._losses_of(functions), self._rates, functions.exponentials, forecasts)
        return forecasts

    def _learn(self, functions: Functions, episode: Episode) -> None:
        self._class_losses = self._losses_of(functions)
        kernels.charge_class_square(self._class_losses, functions.columns, episode.cells, episode.outcomes)

    def _expected_divergence(self, functions: Functions, prediction: FloatArray) -> FloatArray:
        """Return E(f - f̂)²."""
        divergence, losses = np.empty(functions.shape), self._losses_of(functions)
        kernels.expected_square(losses, self.game.rate, functions.columns, prediction, divergence)
        return divergence


@final
class FiniteDynamics(_Finite, DynamicsForecasters):
    """Transitions from a class of N kernels, `predictions`: context -> (N, S, A, S) or (N, H, S, A, S).

    `smoothing` ν replaces every kernel P by (1-ν)·P + ν·uniform, over the next states that `support` (S, A, S) admits
    (None: all). It is for classes that may exclude what happens: without it such a transition costs 345, and with
    it log(S/ν). Regret: H·log N proven, H·log 2N guarded, each plus T·H·log 1/(1-ν); for H = 1 log N.

    >>> kernels = np.array([[[[0.9, 0.1]], [[0.0, 1.0]]], [[[0.1, 0.9]], [[0.0, 1.0]]]])  # state 0 lasts, or not
    >>> oracle = FiniteDynamics(lambda context: kernels, horizon=2)
    >>> oracle.update("any", states=[0, 0], actions=[0, 0], next_states=[0, 1])
    >>> oracle.predict("any")[0]
    array([[0.5, 0.5]])
    """

    def __init__(
        self,
        predictions: Predictions,
        *,
        horizon: int,
        rate: str = "guarded",
        smoothing: float = 0.0,
        support: ArrayLike | None = None,
    ) -> None:
        super().__init__(predictions, horizon, rate)
        self._smoothing = Smoothing(smoothing, support)

    def _forecasts(self, functions: Functions) -> FloatArray:
        mixed = np.empty((len(self.tempers), *functions.shape))
        kernels.mix_class(self._losses_of(functions), self._rates, functions.columns, mixed)
        return self._smoothing(mixed)

    def _learn(self, functions: Functions, episode: Episode) -> None:
        self._class_losses = self._losses_of(functions)
        kept, added = self._smoothing.examples(functions.shape, episode)
        learned = self._class_losses, functions.columns, episode.cells
        kernels.charge_class_log(*learned, kept, added, SMALLEST_PROBABILITY)

    def _expected_divergence(self, functions: Functions, prediction: FloatArray) -> FloatArray:
        """Return E[D²] = E Σ (P + P̂) - 2·Σ √P̂·E√P."""
        divergence, losses = np.empty(functions.shape[:-1]), self._losses_of(functions)
        kernels.expected_hellinger(losses, self.game.rate, functions.roots, prediction, divergence)
        return divergence

    def _settings(self) -> str:
        return f"{super()._settings()}, {self._smoothing}"

    def regret_bound(self, episodes: int, horizon: int) -> float:
        """Return the bound of the class, and what smoothing may add to it."""
        return super().regret_bound(episodes, horizon) + self._smoothing.price(episodes * horizon)
