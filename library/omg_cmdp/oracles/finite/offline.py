"""Offline oracles: the best function of a finite class over all past episodes, the *fit*.

    OfflineFiniteRewards           f̂ = argmin Σ (f - r)²                             least squares
    OfflineFiniteDynamics          P̂ = argmin Σ -log P(s'|s, a)                      maximum likelihood
    OfflineLeastSquaresDynamics    P̂ = argmin Σ Σ_s' (P(s'|s, a) - 1[s' came next])²   RM-UCDD's regression

This is what algorithms for stochastic contexts ask for (UC³RL, RM-UCDD, FALCON). An adversary can choose the
outcomes against a forecaster that follows the leader, so nothing is proven and `regret_bound` is inf. What holds is
*in-sample*. If the truth is among the N functions and rewards lie in [0, 1], then with probability 1 - δ, after any
number of episodes and for any choice of contexts and actions, summed over all past (c, s, a),

    Σ (f̂ - f*)² <= 2·log(N/δ),     Σ D²(P*, P̂) <= 2·log(N/δ),     and for least squares Σ ‖P̂ - P*‖₂² <= 4·log(N/δ).

Proof. For every f, g = f - f* and ε = r - f*, exp(2Σεg - ½Σg²) is a supermartingale (ε has range 1), so that by Ville's
inequality 2Σεg <= ½Σg² + log(N/δ) for all f and t at once; and Σg² <= 2Σεg for the minimiser. For every P,
exp(½Σ log P/P* + ½Σ D²) is one, because E√(P/P*) = 1 - ½D² <= exp(-½D²); and Σ log P̂/P* >= 0. For least squares let
g = P - P*, and ε the indicator minus P*: ⟨ε, g⟩ has mean 0 and range max g - min g, whose square is at most 2‖g‖₂², so
that exp(Σ⟨ε, g⟩ - ¼Σ‖g‖₂²) is one (Hoeffding); 2Σ⟨ε, g⟩ <= ½Σ‖g‖₂² + 2·log(N/δ), and Σ‖g‖₂² <= 2Σ⟨ε, g⟩. ∎ (The
1e-150 of log loss adds 2e-75·√S for each example: docs/oracles.md, *What a forecast excludes*.)

The price of squares is S: Σ‖P̂ - P*‖₁² is at most 4S·log(N/δ), where maximum likelihood has 4·Σ D² <= 8·log(N/δ).
"""

from __future__ import annotations

import functools
import math
from typing import Protocol, TypeVar, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.jit import Lazy
from omg_cmdp.oracles.finite.aggregating import Charge, Finite, charge_logs, charge_squares
from omg_cmdp.oracles.finite.function_class import FunctionClass, Functions, Predictions
from omg_cmdp.oracles.frame import DynamicsFrame, Frame, RewardFrame
from omg_cmdp.oracles.losses import LOG, SQUARE, Examples, Loss
from omg_cmdp.oracles.simplex import Smoothing
from omg_cmdp.validation import FloatArray

compiled = Lazy("omg_cmdp.oracles.compiled.finite")


@runtime_checkable
class Offline(Protocol):
    """An oracle that predicts by one member of its class, the *fit*: while that is the same, so are its predictions.

    Examples
    --------
    >>> isinstance(OfflineFiniteRewards({"c": [[[0.2]], [[0.6]]]}, horizon=1), Offline)
    True
    """

    def parameters(self) -> FloatArray:
        """Return the fit as an array of numbers, always of one shape."""


class BestFunction(Finite):
    """The function that was charged least so far, the first of equals; the fit is its number."""

    def __init__(
        self, predictions: Predictions, loss: Loss, charge: Charge, smoothing: Smoothing, horizon: int
    ) -> None:
        super().__init__(FunctionClass(predictions, loss), charge, loss.rate, horizon)
        self._smoothing, self.settings = smoothing, (str(smoothing),)

    def fit(self) -> int:
        """Return the number of the function."""
        return int(self.class_losses.argmin()) if len(self.class_losses) else 0

    def forecasts(self, functions: Functions) -> FloatArray:
        """Return its table, smoothed."""
        return self._smoothing(functions.tables[self.fit()])[None]


B = TypeVar("B", bound=BestFunction)


class OfflineFrame(Frame[B]):
    """An oracle whose prediction is that of one function."""

    def parameters(self) -> FloatArray:
        """Return the number of the best function so far, (1,)."""
        return np.array([float(self.forecasters.fit())])


