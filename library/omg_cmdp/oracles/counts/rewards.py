"""Running means of rewards, in tables: see `counts.tables` for the forecasts and bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.oracles.counts.tables import CountTables
from omg_cmdp.oracles.draws import Streams
from omg_cmdp.oracles.frame import RewardFrame
from omg_cmdp.oracles.losses import Examples
from omg_cmdp.oracles.memory import check_memory
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.validation import FloatArray, positive_integer

compiled = Lazy("omg_cmdp.oracles.compiled.counts")


class _RunningMeans(CountTables):
    """Sums of rewards and of their squares."""

    learned = ("visits", "sums", "squares")

    def __init__(self, shape: tuple[int, int], contexts: Iterable[Context] | None, rate: Rate) -> None:
        super().__init__(contexts, rate)
        tables = len(self.contexts or [None])
        instead = "merge states, or give contexts features and use LinearRewards"
        check_memory("CountRewards", 3 * tables * math.prod(shape), instead)
        self.visits, self.sums, self.squares = np.zeros((3, tables, *shape))

    def forecasts(self, table: int) -> FloatArray:
        visits, sums = self.visits[table], self.sums[table]
        return np.asarray(0.5 + (sums - 0.5 * visits) / (visits + 2.0 * self.rate.tempers[:, None, None]))

    def learn(self, table: int, episode: Examples) -> None:
        pairs = episode.states, episode.actions
        # Unbuffered, unlike `+=`: an episode may visit a pair several times.
        np.add.at(self.visits[table], pairs, 1.0)
        np.add.at(self.sums[table], pairs, episode.outcomes)
        np.add.at(self.squares[table], pairs, episode.outcomes**2)

    def expected_divergence(self, table: int, prediction: FloatArray) -> FloatArray:
        """Return the variance of the posterior, and the squared distance of its mean from f̂."""
        mean, variance = self._posterior(table)
        return np.asarray(variance + (mean - prediction) ** 2)

    def _posterior(self, table: int) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the mean reward: noise/(n + 3), both with the pseudo-rewards 0 and 1.

        For rewards that are 0 or 1 these are mean and variance of Beta(1 + Σr, 1 + Σ(1-r)); for others the noise is
        what was seen, and less.
        """
        mean, variance = np.empty((2, *self.visits[table].shape))
        compiled.mean_rewards(self.visits[table], self.sums[table], self.squares[table], mean, variance)
        return mean, variance

    def draws(self, table: int, streams: Streams) -> FloatArray:
        """Return means drawn from the Beta distribution with mean and variance of the posterior, for every pair."""
        shapes = np.empty((*self.visits[table].shape, 2))
        compiled.beta_shapes(*self._posterior(table), shapes)
        return streams.of(table).rows(shapes)[..., 0]

    def best_loss(self) -> float:
        """Return the loss of the mean reward of each pair."""
        return float((self.squares - self.sums**2 / np.maximum(self.visits, 1.0)).clip(min=0.0).sum())

    def bound(self, episodes: int, horizon: int) -> float:
        pairs = self.visits.size
        # Concave in the visits: the bound is largest if all pairs are visited equally often.
        return self.rate.frozen_bound(0.25 * pairs * (1.0 + math.log1p(episodes / pairs)))

    def late_bound(self, episodes: int, horizon: int, delay: int, constant: bool) -> float:
        """Return H·Σ [½ + 4(d+1)·log(1 + T'/2)]; (H-1)·Σ [d + 1 + 2·log(1 + T'/2)] more if guarded (Theorem 8)."""
        pairs, guarded = self.visits.size, len(self.rate.tempers) > 1
        growth = math.log1p(0.5 * episodes / pairs)
        # A guarded forecast lies between both, which are never further apart than (H - 1)/(n + 2H).
        apart = pairs * (self.horizon - 1.0) * (delay + 1.0 + 2.0 * growth) if guarded else 0.0
        return self.rate.frozen_bound(pairs * (0.5 + 4.0 * (delay + 1) * growth)) + apart


@final
class CountRewards(RewardFrame[_RunningMeans]):
    """Mean rewards of each pair, shrunk towards ½: one table for all contexts, or one for each of a list.

    After n visits of a pair a forecaster of temper τ says ½ + Σ(r - ½)/(n + 2τ). Proven regret over T episodes, T' = T
    divided by the number of pairs: (H/4)·Σ [1 + log(1 + T')]. Choose it where contexts are few and recur, or do not
    matter; nothing is carried over from one context to another.

    Parameters
    ----------
    states : int
        The number of states, S.
    actions : int
        The number of actions, A.
    horizon : int
        The largest number of steps of an episode, H.
    contexts : iterable of contexts, optional
        Labels, vectors or records with a table each; any other context is refused. By default one table serves all.
    rate : {"guarded", "proven", "realizable"}, default "guarded"
        "proven" is safe against any adversary, "realizable" faster on benign data and without a bound; "guarded"
        aggregates both, and keeps the bound but for (H/2)·log 2.

    Examples
    --------
    >>> oracle = CountRewards(states=1, actions=2, horizon=2, rate="realizable")
    >>> oracle.update("any", states=[0, 0], actions=[1, 1], rewards=[1.0, 1.0])
    >>> oracle.predict("any"), oracle.uncertainty("any")  # Laplace's rule, Beta(1, 1) and Beta(3, 1)
    (array([[0.5 , 0.75]]), array([[0.08333333, 0.0375    ]]))

    References
    ----------
    docs/oracles.md, Theorems 2 and 8.
    """

    def __init__(
        self,
        *,
        states: int,
        actions: int,
        horizon: int,
        contexts: Iterable[Context] | None = None,
        rate: str = "guarded",
    ) -> None:
        shape = positive_integer("states", states), positive_integer("actions", actions)
        super().__init__(_RunningMeans(shape, contexts, Rate(rate, horizon, tempered=True)))
