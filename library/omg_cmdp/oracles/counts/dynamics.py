"""Frequencies of transitions, in tables: see `counts.tables` for the forecasts and bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context
from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.jit import Lazy
from omg_cmdp.oracles.counts.tables import CountTables
from omg_cmdp.oracles.draws import Streams, resample
from omg_cmdp.oracles.frame import DynamicsFrame
from omg_cmdp.oracles.losses import Examples
from omg_cmdp.oracles.memory import check_memory
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.oracles.simplex import dirichlet_divergence, support_mask
from omg_cmdp.validation import BoolArray, FloatArray, positive_integer, positive_number

compiled, losses = Lazy("omg_cmdp.oracles.compiled.counts"), Lazy("omg_cmdp.oracles.compiled.losses")

SPARSE = 1.0
"""The pseudo-counts of a row in all, by the prior for pairs that lead to few of many states."""


class _Frequencies(CountTables):
    """Counts of transitions, and the log evidence of each prior.

    A prior is a Dirichlet distribution, the same for every row: α pseudo-counts for each next state, or `SPARSE` in
    all. The evidence is the probability of all that was seen if it were true.
    """

    learned = ("counts", "evidence")

    def __init__(
        self, possible: BoolArray, prior: float | None, contexts: Iterable[Context] | None, rate: Rate
    ) -> None:
        self._alpha = 0.5 if prior is None else prior
        # With two next states both priors are the same, and a second forecaster would only cost its log 2.
        is_learned = prior is None and bool((possible.sum(axis=-1) != 2).any())
        # The proven rate keeps to the prior that has the bound; otherwise the sparse one is one more forecaster.
        others = int(is_learned and rate.name != "proven")
        super().__init__(contexts, rate, count=len(rate.tempers) + others)
        tables = len(self.contexts or [None])
        instead = "merge states, or give contexts features and use SoftmaxDynamics or BasisDynamics"
        check_memory("CountDynamics", (tables + len(rate.tempers) + 6) * possible.size, instead)
        self.support = support = possible.astype(np.float64)
        self.possible = None if possible.all() else possible
        each, sparse = self._alpha * support, SPARSE * support / support.sum(axis=-1, keepdims=True)
        self._priors = np.stack([each, sparse] if is_learned else [each])
        tempered = rate.tempers[:, None, None, None] * each
        self._pseudo_counts = np.concatenate([tempered, self._priors[1 : 1 + others]])
        self.settings += f"prior {prior}", f"support {fingerprint(support)}"
        self.counts = np.zeros((tables, *support.shape))
        self.evidence = np.zeros(len(self._priors))

    def forecasts(self, table: int) -> FloatArray:
        smoothed = self.counts[table] + self._pseudo_counts
        return np.asarray(smoothed / smoothed.sum(axis=-1, keepdims=True))

    def learn(self, table: int, episode: Examples) -> None:
        compiled.count_transitions(self.counts[table], self._priors, *episode[:3], self.evidence)

    def expected_divergence(self, table: int, prediction: FloatArray) -> FloatArray:
        """Return 2 - 2·Σ √P̂·E√θ for θ from the Dirichlet posterior, where E√θ_i is a ratio of Gammas."""
        parts = [dirichlet_divergence(self.counts[table] + prior, prediction) for prior in self._priors]
        return np.asarray(np.tensordot(self._credibility(), parts, axes=1))

    def draws(self, table: int, streams: Streams) -> FloatArray:
        """Return rows drawn from Dirichlet(prior + n), zero outside the support, each prior as often as is credible."""
        priors = resample(self._credibility(), streams)
        return streams.of(table).rows(self.counts[table] + self._priors, priors)

    def _credibility(self) -> FloatArray:
        """Return the posterior probabilities of the priors."""
        probabilities = np.empty(len(self.evidence))
        losses.exponential_weights(-self.evidence, 1.0, probabilities)
        return probabilities

    def best_loss(self) -> float:
        """Return the loss of the observed frequencies."""
        # 0·log 0 = 0: only what was seen counts.
        totals = np.broadcast_to(self.counts.sum(axis=-1, keepdims=True), self.counts.shape)
        seen = self.counts > 0.0
        return float(-(self.counts[seen] * np.log(self.counts[seen] / totals[seen])).sum())

    def bound(self, episodes: int, horizon: int) -> float:
        """Return H·Σ log[Γ(α)·Γ(T' + αK)/(Γ(αK)·Γ(T' + α))]; nothing is proven for α < ½."""
        pairs = math.prod(self.counts.shape[:-1])
        visits, successors = episodes / pairs, self.support.sum(axis=-1).max()
        alpha, total = self._alpha, self._alpha * successors
        # Mixed sequences then cost more than constant ones, and the formula is no bound.
        if alpha < 0.5:
            return math.inf
        rise = math.lgamma(visits + total) - math.lgamma(visits + alpha)
        return self.rate.frozen_bound(float(pairs * (rise + math.lgamma(alpha) - math.lgamma(total))))

    def late_bound(self, episodes: int, horizon: int, delay: int, constant: bool) -> float:
        """Return the bound plus H·(d+1)·Q·log(1 + T/(αQ)), Q the number of (s, a, s') in all tables (Theorem 8).

        With several forecasters, Q·[H(d+1)·log(αH/β) + (αH - β)·log(1 + TH/(βQ))] more, β their least pseudo-count.
        """
        cells = len(self.counts) * float(self.support.sum())
        drift = (delay + 1) * cells * math.log1p(episodes / (self._alpha * cells))
        proven, least = self._alpha * self.horizon, float(self._pseudo_counts[self._pseudo_counts > 0.0].min())
        # The mean of all is at least the smallest of them: (c + β)/(c + αH) of the proven one, or more.
        first = self.horizon * (delay + 1) * math.log(proven / least)
        apart = cells * (first + (proven - least) * math.log1p(episodes * self.horizon / (least * cells)))
        return self.bound(episodes, horizon) + self.rate.frozen_bound(drift) + (apart if least < proven else 0.0)


@final
class CountDynamics(DynamicsFrame[_Frequencies]):
    """Transition frequencies with pseudo-counts: one table for all contexts, or one for each of a list.

    A forecaster of temper τ says (n(s') + ατ)/(n + ατ·K) after n visits of a pair that can lead to K states. Both
    priors forecast side by side where the prior is learned, and draws come from either as often as it is credible.

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
        aggregates both.
    prior : float, optional
        The pseudo-count α of each next state. By default it is learned: ½ each (Krichevsky and Trofimov, 1981), which
        has the bound, or one in all, which is faster where a pair leads to few of many states.
    support : array_like of bool, shape (S, A, S), optional
        The transitions that can happen; by default all. An episode with another one is refused.

    Examples
    --------
    >>> oracle = CountDynamics(states=2, actions=1, horizon=2, rate="realizable", prior=0.5)
    >>> oracle.update("any", states=[0, 0], actions=[0, 0], next_states=[1, 1])
    >>> oracle.predict("any")[0]
    array([[0.16666667, 0.83333333]])

    References
    ----------
    R. Krichevsky and V. Trofimov, *The performance of universal encoding*, IEEE Trans. Inf. Theory 1981;
    docs/oracles.md, Theorems 3 and 8.
    """

    def __init__(
        self,
        *,
        states: int,
        actions: int,
        horizon: int,
        contexts: Iterable[Context] | None = None,
        rate: str = "guarded",
        prior: float | None = None,
        support: ArrayLike | None = None,
    ) -> None:
        chosen = Rate(rate, horizon, tempered=True)
        mask = support_mask(support, positive_integer("states", states), positive_integer("actions", actions))
        alpha = None if prior is None else positive_number("prior", prior)
        super().__init__(_Frequencies(mask, alpha, contexts, chosen))
