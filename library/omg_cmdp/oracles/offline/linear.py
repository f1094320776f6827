"""Least squares for linear rewards over all past episodes: see `offline.fits` for what an offline oracle is."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.base import RewardOracle
from omg_cmdp.oracles.frame import Frame, learn_rewards
from omg_cmdp.oracles.linear.rewards import LinearRewards
from omg_cmdp.oracles.losses import SQUARE, Examples
from omg_cmdp.oracles.offline.fits import Fitted, checked_fit, current_fit, predict_with_fit
from omg_cmdp.validation import FloatArray


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
        # The textbook's root has the ridge in it: no new decomposition is needed.
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
