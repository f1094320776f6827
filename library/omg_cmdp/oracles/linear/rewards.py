"""The oracle of rewards linear in features of the context, and features that tell pairs apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.features import FeatureFunction, Features
from omg_cmdp.oracles.frame import RewardFrame
from omg_cmdp.oracles.linear.forecasters import LinearForecasters
from omg_cmdp.oracles.losses import read_episode
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.recipes.recipe import Made
from omg_cmdp.validation import FloatArray, instance_of, listed, positive_integer, positive_number, real_number


@final
class LinearRewards(RewardFrame[LinearForecasters]):
    """Rewards linear in features: f(c, s, a) = ½ + θ(s, a)·z(c), or with `shared` features ½ + θ·z(c, s, a).

    The forecaster of Vovk, Azoury and Warmuth, clipped to [0, 1]. Regret against weights of norm at most B:
    H·G·[λB² + (d/4)·log(1 + T·X²/(λdG))] for G weight vectors (S·A, or one if `shared`) and features of norm at most X;
    with an intercept z has a constant 1 more, d is larger by one and X² as well. Choose it where the context is a
    vector and rewards change smoothly with it.

    Parameters
    ----------
    states : int
        The number of states, S.
    actions : int
        The number of actions, A.
    dimension : int
        The number of features, d, without the constant of `intercept`.
    horizon : int
        The largest number of steps of an episode, H.
    features : callable, optional
        context -> z, of shape (d,), or (S, A, d) if `shared`; such as a `FeatureMap`. By default the context is z
        itself.
    intercept : bool, default True
        Whether a constant 1 is added to the features; not to those that have one, as a `FeatureMap`. Without a
        constant f = ½ wherever z = 0, whatever was seen there.
    shared : bool, default False
        Whether all pairs share one weight vector, so that what is learned of one tells about the others.
    rate : {"guarded", "proven", "realizable"}, default "guarded"
        "proven" is safe against any adversary, "realizable" faster on benign data and without a bound; "guarded"
        aggregates both.
    delay : int, default 0
        The number d of other updates that may lie between a prediction and its own, with the rate "proven" only. θ is
        then the best in the ball of B, and an update costs an eigenvalue decomposition for each weight vector.
    ridge : float, default 1.0
        λ. The weights have the prior N(0, I/(4λ)).
    feature_norm : float, default 1.0
        X, without the constant. Longer features are refused.
    weight_norm : float, default 1.0
        B, which only the bound, the comparator and a positive `delay` use.

    Examples
    --------
    >>> oracle = LinearRewards(states=1, actions=2, dimension=2, horizon=1)
    >>> for _ in range(200):
    ...     oracle.update([1.0, 0.0], states=[0], actions=[1], rewards=[0.9])
    >>> oracle.predict([1.0, 0.0]).round(2), oracle.predict([0.0, 1.0]).round(2)
    (array([[0.5, 0.9]]), array([[0.5 , 0.58]]))

    References
    ----------
    V. Vovk, *Competitive on-line linear regression*, NeurIPS 1998; K. Azoury and M. Warmuth, *Relative loss bounds*,
    Machine Learning 2001; docs/oracles.md, Theorems 2 and 8.
    """

    def __init__(
        self,
        *,
        states: int,
        actions: int,
        dimension: int,
        horizon: int,
        features: FeatureFunction | None = None,
        intercept: bool = True,
        shared: bool = False,
        rate: str = "guarded",
        delay: int = 0,
        ridge: float = 1.0,
        feature_norm: float = 1.0,
        weight_norm: float = 1.0,
    ) -> None:
        instance_of("shared", shared, bool)
        if shared and features is None:
            raise ValueError("`features` must be given if `shared`, got None")
        chosen = Rate(rate, horizon, tempered=True, delay=delay)
        pairs = positive_integer("states", states), positive_integer("actions", actions)
        size = positive_integer("dimension", dimension)
        inputs = Features(features, (*pairs, size) if shared else (size,), feature_norm, intercept=intercept)
        norms = positive_number("ridge", ridge), positive_number("weight_norm", weight_norm)
        super().__init__(LinearForecasters(pairs, inputs, *norms, chosen))

    def covariance(self, context: Context) -> FloatArray:
        """Return (S, A, A): zᵀ(λI + Σzzᵀ)⁻¹z' for the actions of each state, 0 for different weight vectors.

        Times σ² it is the posterior covariance of the rewards, for noise of variance σ² and a prior N(0, I·σ²/λ).
        """
        return self.forecasters.covariance(self.forecasters.prepare(context))

    def update_total(self, context: Context, states: ArrayLike, actions: ArrayLike, total: float) -> None:
        """Learn from an episode of which only the sum of its L rewards is known, in [0, L]; `shared` features only.

        Least squares on sums finds the weights if episodes differ enough. The loss of an episode is then (Σ f̂ -
        total)²/L. Errors of steps may cancel in it, so that `regret_bound`, which is about steps, is inf.

        Parameters
        ----------
        context : context
            The context of the episode.
        states, actions : array_like of int, shape (L,)
            The states visited and the actions taken.
        total : float
            The sum of the rewards, in [0, L].
        """
        if not self.forecasters.shared:
            raise ValueError("`total` must be given to an oracle with shared features, got one with weights per pair")
        answer = self._answer(context)
        # Rewards of zero pass the check of steps; the total is checked below, against their number.
        unknown = np.zeros(len(listed("states", states)))
        steps = read_episode(self._loss, answer.prediction.shape, self.horizon, states, actions, unknown)
        count = len(steps.pairs)
        if not 0.0 <= (earned := real_number(total)) <= count:
            raise ValueError(f"`total` must lie in [0, {count}], the number of steps, got {total!r:.60}")
        account, self._answered = self.forecasters.account, None
        self.forecasters.learn_total(answer.prepared, steps, earned)
        sums = [table.reshape(-1)[steps.pairs].sum() for table in (answer.prediction, *answer.forecasts)]
        own, *losses = ((each - earned) ** 2 / count for each in sums)
        account.loss, account.losses = account.loss + own, account.losses + losses
        account.episodes, account.examples = account.episodes + 1, account.examples + count


def pair_features(states: int, actions: int) -> Callable[[Context], FloatArray]:
    """Return features (S, A, S·A) that tell pairs apart and nothing else: a table, as a linear model that takes totals.

    Parameters
    ----------
    states : int
        The number of states, S.
    actions : int
        The number of actions, A.

    Returns
    -------
    callable
        context -> (S, A, S·A), the same for every context: the `features` of a `LinearRewards` with `shared=True`.

    Examples
    --------
    >>> pairs = {"features": pair_features(states=2, actions=1), "shared": True, "dimension": 2}
    >>> oracle = LinearRewards(states=2, actions=1, horizon=2, **pairs)
    >>> for _ in range(2000):
    ...     oracle.update_total("any", states=[0, 0], actions=[0, 0], total=0.4)
    ...     oracle.update_total("any", states=[0, 1], actions=[0, 0], total=1.1)
    >>> oracle.predict("any").round(2).tolist()
    [[0.2], [0.9]]
    """
    return PairFeatures(states, actions)


class PairFeatures(Made):
    """The features that `pair_features` returns; their entries add up to one, as a constant would."""

    has_intercept: ClassVar[bool] = True

    def __init__(self, states: int, actions: int) -> None:
        pairs = positive_integer("states", states), positive_integer("actions", actions)
        self._table = np.eye(math.prod(pairs)).reshape(*pairs, -1)

    def __call__(self, context: Context) -> FloatArray:
        """Return the table (S, A, S·A), whatever the context."""
        return self._table
