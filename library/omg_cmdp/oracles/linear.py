"""Rewards linear in features of the context: the forecaster of Vovk (1998) and of Azoury and Warmuth (2001), clipped.

With A = τλI + Σ zzᵀ and b = Σ (r - ½)z over past examples, a forecaster of temper τ predicts

    f̂(z) = ½ + zᵀ(A + τ·zzᵀ)⁻¹b = ½ + zᵀA⁻¹b/(1 + τ·zᵀA⁻¹z),  clipped to [0, 1]:

ridge regression with τ more examples, the question itself with the answer ½. τ = 1 is the textbook's, τ = H
the proven one for frozen episodes. Regret against ‖u‖ <= B with ‖z‖ <= X, for G weight vectors (docs/oracles.md,
Theorem 2):

    H·G·[λB² + (d/4)·log(1 + T·X²/(λdG))]

The state is the root R of [[A, b], [bᵀ, Σ(r-½)²]] = RᵀR, updated by plane rotations, which lose no digits: a
prediction costs one triangular solve, and the best loss in hindsight follows from R for τ = 0.

*Uncertainty and draws*: rewards have variance at most ¼, so that the ridge λ is a prior N(0, I/(4λ)) of the weights.
Mean rewards in [0, 1] have variance at most ¼ too, so that it is N(0, I/(4Λ)) with Λ = max(λ, X²). With the noise σ² of
each weight vector, estimated from its own residuals, the posterior is

    θ ~ N(C·b/σ², C),  C = (4ΛI + Σzzᵀ/σ²)⁻¹ = σ²·(ρI + Σzzᵀ)⁻¹,  ρ = 4Λσ².

What was not tried keeps the variance ‖z‖²/(4Λ), whatever was seen elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.oracles.ball import least_squares
from omg_cmdp.oracles.base import RewardOracle
from omg_cmdp.oracles.features import FeatureFunction, Features
from omg_cmdp.oracles.frame import Forecasters, Frame, learn_rewards
from omg_cmdp.oracles.losses import Examples
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.persistence import State
from omg_cmdp.validation import FloatArray, instance_of, listed, positive_integer, positive_number, real_number

compiled = Lazy("omg_cmdp.oracles.compiled.linear")


class _Linear(Forecasters):
    """Vovk's forecasters: a root for each temper and weight vector, (d+1, d+1)."""

    learned = ("roots", "visits", "totals")
    rate: Rate
    features: Features

    def __init__(
        self, pairs: tuple[int, int], features: Features, ridge: float, weight_norm: float, rate: Rate
    ) -> None:
        super().__init__(rate.horizon, rate)
        self.pairs, self.features = pairs, features
        self.ridge, self.weight_norm = ridge, weight_norm
        self.shared = len(features.shape) == 3
        self.dimension = features.shape[-1]
        self._prior_precision = 4.0 * max(ridge, features.norm**2)
        self.settings = f"ridge {ridge}", f"shared {self.shared}", *rate.settings
        # Kept in any case: the root without a ridge, and the textbook's, by whose residuals noise is measured.
        kept = np.unique([0.0, 1.0, *rate.tempers])
        self._groups = 1 if self.shared else math.prod(pairs)
        self.roots = np.zeros((len(kept), self.dimension + 1, self.dimension + 1, self._groups))
        diagonal = np.arange(self.dimension)
        self.roots[:, diagonal, diagonal] = np.sqrt(kept * ridge)[:, None, None]
        self.visits, self.totals = np.zeros(self._groups), np.zeros(())
        self._posterior = np.empty(self.roots.shape[1:])
        self._changed = np.ones(self._groups, dtype=np.bool_)  # since the posterior was computed
        self._scratch = np.empty((self.dimension + 1, math.prod(pairs)))
        self._carried = np.empty(self.dimension + 1)
        self._late_weights: FloatArray | None = None  # in the ball, since the last update

    def prepare(self, context: Context) -> FloatArray:
        return self.features(context)

    def forecasts(self, rows: FloatArray) -> FloatArray:
        if self.rate.delay:
            return self._in_ball(rows)
        tempers = self.rate.tempers
        forecasts = np.empty((len(tempers), *self.pairs))
        compiled.vaw(
            self._of_pairs(self.roots, rows), rows, tempers, forecasts.reshape(len(tempers), -1), self._scratch
        )
        return forecasts

    def _in_ball(self, rows: FloatArray) -> FloatArray:
        """Return ½ + θ·z, clipped, θ the best weights in the ball with the ridge λH(d + 1), for late outcomes."""
        if self._late_weights is None:
            ridge = self.ridge * self.horizon * (self.rate.delay + 1)
            roots = np.moveaxis(self.roots[0], -1, 0)
            self._late_weights = np.array([least_squares(root, self.weight_norm, ridge)[0] for root in roots])
        forecasts = np.clip(0.5 + (rows * self._late_weights).sum(axis=1), 0.0, 1.0)
        return np.asarray(forecasts.reshape(1, *self.pairs))

    def learn(self, rows: FloatArray, episode: Examples) -> None:
        self._late_weights = None
        rows, groups = (rows[episode.pairs], np.zeros_like(episode.pairs)) if self.shared else (rows, episode.pairs)
        compiled.rotate_in(self.roots, rows, groups, episode.outcomes - 0.5, self._carried)
        np.add.at(self.visits, groups, 1.0)
        self._changed[groups] = True

    def learn_total(self, rows: FloatArray, episode: Examples, total: float) -> None:
        """Learn that Σ f over the episode is `total`: one example, divided by √L, so that its noise is that of one."""
        self._late_weights = None
        steps = len(episode.pairs)
        row, target = rows[episode.pairs].sum(axis=0) / math.sqrt(steps), (total - 0.5 * steps) / math.sqrt(steps)
        group = np.zeros(1, dtype=np.int64)
        compiled.rotate_in(self.roots, row[None], group, np.array([target]), self._carried)
        self.visits, self.totals = self.visits + 1.0, self.totals + 1.0
        self._changed[:] = True

    def load_state(self, state: State) -> None:
        """Load the roots; the posterior will follow from them."""
        super().load_state(state)
        self._changed[:] = True
        self._late_weights = None

    def _of_pairs(self, groups: FloatArray, rows: FloatArray) -> FloatArray:
        """Return what there is for each weight vector, (..., G), for each pair."""
        return np.broadcast_to(groups, (*groups.shape[:-1], len(rows))) if self.shared else groups

    def expected_divergence(self, rows: FloatArray, prediction: FloatArray) -> FloatArray:
        """Return zᵀCz, and the squared distance of the posterior mean from f̂."""
        means, variances = self._regressions(rows)
        biases = np.clip(0.5 + means, 0.0, 1.0) - prediction.reshape(-1)
        return np.asarray(np.minimum(variances + biases**2, 1.0).reshape(self.pairs))

    def draws(self, rows: FloatArray, count: int, generator: np.random.Generator) -> FloatArray:
        """Return ½ + θ·z, cut to [0, 1], for θ from the posterior: one θ if `shared`, else one for each pair."""
        means, variances = self._regressions(rows)
        if self.shared:
            directions = np.sqrt(self._noise()) * self._scratch[:-1]
            moved = generator.standard_normal((count, self.dimension)) @ directions
        else:
            moved = generator.standard_normal((count, len(means))) * np.sqrt(variances)
        return np.asarray(np.clip(0.5 + means + moved, 0.0, 1.0).reshape(count, *self.pairs))

    def _regressions(self, rows: FloatArray) -> FloatArray:
        """Return mean and variance of θ·z, (2, S·A). The scratch then holds R⁻ᵀz, (d, S·A), R the posterior's root."""
        self._refresh()
        answers = np.empty((2, math.prod(self.pairs)))
        compiled.regressions(self._of_pairs(self._posterior, rows), rows, *answers, self._scratch)
        answers[1] *= self._of_pairs(self._noise(), rows)
        return answers

    def covariance(self, rows: FloatArray) -> FloatArray:
        """Return zᵀA⁻¹z' of the actions of each state, (S, A, A), the ridge in A; 0 for different weight vectors."""
        answers = np.empty((2, math.prod(self.pairs)))
        compiled.regressions(self._of_pairs(self.roots[1], rows), rows, *answers, self._scratch)  # at temper 1
        if not self.shared:
            return np.asarray(answers[1].reshape(self.pairs)[..., None] * np.eye(self.pairs[1]))
        solved = self._scratch[:-1].reshape(-1, *self.pairs)
        return np.asarray(np.einsum("dsa,dsb->sab", solved, solved))

    def _noise(self) -> FloatArray:
        """Return σ² (G,): the mean squared residual, with one pseudo-example of variance ¼, the largest possible."""
        return np.asarray((0.25 + self.roots[1, -1, -1] ** 2) / (1.0 + self.visits))

    def _refresh(self) -> None:
        """Add the prior to the roots without ridge that have changed: d examples √ρ·e of the answer ½."""
        for group in np.flatnonzero(self._changed).tolist():
            root = self.roots[:1, :, :, group : group + 1].copy()
            examples = math.sqrt(self._prior_precision * self._noise()[group]) * np.eye(self.dimension)
            none = np.zeros(self.dimension)
            compiled.rotate_in(root, examples, none.astype(np.int64), none, self._carried)
            self._posterior[:, :, group] = root[0, :, :, 0]
        self._changed[:] = False

    def best_loss(self) -> float:
        """Return the loss of the best weights of norm at most `weight_norm`, for each weight vector."""
        return math.fsum(least_squares(root, self.weight_norm)[1] for root in np.moveaxis(self.roots[0], -1, 0))

    def bound(self, episodes: int, horizon: int) -> float:
        """Return the bound of Theorem 2, or 8 if outcomes are late; nothing is proven once a total was learned."""
        if self.totals > 0.0:
            return math.inf
        groups, size, norm = self._groups, self.dimension, self.weight_norm
        late, reach = self.rate.delay + 1, self.features.norm
        growth = size * math.log1p(episodes * reach**2 / (self.ridge * size * groups * late))
        if self.rate.delay:
            return self.horizon * late * groups * (self.ridge * norm**2 + 4.0 * (0.5 + norm * reach) * growth)
        return self.rate.frozen_bound(groups * (self.ridge * (norm * norm) + 0.25 * growth))


