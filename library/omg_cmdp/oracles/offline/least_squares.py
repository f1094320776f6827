"""Least squares for dynamics, over all past episodes: RM-UCDD's regression of indicators of the next state.

    P̂ = argmin Σ Σ_s' (P(s'|s, a) - 1[s' came next])²

If the truth P* is one of N transition functions, then with probability 1 - δ, after any number of episodes and for any
choice of contexts and actions, summed over all past (c, s, a),

    Σ ‖P̂ - P*‖₂² <= 4·log(N/δ),    hence    Σ ‖P̂ - P*‖₁² <= 4S·log(N/δ).

Proof. For a function P let g = P - P*, and ε the indicator minus P*. ⟨ε, g⟩ has mean 0 and range max g - min g,
whose square is at most 2‖g‖₂², so that exp(Σ⟨ε, g⟩ - ¼Σ‖g‖₂²) is a supermartingale (Hoeffding). By Ville's inequality
2Σ⟨ε, g⟩ <= ½Σ‖g‖₂² + 2·log(N/δ) for all P and t at once; and Σ‖g‖₂² <= 2Σ⟨ε, g⟩ for the minimiser. ∎

The S is the price of squares: maximum likelihood (`OfflineFiniteDynamics`) has Σ‖P̂ - P*‖₁² <= 4·Σ D² <= 8·log(N/δ).
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.oracles.base import DynamicsOracle
from omg_cmdp.oracles.features import FeatureFunction, Features
from omg_cmdp.oracles.finite.function_class import Functions, Predictions
from omg_cmdp.oracles.frame import Forecasters, Frame, learn_transitions
from omg_cmdp.oracles.losses import LOG, Examples
from omg_cmdp.oracles.offline.finite import BestFunction
from omg_cmdp.oracles.offline.fits import checked_fit, current_fit, predict_with_fit
from omg_cmdp.oracles.simplex import Smoothing, nearest_on_simplex
from omg_cmdp.validation import FloatArray, positive_integer, positive_number

compiled = Lazy("omg_cmdp.oracles.compiled.finite")


def charge_indicators(losses: FloatArray, functions: Functions, episode: Examples) -> None:
    """Charge Σ_s' (P(s') - 1[s' came next])² for each transition."""
    compiled.charge_class_indicators(losses, functions.columns, episode.cells, functions.shape[-1])


class _LeastSquares(BestFunction):
    """The function with the smallest sum of squares. Square loss of indicators is 1-mixable, as log loss is."""

    def best_loss(self) -> float:
        """Return nan: what is kept of each function is not its log loss."""
        return math.nan


@final
class OfflineLeastSquaresDynamics(Frame[_LeastSquares], DynamicsOracle):
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

    update, parameters, predict_with = learn_transitions, current_fit, predict_with_fit

    def __init__(self, predictions: Predictions, *, horizon: int) -> None:
        super().__init__(_LeastSquares(predictions, LOG, charge_indicators, Smoothing(0.0, None), horizon))


class _LinearIndicators(Forecasters):
    """Ridge regression of the indicators, less 1/S, on features of the context: one for each (s, a)."""

    learned = ("fit", "grams", "moments")
    features: Features

    def __init__(self, shape: tuple[int, int], features: Features, ridge: float, horizon: int) -> None:
        super().__init__(horizon)
        self._table, self.features = (*shape, shape[0]), features
        self.settings = (f"ridge {ridge}", f"feature_norm {features.norm}")
        pairs, size = shape[0] * shape[1], features.shape[-1]
        self.grams = np.zeros((pairs, size, size)) + ridge * np.eye(size)
        self.moments = np.zeros((pairs, size, shape[0]))
        self.fit = np.zeros((pairs, size, shape[0]))

    def prepare(self, context: Context) -> FloatArray:
        """Return the features (d,)."""
        return np.asarray(self.features(context)[0])

    def table_of(self, parameters: FloatArray, row: FloatArray) -> FloatArray:
        """Return the transitions nearest to 1/S + θ·z."""
        moved = np.einsum("d,pdj->pj", row, checked_fit(parameters, self.fit.shape))
        return nearest_on_simplex(1.0 / self._table[-1] + moved).reshape(self._table)

    def forecasts(self, row: FloatArray) -> FloatArray:
        """Return the table of the fit."""
        return self.table_of(self.fit, row)[None]

    def learn(self, row: FloatArray, episode: Examples) -> None:
        """Add to the normal equations, and solve them for the pairs that the episode visited."""
        # Centred at 1/S: the ridge then pulls towards the uniform distribution.
        targets = np.eye(self._table[-1])[episode.outcomes] - 1.0 / self._table[-1]
        for pair, target in zip(episode.pairs, targets, strict=True):
            self.grams[pair] += np.outer(row, row)
            self.moments[pair] += np.outer(row, target)
        for pair in np.unique(episode.pairs):
            self.fit[pair] = np.linalg.solve(self.grams[pair], self.moments[pair])

    def expected_divergence(self, row: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return ¼·(S - 1)·zᵀG⁻¹z, what E D² is of frequencies of 1/zᵀG⁻¹z transitions; at most 2."""
        # zᵀG⁻¹z is one over the effective number of examples at z.
        leverages = np.einsum("d,pd->p", row, np.linalg.solve(self.grams, row[None, :, None])[..., 0])
        spread = 0.25 * (self._table[-1] - 1.0) * leverages
        return np.asarray(np.minimum(spread, 2.0).reshape(self._table[:2]))


@final
class OfflineLinearDynamics(Frame[_LinearIndicators], DynamicsOracle):
    """Ridge regression for P(s'|c, s, a) = 1/S + θ(s, a, s')·z(c), moved to the nearest distribution.

    θ minimises Σ Σ_s' (1/S + θ·z - 1[s' came next])² + ridge·‖θ‖². A unit vector for each label makes tables of
    frequencies, (n(s') + ridge/S)/(n + ridge). Against an adversary nothing is proven, and `regret_bound` is inf.

    Parameters
    ----------
    states : int
        The number of states, S.
    actions : int
        The number of actions, A.
    dimension : int
        The number of features, d.
    horizon : int
        The largest number of steps of an episode, H.
    features : callable, optional
        context -> z of shape (d,), such as a `FeatureMap`. By default the context is z itself.
    ridge : float, default 1.0
        The weight of ‖θ‖².
    feature_norm : float, default 1.0
        The largest norm of z. Longer features are refused.

    Examples
    --------
    >>> oracle = OfflineLinearDynamics(states=2, actions=1, dimension=1, horizon=3, ridge=1.0)
    >>> oracle.update([1.0], states=[0, 0, 0], actions=[0, 0, 0], next_states=[1, 0, 1])
    >>> oracle.predict([1.0])[0]  # (1 + ½)/4 and (2 + ½)/4
    array([[0.375, 0.625]])
    """

    update, parameters, predict_with = learn_transitions, current_fit, predict_with_fit

    def __init__(
        self,
        *,
        states: int,
        actions: int,
        dimension: int,
        horizon: int,
        features: FeatureFunction | None = None,
        ridge: float = 1.0,
        feature_norm: float = 1.0,
    ) -> None:
        shape = positive_integer("states", states), positive_integer("actions", actions)
        inputs = Features(features, (positive_integer("dimension", dimension),), feature_norm)
        super().__init__(_LinearIndicators(shape, inputs, positive_number("ridge", ridge), horizon))
