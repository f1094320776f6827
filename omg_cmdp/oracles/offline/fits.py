"""Offline oracles: the empirical risk minimiser over all past episodes, as a *fit* that can be kept.

    rewards    f̂ = argmin Σ (f - r)²           least squares
    dynamics   P̂ = argmin Σ -log P(s'|s, a)    maximum likelihood

This is what algorithms for stochastic contexts ask for (UC³RL, RM-UCDD, FALCON, LOLIPOP). As a forecaster it has no
bound, hence `regret_bound` is inf: who follows the leader is led astray by outcomes chosen against it. What holds is
*in-sample*. If the truth is among the N functions and rewards lie in [0, 1], then with probability 1 - δ, after any
number of episodes and whoever chose contexts and actions, summed over all past (c, s, a),

    Σ (f̂ - f*)² <= 2·log(N/δ),     Σ D²(P*, P̂) <= 2·log(N/δ).

Proof. For every f, g = f - f* and ε = r - f*, exp(2Σεg - ½Σg²) is a supermartingale (ε has range 1), so that by Ville's
inequality 2Σεg <= ½Σg² + log(N/δ) for all f and t at once; and Σg² <= 2Σεg for the minimiser. For every P,
exp(½Σ log P/P* + ½Σ D²) is one, because E√(P/P*) = 1 - ½D² <= exp(-½D²); and Σ log P̂/P* >= 0. ∎

The fits are refitted after every episode, incrementally:

    finite     the loss of each of the N functions is kept           O(N) numbers, O(N·H) an episode
    linear     the normal equations are kept, as a root R            O(S·A·d²) numbers, O(H·d²) and S·A small solves
    softmax    one line of counts for each (z, s, a) seen is kept    at most min(T·H, |C|·S·A) lines of d + S numbers;
               Newton's method from the fit before, for the pairs    O(S²d²) for each line of these pairs, and O(S³d³),
               that the episode visited                              times one to three steps
"""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.jit import lazy
from omg_cmdp.oracles.base import Oracle, RewardOracle
from omg_cmdp.oracles.combined.composite import Composite
from omg_cmdp.oracles.features import FeatureMap, Features
from omg_cmdp.oracles.finite import _Finite
from omg_cmdp.oracles.frame import DynamicsForecasters, RewardForecasters
from omg_cmdp.oracles.function_class import Functions, Predictions
from omg_cmdp.oracles.linear import LinearRewards
from omg_cmdp.oracles.losses import SMALLEST_PROBABILITY, Episode
from omg_cmdp.oracles.support import Smoothing
from omg_cmdp.validation import FloatArray, positive_integer

kernels = lazy("omg_cmdp.oracles.kernels.classes")


class Offline(Oracle):
    """An oracle that predicts by one member of its class, the *fit*: `predict(c)` is `predict_with(parameters(), c)`.

    Keep `parameters()` to ask later what an earlier fit says on a context that nobody had seen then.
    """

    @abc.abstractmethod
    def parameters(self) -> FloatArray:
        """Return the fit as an array of numbers, always of one shape."""

    @abc.abstractmethod
    def predict_with(self, parameters: FloatArray, context: Context) -> FloatArray:
        """Return what the fit `parameters` predicts, a table like that of `predict`."""

    def regret_bound(self, episodes: int, horizon: int) -> float:
        """Return inf: nothing is proven for data that are not i.i.d."""
        positive_integer("episodes", episodes)
        positive_integer("horizon", horizon)
        return math.inf


class _OfflineFinite(Offline, _Finite):
    """The function of the smallest loss so far, the first of equals; the fit is its number."""

    def __init__(self, predictions: Predictions, *, horizon: int) -> None:
        super().__init__(predictions, horizon, "realizable")

    def parameters(self) -> FloatArray:
        """Return the number of the best function, (1,)."""
        return np.array([float(self._class_losses.argmin()) if len(self._class_losses) else 0.0])

    def predict_with(self, parameters: FloatArray, context: Context) -> FloatArray:
        """Return the table of the function of that number."""
        return self._table(parameters, self._prepare(context)).copy()

    def _table(self, parameters: FloatArray, functions: Functions) -> FloatArray:
        number = checked_fit(parameters, (1,))[0]
        if number not in range(len(functions.tables)):
            raise ValueError(f"`parameters` must be one of the {len(functions.tables)} functions, got {number}")
        return np.asarray(functions.tables[int(number)])

    def _forecasts(self, functions: Functions) -> FloatArray:
        return self._table(self.parameters(), functions)[None]

    def _expected_divergence(self, functions: Functions, prediction: FloatArray) -> FloatArray:
        """Return the posterior mean over the class."""
        posterior = self._textbook_posterior(functions)
        return np.tensordot(posterior, self.game.divergence(functions.tables, prediction), axes=1)


@final
class OfflineFiniteRewards(_OfflineFinite, RewardForecasters):
    """Least squares over N functions, `predictions`: context -> (N, S, A) or (N, H, S, A), in [0, 1].

    >>> oracle = OfflineFiniteRewards({"c": [[[0.2]], [[0.6]]]}, horizon=1)
    >>> oracle.predict("c")  # without data, the first
    array([[0.2]])
    >>> oracle.update("c", states=[0], actions=[0], rewards=[0.5])
    >>> oracle.parameters(), oracle.predict("c"), oracle.predict_with(np.array([0.0]), "c")
    (array([1.]), array([[0.6]]), array([[0.2]]))
    """

    def _learn(self, functions: Functions, episode: Episode) -> None:
        self._class_losses = self._losses_of(functions)
        kernels.charge_class_square(self._class_losses, functions.columns, episode.cells, episode.outcomes)