@final
class OfflineFiniteRewards(OfflineFrame[BestFunction], RewardFrame[BestFunction]):
    """Least squares over a finite class: the best of N functions so far, the first of equals.

    If the truth is among them, Σ (f̂ - f*)² <= 2·log(N/δ) over all past examples with probability 1 - δ. Against an
    adversary nothing is proven, and `regret_bound` is inf.

    Parameters
    ----------
    predictions : callable or mapping
        context -> (N, S, A) or (N, H, S, A), in [0, 1]: the tables of all N functions at once. They must not change.
    horizon : int
        The largest number of steps of an episode, H.

    Examples
    --------
    >>> oracle = OfflineFiniteRewards({"c": [[[0.2]], [[0.6]]]}, horizon=1)
    >>> oracle.predict("c")  # without data, the first
    array([[0.2]])
    >>> oracle.update("c", states=[0], actions=[0], rewards=[0.5])
    >>> oracle.parameters(), oracle.predict("c")
    (array([1.]), array([[0.6]]))
    """

    def __init__(self, predictions: Predictions, *, horizon: int) -> None:
        super().__init__(BestFunction(predictions, SQUARE, charge_squares, Smoothing(0.0, None), horizon))


@final
class OfflineFiniteDynamics(OfflineFrame[BestFunction], DynamicsFrame[BestFunction]):
    """Maximum likelihood over a finite class: the best of N functions so far, the first of equals.

    If the truth is among them, Σ D²(P*, P̂) <= 2·log(N/δ) over all past examples with probability 1 - δ. Against an
    adversary nothing is proven, and `regret_bound` is inf.

    Parameters
    ----------
    predictions : callable or mapping
        context -> (N, S, A, S) or (N, H, S, A, S), the tables of all N functions at once. They must not change.
    horizon : int
        The largest number of steps of an episode, H.
    smoothing : float, default 0.0
        ν in [0, 1): each function P counts as (1-ν)·P + ν·uniform, for classes that may exclude what happens.
    support : array_like of bool, shape (S, A, S), optional
        The transitions that can happen, over which smoothing spreads; by default all.

    Examples
    --------
    >>> tables = np.array([[[[0.9, 0.1]], [[0.0, 1.0]]], [[[0.4, 0.6]], [[0.0, 1.0]]]])
    >>> oracle = OfflineFiniteDynamics(lambda context: tables, horizon=2)
    >>> oracle.update("any", states=[0, 0], actions=[0, 0], next_states=[0, 1])
    >>> oracle.parameters(), oracle.predict("any")[0]  # 0.9·0.1 against 0.4·0.6
    (array([1.]), array([[0.4, 0.6]]))
    """

    def __init__(
        self, predictions: Predictions, *, horizon: int, smoothing: float = 0.0, support: ArrayLike | None = None
    ) -> None:
        smoothed = Smoothing(smoothing, support)
        charge = functools.partial(charge_logs, smoothed)
        super().__init__(BestFunction(predictions, LOG, charge, smoothed, horizon))


def charge_indicators(losses: FloatArray, functions: Functions, episode: Examples) -> None:
    """Charge Σ_s' (P(s') - 1[s' came next])² for each transition."""
    compiled.charge_class_indicators(losses, functions.columns, episode.cells, functions.shape[-1])


class _LeastSquares(BestFunction):
    """The function with the smallest sum of squares. Square loss of indicators is 1-mixable, as log loss is."""

    def best_loss(self) -> float:
        """Return nan: what is kept of each function is not its log loss."""
        return math.nan


@final
class OfflineLeastSquaresDynamics(OfflineFrame[_LeastSquares], DynamicsFrame[_LeastSquares]):
    """Least squares over a finite class: the one of N functions nearest to the indicators of the next states.

    If the truth is among them, Σ ‖P̂ - P*‖₂² <= 4·log(N/δ) over all past examples with probability 1 - δ. Against an
    adversary nothing is proven, and `regret_bound` is inf.

    Parameters
    ----------
    predictions : callable or mapping
        context -> (N, S, A, S) or (N, H, S, A, S), the tables of all N functions at once. They must not change.
    horizon : int
        The largest number of steps of an episode, H.

    Examples
    --------
    >>> tables = np.array([[[[0.9, 0.1]], [[0.0, 1.0]]], [[[0.4, 0.6]], [[0.0, 1.0]]]])
    >>> oracle = OfflineLeastSquaresDynamics(lambda context: tables, horizon=2)
    >>> oracle.update("any", states=[0, 0], actions=[0, 0], next_states=[0, 1])
    >>> oracle.parameters(), oracle.predict("any")[0]  # 0.02 + 1.62 against 0.72 + 0.32
    (array([1.]), array([[0.4, 0.6]]))
    """

    def __init__(self, predictions: Predictions, *, horizon: int) -> None:
        super().__init__(_LeastSquares(predictions, LOG, charge_indicators, Smoothing(0.0, None), horizon))
