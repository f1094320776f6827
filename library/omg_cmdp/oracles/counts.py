"""Tables of counts, for all contexts together or one for each of a list: running means, and Krichevsky-Trofimov.

Forecasts of temper τ (1: textbook, H: proven), n the number of visits of a pair, docs/oracles.md, Theorems 2 and 3:

    rewards    ½ + Σ(r - ½)/(n + 2τ)       regret <= (H/4)·Σ [1 + log(1 + T')]
    dynamics   (n(s') + ατ)/(n + ατ·K)     regret <= H·Σ log[Γ(α)·Γ(T' + αK)/(Γ(αK)·Γ(T' + α))] if α >= ½

The sums run over all pairs (of all tables), and T' is T divided by their number. K is the number of next states that
the support admits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp.contexts import Context, label_index, table_label
from omg_cmdp.jit import Lazy
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.draws import draw_dirichlet, draws_of_parts, resample
from omg_cmdp.oracles.frame import Forecasters, Frame, learn_rewards, learn_transitions
from omg_cmdp.oracles.losses import SMALLEST_PROBABILITY, Examples, exponential_weights
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.oracles.simplex import dirichlet_divergence, support_mask
from omg_cmdp.persistence import fingerprint
from omg_cmdp.records import context_rows
from omg_cmdp.validation import BoolArray, FloatArray, listed, positive_integer, positive_number

compiled = Lazy("omg_cmdp.oracles.compiled.counts")

SPARSE = 1.0
"""The pseudo-counts of a row in all, by the prior for pairs that lead to few of many states."""


class _Tables(Forecasters):
    """One table for all contexts, or one for each of those that are listed."""

    rate: Rate

    def __init__(self, contexts: Iterable[Context] | None, rate: Rate, *, count: int | None = None) -> None:
        super().__init__(rate.horizon, rate, count=count)
        known = () if contexts is None else listed("contexts", context_rows("contexts", contexts))
        labels = [table_label(context) for context in known]
        self._index = None if contexts is None else label_index(labels)
        self.contexts = None if contexts is None else tuple(dict(zip(labels, known, strict=True)).values())
        self.settings = () if self._index is None else (f"contexts {list(self._index)}",)

    def prepare(self, context: Context) -> int:
        """Return the number of the context's table."""
        if self._index is None:
            return 0
        try:
            return self._index[table_label(context)]
        except (KeyError, TypeError):
            raise ValueError(f"`context` must be one of the {len(self._index)} listed, got {context!r}") from None

    def distances(self, table: int, truth: FloatArray, used: BoolArray) -> FloatArray | None:
        """Return (1,): half the range over steps, if every context has a table of its own."""
        if self._index is None:
            return None
        return np.array([0.5 * np.ptp(truth[:, used], axis=0).max()])