@final
class OfflineFiniteDynamics(_OfflineFinite, DynamicsForecasters):
    """Maximum likelihood over N kernels, `predictions`: context -> (N, S, A, S) or (N, H, S, A, S).

    `smoothing` and `support` are those of `FiniteDynamics`: each kernel P counts as (1-ν)·P + ν·uniform.
    """

    def __init__(
        self,
        predictions: Predictions,
        *,
        horizon: int,
        smoothing: float = 0.0,
        support: ArrayLike | None = None,
    ) -> None:
        super().__init__(predictions, horizon=horizon)
        self._smoothing = Smoothing(smoothing, support)

    def _table(self, parameters: FloatArray, functions: Functions) -> FloatArray:
        return self._smoothing(super()._table(parameters, functions))

    def _learn(self, functions: Functions, episode: Episode) -> None:
        self._class_losses = self._losses_of(functions)
        kept, added = self._smoothing.examples(functions.shape, episode)
        learned = self._class_losses, functions.columns, episode.cells
        kernels.charge_class_log(*learned, kept, added, SMALLEST_PROBABILITY)

    def _settings(self) -> str:
        return f"{super()._settings()}, {self._smoothing}"


class Beside(Offline, Composite):
    """A fit beside the online oracle of the same class, which learns the same episodes and knows its uncertainty."""

    learned: ClassVar[tuple[str, ...]] = ("fit",)
    _fit: FloatArray

    def __init__(self, online: Any) -> None:
        super().__init__([online], horizon=online.horizon, part_horizon=online.horizon, count=1)

    def parameters(self) -> FloatArray:
        """Return the weights of the fit."""
        return self._fit.copy()

    def _forecasts(self, context: Context) -> FloatArray:
        return self.predict_with(self._fit, context)[None]

    def _learn(self, context: Context, episode: Episode) -> None:
        self.oracles[0].update(context, episode.states, episode.actions, episode.outcomes)

    def _expected_divergence(self, context: Context, prediction: FloatArray) -> FloatArray:
        """Return the online oracle's uncertainty, and how far its prediction is from the fit's."""
        (online,) = self.oracles
        return np.asarray(online.uncertainty(context) + self.game.divergence(online.predict(context), prediction))

    def best_loss(self) -> float:
        """Return what the online oracle says."""
        return float(self.oracles[0].best_loss())


@final
class OfflineLinearRewards(Beside, RewardForecasters):
    """Least squares for f(c, s, a) = ½ + θ(s, a)·z(c), or ½ + θ·z(c, s, a) if `shared`, clipped to [0, 1].

    θ minimises Σ (½ + θ·z - r)² + ridge·‖θ‖². The arguments are those of `LinearRewards`.

    >>> oracle = OfflineLinearRewards(states=1, actions=1, dimension=1, horizon=1, ridge=1e-9)
    >>> oracle.update([1.0], states=[0], actions=[0], rewards=[0.8])
    >>> oracle.update([1.0], states=[0], actions=[0], rewards=[0.6])
    >>> oracle.parameters().round(6), oracle.predict([0.5]).round(6)
    (array([[0.2]]), array([[0.6]]))
    """

    kind = RewardOracle

    def __init__(
        self,
        *,
        states: int,
        actions: int,
        dimension: int,
        horizon: int,
        features: FeatureMap | None = None,
        shared: bool = False,
        ridge: float = 1.0,
        feature_norm: float = 1.0,
    ) -> None:
        online = LinearRewards(
            states=states,
            actions=actions,
            dimension=dimension,
            horizon=horizon,
            features=features,
            shared=shared,
            rate="realizable",
            ridge=ridge,
            feature_norm=feature_norm,
        )
        super().__init__(online)
        self._pairs = (states, actions)
        self._features = Features(features, (*self._pairs, dimension) if shared else (dimension,), feature_norm)
        self._fit = np.zeros((1 if shared else states * actions, dimension))

    def predict_with(self, parameters: FloatArray, context: Context) -> FloatArray:
        """Return ½ + θ·z, clipped."""
        inner = (checked_fit(parameters, self._fit.shape) * self._features(context)).sum(axis=1)
        return np.asarray(np.clip(0.5 + inner, 0.0, 1.0).reshape(self._pairs))

    def _learn(self, context: Context, episode: Episode) -> None:
        """Solve RᵀRθ = RᵀQᵀ(r - ½): the online oracle keeps R and Qᵀ(r - ½), (d+1, d+1) for each weight vector."""
        super()._learn(context, episode)
        roots = np.moveaxis(self.oracles[0].state()["roots"][0], -1, 0)
        self._fit = np.linalg.solve(roots[:, :-1, :-1], roots[:, :-1, -1:])[..., 0]


def checked_fit(parameters: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return `parameters`, if they are a fit of `shape`."""
    if np.shape(parameters) != shape:
        raise ValueError(f"`parameters` must have shape {shape}, got {np.shape(parameters)}")
    return parameters
