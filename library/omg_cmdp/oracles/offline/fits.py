"""Offline oracles: the empirical risk minimiser over all past episodes, as a *fit* that can be kept.

    rewards    f̂ = argmin Σ (f - r)²           least squares
    dynamics   P̂ = argmin Σ -log P(s'|s, a)    maximum likelihood

This is what algorithms for stochastic contexts ask for (UC³RL, RM-UCDD, FALCON). An adversary can choose the
outcomes against a forecaster that follows the leader, so nothing is proven and `regret_bound` is inf. What holds for
`OfflineFiniteRewards` and `OfflineFiniteDynamics` is *in-sample*. If the truth is among the N functions and rewards lie
in [0, 1], then with probability 1 - δ, after any number of episodes and whoever chose contexts and actions, summed over
all past (c, s, a),

    Σ (f̂ - f*)² <= 2·log(N/δ),     Σ D²(P*, P̂) <= 2·log(N/δ).

Proof. For every f, g = f - f* and ε = r - f*, exp(2Σεg - ½Σg²) is a supermartingale (ε has range 1), so that by Ville's
inequality 2Σεg <= ½Σg² + log(N/δ) for all f and t at once; and Σg² <= 2Σεg for the minimiser. For every P,
exp(½Σ log P/P* + ½Σ D²) is one, because E√(P/P*) = 1 - ½D² <= exp(-½D²); and Σ log P̂/P* >= 0. ∎ (The 1e-150 of log
loss adds 2e-75·√S for each example: docs/oracles.md, *What a forecast excludes*.)

The fits are refitted after every episode, incrementally:

    finite     the loss of each of the N functions is kept           O(N) numbers, O(N·H) an episode
    linear     the normal equations are kept, as a root R            O(S·A·d²) numbers, O(H·d²) and S·A small solves
    softmax    one line of counts for each (z, s, a) seen is kept    at most min(T·H, |C|·S·A) lines of d + S numbers;
               Newton's method from the fit before, for the pairs    O(S²d²) for each line of these pairs, and O(S³d³),
               that the episode visited                              times one to three steps
"""

from __future__ import annotations

import abc
import functools
from typing import Any, ClassVar, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.combined.composite import Composite
from omg_cmdp.oracles.finite.aggregating import Charge, Finite, charge_logs, charge_squares
from omg_cmdp.oracles.finite.function_class import FunctionClass, Functions, Predictions
from omg_cmdp.oracles.frame import Frame, learn_rewards, learn_transitions
from omg_cmdp.oracles.linear import LinearRewards
from omg_cmdp.oracles.losses import LOG, SQUARE, Examples, Loss
from omg_cmdp.oracles.simplex import Smoothing
from omg_cmdp.validation import FloatArray, float_table, in_range, one_of_shapes


@runtime_checkable
class Offline(Protocol):
    """An oracle that predicts by one member of its class, the *fit*: `predict(c)` is `predict_with(parameters(), c)`.

    Keep `parameters()` to ask later what an earlier fit predicts for a context that was not known then.

    Examples
    --------
    >>> isinstance(OfflineFiniteRewards({"c": [[[0.2]], [[0.6]]]}, horizon=1), Offline)
    True
    """

    def parameters(self) -> FloatArray:
        """Return the fit as an array of numbers, always of one shape."""

    def predict_with(self, parameters: FloatArray, context: Context) -> FloatArray:
        """Return what the fit `parameters` predicts, a table like that of `predict`."""


def current_fit(self: Frame[Any]) -> FloatArray:
    """Return the fit as an array of numbers: the `parameters` of an offline oracle."""
    return np.array(self.forecasters.fit)


def predict_with_fit(self: Frame[Any], parameters: FloatArray, context: Context) -> FloatArray:
    """Return what the fit `parameters` predicts: the `predict_with` of an offline oracle."""
    return np.array(self.forecasters.table_of(parameters, self.forecasters.prepare(context)))


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


