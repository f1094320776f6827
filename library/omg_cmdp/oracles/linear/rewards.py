"""The oracle of rewards linear in features of the context."""

from __future__ import annotations

from typing import final

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.features import FeatureFunction, Features
from omg_cmdp.oracles.frame import RewardFrame
from omg_cmdp.oracles.linear.forecasters import LinearForecasters
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.validation import FloatArray, instance_of, positive_integer, positive_number


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
