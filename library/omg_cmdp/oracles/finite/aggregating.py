"""Finite classes: Vovk's aggregating algorithm for rewards, the Bayes mixture for dynamics.

Regret against the best of N functions, with predictions frozen for H steps (docs/oracles.md, Theorem 1):

    rewards    regret <= (H/2)·log N       weights ∝ exp(-(2/H)·loss), substitution at rate 2
    dynamics   regret <= H·log N           weights ∝ exp(-(1/H)·loss), mean

The textbook's rates are 2 and 1 (Vovk 1990, 1998); "guarded" turns log N into log 2N. For outcomes that come up to d
updates late (Theorem 7), at the rates of `Rate.weights_at`, with smoothing ν and M = log(S/ν):

    rewards    regret <= 3.6·H·(d+1)·log N     dynamics    regret <= 1.8·H·(d+1)·(2 + M)·log N
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TypeVar, final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.oracles.draws import Streams, resample
from omg_cmdp.oracles.finite.function_class import FunctionClass, Functions, Predictions
from omg_cmdp.oracles.forecasters import Forecasters
from omg_cmdp.oracles.frame import DynamicsFrame, Frame, RewardFrame
from omg_cmdp.oracles.losses import LOG, SQUARE, Examples
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.oracles.simplex import Smoothing
from omg_cmdp.persistence import State, numbers
from omg_cmdp.validation import FloatArray

compiled = Lazy("omg_cmdp.oracles.compiled.finite")

Charge = Callable[[FloatArray, Functions, Examples], None]
"""Adds the loss of each function in an episode to `losses` (N,)."""


class Finite(Forecasters):
    """A finite class: its functions, and the loss of each. The weights at any rate follow from the losses."""

    learned = ("class_losses",)
    takes_keyed = True

    def __init__(
        self, functions: FunctionClass, charge: Charge, eta: float, horizon: int, rate: Rate | None = None
    ) -> None:
        super().__init__(horizon, rate)
        self.functions = self.source = functions
        self.contexts, self.sizes = functions.contexts, functions.sizes
        self.class_losses = np.zeros(0)
        self._charge, self._eta = charge, eta

    def prepare(self, context: Context) -> Functions:
        """Return the tables of all N functions."""
        return self.functions(context)

    def learn(self, functions: Functions, episode: Examples) -> None:
        """Charge each function its loss."""
        self.class_losses = self.losses_of(functions)
        self._charge(self.class_losses, functions, episode)

    def losses_of(self, functions: Functions) -> FloatArray:
        """Return the loss of each function so far, (N,)."""
        known, count = len(self.class_losses), len(functions.tables)
        # The weights are shared by all contexts, and so N must be the same in all of them.
        if known == count:
            return self.class_losses
        if known:
            raise ValueError(f"`predictions` must hold {known} functions as before, got {count}")
        return np.zeros(count)

    def posterior(self, functions: Functions, temper: float = 1.0) -> FloatArray:
        """Return the weights of all functions, (N,), by default the textbook's."""
        weights = np.empty(len(functions.tables))
        compiled.exponential_weights(self.losses_of(functions), self._eta / temper, weights)
        return weights

    def expected_divergence(self, functions: Functions, prediction: FloatArray) -> FloatArray:
        """Return the posterior mean over the class."""
        divergences = self.functions.loss.divergence(functions.tables, prediction)
        return np.tensordot(self.posterior(functions), divergences, axes=1)

    def draws(self, functions: Functions, streams: Streams) -> FloatArray:
        """Return functions of the class, each as often as its posterior weight says."""
        return functions.tables.take(resample(self.posterior(functions), streams), axis=0)

    def best_loss(self) -> float:
        """Return the smallest loss of the class."""
        return float(self.class_losses.min(initial=np.inf)) if len(self.class_losses) else 0.0

    def listed(self, functions: Functions) -> FloatArray:
        """Return the tables of all N functions."""
        return functions.tables

    def log_size(self) -> float:
        """Return log N; inf before the first context, when N is not known yet."""
        size = len(self.class_losses) or self.functions.size
        return math.inf if size is None else math.log(size)

    def load_state(self, state: State) -> None:
        """Load the loss of each function; of an oracle that had learned nothing, none."""
        if numbers("class_losses", state, (None,)).size:
            super().load_state(state)
        else:
            self.class_losses = np.zeros(0)

    def shape_of(self, name: str) -> tuple[int | None]:
        """Return (N,), or any length before the first context."""
        return (self.functions.size,)