class Fitted(Composite):
    """A fit, and beside it the online oracle of the same class, which learns the same and knows its uncertainty."""

    learned: ClassVar[tuple[str, ...]] = ("fit",)
    fit: FloatArray

    def __init__(self, online: Any, loss: Loss) -> None:
        super().__init__([online], loss, online.horizon)
        self.online = online

    @abc.abstractmethod
    def table_of(self, parameters: FloatArray, context: Context) -> FloatArray:
        """Return what the fit `parameters` predicts."""

    def forecasts(self, context: Context) -> FloatArray:
        """Return the table of the fit."""
        return self.table_of(self.fit, context)[None]

    def learn(self, context: Context, episode: Examples) -> None:
        """Let the online oracle learn; a subclass then improves the fit."""
        self.online.update(context, episode.states, episode.actions, episode.outcomes)

    def expected_divergence(self, context: Context, prediction: FloatArray) -> FloatArray:
        """Return the online oracle's uncertainty, and how far its prediction is from the fit's."""
        moved = self.loss.divergence(self.online.predict(context), prediction)
        return np.asarray(self.online.uncertainty(context) + moved)

    def draws(self, context: Context, count: int, generator: np.random.Generator) -> FloatArray:
        """Return draws of the online oracle."""
        return np.asarray(self.online.draws(context, count, generator))

    def best_loss(self) -> float:
        """Return the best loss of the online oracle."""
        return float(self.online.best_loss())


class _LeastSquares(Fitted):
    """Linear least squares, from the roots that the online oracle keeps."""

    def __init__(self, online: LinearRewards) -> None:
        super().__init__(online, SQUARE)
        self._linear = online.forecasters
        self.fit = np.zeros((self._linear.roots.shape[-1], self._linear.dimension))

    def table_of(self, parameters: FloatArray, context: Context) -> FloatArray:
        """Return ½ + θ·z, clipped."""
        inner = (checked_fit(parameters, self.fit.shape) * self._linear.prepare(context)).sum(axis=1)
        return np.asarray(np.clip(0.5 + inner, 0.0, 1.0).reshape(self._linear.pairs))

    def learn(self, context: Context, episode: Examples) -> None:
        """Solve RᵀRθ = RᵀQᵀ(r - ½): the online oracle keeps R and Qᵀ(r - ½), (d+1, d+1) for each weight vector."""
        super().learn(context, episode)
        roots = np.moveaxis(self._linear.roots[1], -1, 0)  # at temper 1
        self.fit = np.linalg.solve(roots[:, :-1, :-1], roots[:, :-1, -1:])[..., 0]


@final
class OfflineLinearRewards(Frame[_LeastSquares], RewardOracle):
    """Ridge regression for f(c, s, a) = ½ + θ(s, a)·z(c), or ½ + θ·z(c, s, a) if `shared`, clipped to [0, 1].

    θ minimises Σ (½ + θ·z - r)² + ridge·‖θ‖² over all past examples. Against an adversary nothing is proven, and
    `regret_bound` is inf.

    Parameters
    ----------
    **arguments
        Those of `LinearRewards` but for `rate` and `delay`: `states`, `actions`, `dimension` and `horizon`, which are
        required, and `features`, `shared`, `ridge`, `feature_norm`, `weight_norm`.

    Examples
    --------
    >>> oracle = OfflineLinearRewards(states=1, actions=1, dimension=1, horizon=1, ridge=1e-9)
    >>> oracle.update([1.0], states=[0], actions=[0], rewards=[0.8])
    >>> oracle.update([1.0], states=[0], actions=[0], rewards=[0.6])
    >>> oracle.parameters().round(6), oracle.predict([0.5]).round(6)
    (array([[0.2]]), array([[0.6]]))
    """

    update, parameters, predict_with = learn_rewards, current_fit, predict_with_fit

    def __init__(self, **arguments: Any) -> None:
        super().__init__(_LeastSquares(LinearRewards(**arguments, rate="realizable")))


def checked_fit(parameters: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return `parameters`, if they are a fit of `shape`: finite numbers."""
    table = float_table("parameters", parameters)
    one_of_shapes("parameters", table, shape)
    in_range("parameters", table, -np.inf, np.inf)
    return table