@final
class LinearRewards(Frame[_Linear], RewardOracle):
    """Rewards linear in features: f(c, s, a) = ½ + θ(s, a)·z(c), or with `shared` features ½ + θ·z(c, s, a).

    The forecaster of Vovk, Azoury and Warmuth, clipped to [0, 1]. Regret against weights of norm at most B:
    H·G·[λB² + (d/4)·log(1 + T·X²/(λdG))] for G weight vectors (S·A, or one if `shared`) and features of norm at most X.
    Choose it where the context is a vector and rewards change smoothly with it.

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
        context -> z, of shape (d,), or (S, A, d) if `shared`; such as a `FeatureMap`. By default the context is z
        itself. A constant entry is an intercept: without one, f = ½ wherever z = 0.
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
        X. Longer features are refused.
    weight_norm : float, default 1.0
        B, which only the bound, the comparator and a positive `delay` use.

    Examples
    --------
    >>> oracle = LinearRewards(states=1, actions=2, dimension=2, horizon=1)
    >>> for _ in range(200):
    ...     oracle.update([1.0, 0.0], states=[0], actions=[1], rewards=[0.9])
    >>> oracle.predict([1.0, 0.0]).round(2), oracle.predict([0.0, 1.0]).round(2)
    (array([[0.5, 0.9]]), array([[0.5, 0.5]]))

    References
    ----------
    V. Vovk, *Competitive on-line linear regression*, NeurIPS 1998; K. Azoury and M. Warmuth, *Relative loss bounds*,
    Machine Learning 2001; docs/oracles.md, Theorems 2 and 8.
    """

    update = learn_rewards

    def __init__(
        self,
        *,
        states: int,
        actions: int,
        dimension: int,
        horizon: int,
        features: FeatureFunction | None = None,
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
        inputs = Features(features, (*pairs, size) if shared else (size,), feature_norm)
        norms = positive_number("ridge", ridge), positive_number("weight_norm", weight_norm)
        super().__init__(_Linear(pairs, inputs, *norms, chosen))

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
        unknown = np.zeros(len(listed("states", states)))
        steps = self._loss.read(answer.prediction.shape, self.horizon, states, actions, unknown)
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
    pairs = positive_integer("states", states), positive_integer("actions", actions)
    table = np.eye(math.prod(pairs)).reshape(*pairs, -1)
    return lambda context: table
