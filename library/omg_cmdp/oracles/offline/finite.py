"""The best function of a finite class so far, by least squares or maximum likelihood: see `offline.fits`."""

from __future__ import annotations

import functools
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.finite.aggregating import Charge, Finite, charge_logs, charge_squares
from omg_cmdp.oracles.finite.function_class import FunctionClass, Functions, Predictions
from omg_cmdp.oracles.frame import Frame, learn_rewards, learn_transitions
from omg_cmdp.oracles.losses import LOG, SQUARE, Loss
from omg_cmdp.oracles.offline.fits import checked_fit, current_fit, predict_with_fit
from omg_cmdp.oracles.simplex import Smoothing
from omg_cmdp.validation import FloatArray


class BestFunction(Finite):
    """The function that was charged least so far, the first of equals; the fit is its number, (1,)."""

    def __init__(
        self, predictions: Predictions, loss: Loss, charge: Charge, smoothing: Smoothing, horizon: int
    ) -> None:
        super().__init__(FunctionClass(predictions, loss), charge, loss.rate, horizon)
        self._loss, self._smoothing, self.settings = loss, smoothing, (str(smoothing),)

    @property
    def fit(self) -> FloatArray:
        """The number of the function."""
        return np.array([float(self.class_losses.argmin()) if len(self.class_losses) else 0.0])

    def table_of(self, parameters: FloatArray, functions: Functions) -> FloatArray:
        """Return the table of the function with that number, smoothed."""
        number = checked_fit(parameters, (1,))[0]
        # Kept fits come back from the caller, who may have changed them.
        if number not in range(len(functions.tables)):
            raise ValueError(f"`parameters` must be one of the {len(functions.tables)} functions, got {number}")
        return self._smoothing(functions.tables[int(number)])

    def forecasts(self, functions: Functions) -> FloatArray:
        """Return its table."""
        return self.table_of(self.fit, functions)[None]

    def expected_divergence(self, functions: Functions, prediction: FloatArray) -> FloatArray:
        """Return the posterior mean over the class."""
        divergences = self._loss.divergence(functions.tables, prediction)
        return np.tensordot(self.posterior(functions), divergences, axes=1)


@final
class OfflineFiniteRewards(Frame[BestFunction], RewardOracle):
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
    >>> oracle.parameters(), oracle.predict("c"), oracle.predict_with(np.array([0.0]), "c")
    (array([1.]), array([[0.6]]), array([[0.2]]))
    """

    update, parameters, predict_with = learn_rewards, current_fit, predict_with_fit

    def __init__(self, predictions: Predictions, *, horizon: int) -> None:
        super().__init__(BestFunction(predictions, SQUARE, charge_squares, Smoothing(0.0, None), horizon))


@final
class OfflineFiniteDynamics(Frame[BestFunction], DynamicsOracle):
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

    update, parameters, predict_with = learn_transitions, current_fit, predict_with_fit

    def __init__(
        self,
        predictions: Predictions,
        *,
        horizon: int,
        smoothing: float = 0.0,
        support: ArrayLike | None = None,
    ) -> None:
        smoothed = Smoothing(smoothing, support)
        charge = functools.partial(charge_logs, smoothed)
        super().__init__(BestFunction(predictions, LOG, charge, smoothed, horizon))