def charge_squares(losses: FloatArray, functions: Functions, episode: Examples) -> None:
    """Charge Σ (f - r)²."""
    compiled.charge_class_square(losses, functions.columns, episode.cells, episode.outcomes)


def charge_logs(smoothing: Smoothing, losses: FloatArray, functions: Functions, episode: Examples) -> None:
    """Charge -Σ log(P + ε), P smoothed."""
    kept, added = smoothing.examples(functions.shape, episode)
    compiled.charge_class_log(losses, functions.columns, episode.cells, kept, added)


class _Means(Finite):
    """Functions that predict mean rewards, under square loss."""

    rate: Rate

    def __init__(self, predictions: Predictions, rate: Rate) -> None:
        super().__init__(FunctionClass(predictions, SQUARE), charge_squares, SQUARE.rate, rate.horizon, rate)
        self._rates, self.settings = rate.weights_at(SQUARE.rate, most=SQUARE.rate), rate.settings

    def forecasts(self, functions: Functions) -> FloatArray:
        forecasts = np.empty((len(self._rates), *functions.shape))
        compiled.substitute_class(self.losses_of(functions), self._rates, functions.exponentials, forecasts)
        return forecasts

    def expected_divergence(self, functions: Functions, prediction: FloatArray) -> FloatArray:
        """Return E(f - f̂)²."""
        divergence, losses = np.empty(functions.shape), self.losses_of(functions)
        compiled.expected_square(losses, SQUARE.rate, functions.columns, prediction, divergence)
        return divergence

    def bound(self, episodes: int, horizon: int) -> float:
        return self.rate.frozen_bound(self.log_size() / SQUARE.rate, most=SQUARE.rate)


class _Transitions(Finite):
    """Functions that predict transitions, under log loss, each of them smoothed."""

    rate: Rate

    def __init__(self, predictions: Predictions, smoothing: Smoothing, rate: Rate) -> None:
        charge = functools.partial(charge_logs, smoothing)
        super().__init__(FunctionClass(predictions, LOG), charge, LOG.rate, rate.horizon, rate)
        self._smoothing, self.settings = smoothing, (str(smoothing), *rate.settings)

    def forecasts(self, functions: Functions) -> FloatArray:
        mixed = np.empty((len(self.rate.tempers), *functions.shape))
        rates = self.rate.weights_at(LOG.rate, self._most(functions.shape))
        compiled.mix_class(self.losses_of(functions), rates, functions.columns, mixed)
        return self._smoothing(mixed)

    def expected_divergence(self, functions: Functions, prediction: FloatArray) -> FloatArray:
        """Return E[D²] = E Σ (P + P̂) - 2·Σ √P̂·E√P."""
        divergence, losses = np.empty(functions.shape[:-1]), self.losses_of(functions)
        compiled.expected_hellinger(losses, LOG.rate, functions.roots, prediction, divergence)
        return divergence

    def bound(self, episodes: int, horizon: int) -> float:
        """Return H·log N, and what smoothing may add to it."""
        most = self._most(self.functions.shape)
        return self.rate.frozen_bound(self.log_size(), most) + self._smoothing.price(episodes * horizon)

    def _most(self, shape: tuple[int, ...] | None) -> float:
        """Return the largest difference of losses in a step, for late outcomes; inf if it is not known yet."""
        if not self.rate.delay:
            return 0.0
        return math.inf if shape is None else LOG.rate * self._smoothing.most_loss(shape)


F = TypeVar("F", bound=Finite)


class FiniteFrame(Frame[F]):
    """An oracle that holds a finite class, and tells its functions and their weights."""

    def functions(self, context: Context) -> FloatArray:
        """Return the tables of all N functions, (N, ...), read-only."""
        return self.forecasters.prepare(context).tables.view()

    def posterior(self, context: Context) -> FloatArray:
        """Return their weights at the textbook's rate, (N,); the context only tells N."""
        return self.forecasters.posterior(self.forecasters.prepare(context))