class _Means(_Tables):
    """Sums of rewards and of their squares."""

    learned = ("visits", "sums", "squares")

    def __init__(self, shape: tuple[int, int], contexts: Iterable[Context] | None, rate: Rate) -> None:
        super().__init__(contexts, rate)
        self.visits, self.sums, self.squares = np.zeros((3, len(self.contexts or [None]), *shape))

    def forecasts(self, table: int) -> FloatArray:
        visits, sums = self.visits[table], self.sums[table]
        return np.asarray(0.5 + (sums - 0.5 * visits) / (visits + 2.0 * self.rate.tempers[:, None, None]))

    def learn(self, table: int, episode: Examples) -> None:
        for learned, examples in (
            (self.visits, np.ones(len(episode.outcomes))),
            (self.sums, episode.outcomes),
            (self.squares, episode.outcomes**2),
        ):
            np.add.at(learned[table], (episode.states, episode.actions), examples)

    def expected_divergence(self, table: int, prediction: FloatArray) -> FloatArray:
        """Return the variance of the posterior, and the squared distance of its mean from f̂."""
        mean, variance = self._posterior(table)
        return np.asarray(variance + (mean - prediction) ** 2)

    def _posterior(self, table: int) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the mean reward: noise/(n + 3), both with the pseudo-rewards 0 and 1.

        For rewards that are 0 or 1 these are mean and variance of Beta(1 + Σr, 1 + Σ(1-r)); for others the noise is
        what was seen, and less.
        """
        examples = self.visits[table] + 2.0
        mean, square = (self.sums[table] + 1.0) / examples, (self.squares[table] + 1.0) / examples
        return mean, np.maximum(square - mean**2, 0.0) / (examples + 1.0)

    def draws(self, table: int, count: int, generator: np.random.Generator) -> FloatArray:
        """Return means drawn from the Beta distribution with mean and variance of the posterior, for every pair."""
        mean, variance = self._posterior(table)
        total = mean * (1.0 - mean) / np.maximum(variance, 1e-300) - 1.0
        return generator.beta(total * mean, total * (1.0 - mean), (count, *mean.shape))

    def best_loss(self) -> float:
        """Return the loss of the mean reward of each pair."""
        return float((self.squares - self.sums**2 / np.maximum(self.visits, 1.0)).clip(min=0.0).sum())

    def bound(self, episodes: int, horizon: int) -> float:
        pairs = self.visits.size
        return self.rate.frozen_bound(0.25 * pairs * (1.0 + math.log1p(episodes / pairs)))

    def late_bound(self, episodes: int, horizon: int, delay: int, constant: bool) -> float:
        """Return H·Σ [½ + 4(d+1)·log(1 + T'/2)] (Theorem 8)."""
        pairs = self.visits.size
        return self.rate.frozen_bound(pairs * (0.5 + 4.0 * (delay + 1) * math.log1p(0.5 * episodes / pairs)))


class _Frequencies(_Tables):
    """Counts of transitions, of those that the support excludes, and the log evidence of each prior.

    A prior is a Dirichlet distribution, the same for every row: α pseudo-counts for each next state, or `SPARSE` in
    all. The evidence is the probability of all that was seen if it were true.
    """

    learned = ("counts", "excluded", "evidence")

    def __init__(
        self, support: FloatArray, prior: float | None, contexts: Iterable[Context] | None, rate: Rate
    ) -> None:
        self._support, self._alpha = support, 0.5 if prior is None else prior
        each, sparse = self._alpha * support, SPARSE * support / support.sum(axis=-1, keepdims=True)
        is_learned = prior is None and not np.array_equal(each, sparse)
        self._priors = np.stack([each, sparse] if is_learned else [each])
        tempered = rate.tempers[:, None, None, None] * each
        self._pseudo_counts = tempered if rate.name == "proven" else np.concatenate([tempered, self._priors[1:]])
        super().__init__(contexts, rate, count=len(self._pseudo_counts))
        self.settings += f"prior {prior}", f"support {fingerprint(support)}"
        self.counts = np.zeros((len(self.contexts or [None]), *support.shape))
        self.excluded, self.evidence = np.zeros(1), np.zeros(len(self._priors))

    def forecasts(self, table: int) -> FloatArray:
        smoothed = self.counts[table] + self._pseudo_counts
        return np.asarray(smoothed / smoothed.sum(axis=-1, keepdims=True))

    def learn(self, table: int, episode: Examples) -> None:
        """Add to the counts; what cannot happen teaches nothing about what can."""
        seen = episode.states, episode.actions, episode.outcomes
        self.excluded += compiled.count_transitions(self.counts[table], self._priors, *seen, self.evidence)

    def expected_divergence(self, table: int, prediction: FloatArray) -> FloatArray:
        """Return 2 - 2·Σ √P̂·E√θ for θ from the Dirichlet posterior, where E√θ_i is a ratio of Gammas."""
        parts = [dirichlet_divergence(self.counts[table] + prior, prediction) for prior in self._priors]
        return np.asarray(np.tensordot(self._credibility(), parts, axes=1))

    def draws(self, table: int, count: int, generator: np.random.Generator) -> FloatArray:
        """Return rows drawn from Dirichlet(prior + n), zero outside the support, each prior as often as is credible."""
        shapes = self.counts[table] + self._priors
        drawn = resample(self._credibility(), count, generator)
        return draws_of_parts(drawn, shapes.shape[1:], lambda k, n: draw_dirichlet(shapes[k], n, generator))

    def _credibility(self) -> FloatArray:
        """Return the posterior probabilities of the priors."""
        return exponential_weights(-self.evidence, 1.0)

    def distances(self, table: int, truth: FloatArray, used: BoolArray) -> FloatArray | None:
        """Return (1,): that, or the largest probability outside of the support."""
        found = super().distances(table, truth, used)
        return None if found is None else np.maximum(found, (truth * (self._support == 0.0))[:, used].max())

    def best_loss(self) -> float:
        """Return the loss of the observed frequencies within the support."""
        totals = np.broadcast_to(self.counts.sum(axis=-1, keepdims=True), self.counts.shape)
        seen = self.counts > 0.0
        possible = -(self.counts[seen] * np.log(self.counts[seen] / totals[seen])).sum()
        return float(possible - self.excluded[0] * math.log(SMALLEST_PROBABILITY))

    def bound(self, episodes: int, horizon: int) -> float:
        """Return H·Σ log[Γ(α)·Γ(T' + αK)/(Γ(αK)·Γ(T' + α))]; nothing is proven for α < ½."""
        pairs = math.prod(self.counts.shape[:-1])
        visits, successors = episodes / pairs, self._support.sum(axis=-1).max()
        alpha, total = self._alpha, self._alpha * successors
        if alpha < 0.5:
            return math.inf
        rise = math.lgamma(visits + total) - math.lgamma(visits + alpha)
        return self.rate.frozen_bound(float(pairs * (rise + math.lgamma(alpha) - math.lgamma(total))))

    def late_bound(self, episodes: int, horizon: int, delay: int, constant: bool) -> float:
        """Return the bound plus H·(d+1)·Q·log(1 + T/(αQ)), Q the number of (s, a, s') in all tables (Theorem 8)."""
        cells = len(self.counts) * float(self._support.sum())
        drift = (delay + 1) * cells * math.log1p(episodes / (self._alpha * cells))
        return self.bound(episodes, horizon) + self.rate.frozen_bound(drift)


@final
class CountRewards(Frame[_Means], RewardOracle):
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

    update = learn_rewards

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
        super().__init__(_Means(shape, contexts, Rate(rate, horizon, tempered=True)))


@final
class CountDynamics(Frame[_Frequencies], DynamicsOracle):
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
        The transitions that can happen; by default all.

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

    update = learn_transitions

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
        super().__init__(_Frequencies(mask.astype(np.float64), alpha, contexts, chosen))