@final
class FiniteRewards(FiniteFrame[_Means], RewardFrame[_Means]):
    """Rewards from a finite class of N functions: Vovk's aggregating algorithm.

    Regret: (H/2)·log N proven, (H/2)·log 2N guarded, and ½·log N for H = 1; with a `delay` of d, 3.6·H·(d + 1)·log N.
    Choose it where you can list what the truth may be, as with a few simulators or parameter values.

    Parameters
    ----------
    predictions : callable or mapping
        context -> (N, S, A) or (N, H, S, A), in [0, 1]: the tables of all N functions at once. They must not change.
    horizon : int
        The largest number of steps of an episode, H.
    rate : {"guarded", "proven", "realizable"}, default "guarded"
        "proven" is safe against any adversary, "realizable" faster on benign data and without a bound; "guarded"
        aggregates both.
    delay : int, default 0
        The number d of other updates that may lie between a prediction and its own, with the rate "proven" only.

    Examples
    --------
    >>> oracle = FiniteRewards({"c": np.array([[[0.0]], [[1.0]]])}, horizon=2)  # one pair; the reward is 0, or it is 1
    >>> oracle.predict("c"), oracle.uncertainty("c")
    (array([[0.5]]), array([[0.25]]))
    >>> oracle.update("c", states=[0, 0], actions=[0, 0], rewards=[1.0, 1.0])
    >>> oracle.predict("c").round(2), oracle.uncertainty("c").round(3)
    (array([[0.89]]), array([[0.026]]))
    >>> oracle.loss, oracle.best_loss(), round(oracle.regret_bound(episodes=1, horizon=2), 3)
    (0.5, 0.0, 1.386)

    References
    ----------
    V. Vovk, *A game of prediction with expert advice*, JCSS 1998; docs/oracles.md, Theorems 1 and 7.
    """

    def __init__(self, predictions: Predictions, *, horizon: int, rate: str = "guarded", delay: int = 0) -> None:
        super().__init__(_Means(predictions, Rate(rate, horizon, tempered=True, delay=delay)))


@final
class FiniteDynamics(FiniteFrame[_Transitions], DynamicsFrame[_Transitions]):
    """Transitions from a finite class of N functions: the Bayes mixture, each function smoothed.

    Smoothing ν replaces each function P by (1-ν)·P + ν·uniform. Regret: H·log N proven, H·log 2N guarded, each plus
    T·H·log 1/(1-ν), and log N for H = 1; with a `delay` of d, 1.8·H·(d + 1)·(2 + log(S/ν))·log N, where log(S/ν) is 345
    without smoothing.

    Parameters
    ----------
    predictions : callable or mapping
        context -> (N, S, A, S) or (N, H, S, A, S), the tables of all N functions at once. They must not change.
    horizon : int
        The largest number of steps of an episode, H.
    rate : {"guarded", "proven", "realizable"}, default "guarded"
        "proven" is safe against any adversary, "realizable" faster on benign data and without a bound; "guarded"
        aggregates both.
    delay : int, default 0
        The number d of other updates that may lie between a prediction and its own, with the rate "proven" only.
    smoothing : float, default 0.0
        ν in [0, 1), for classes that may exclude what happens: without it such a transition costs 345, and with it
        log(S/ν).
    support : array_like of bool, shape (S, A, S), optional
        The transitions that can happen, over which smoothing spreads; by default all.

    Examples
    --------
    >>> tables = np.array([[[[0.9, 0.1]], [[0.0, 1.0]]], [[[0.1, 0.9]], [[0.0, 1.0]]]])  # state 0 lasts, or not
    >>> oracle = FiniteDynamics(lambda context: tables, horizon=2)
    >>> oracle.update("any", states=[0, 0], actions=[0, 0], next_states=[0, 1])
    >>> oracle.predict("any")[0]
    array([[0.5, 0.5]])

    References
    ----------
    V. Vovk, *Aggregating strategies*, COLT 1990; docs/oracles.md, Theorems 1 and 7.
    """

    def __init__(
        self,
        predictions: Predictions,
        *,
        horizon: int,
        rate: str = "guarded",
        delay: int = 0,
        smoothing: float = 0.0,
        support: ArrayLike | None = None,
    ) -> None:
        chosen = Rate(rate, horizon, tempered=True, delay=delay)
        super().__init__(_Transitions(predictions, Smoothing(smoothing, support), chosen))
