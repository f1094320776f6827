"""Version spaces: the functions of an oracle's class that the data have not refuted.

All of them rest on one fact. Let p̂ be any forecaster that predicts each outcome from what came before, and p* the
truth. Then Π p̂/p* is a supermartingale, and by Ville's inequality, with probability 1 - δ, at all times at once,

    L(p*) <= L(p̂) + log 1/δ,          L = Σ -log p(outcome),

whoever chose the contexts and actions. So {p : L(p) <= L(p̂) + log 1/δ} always holds the truth, if the class does. A
reward r in [0, 1] of mean f counts as the outcome 1 with weight r and 0 with weight 1 - r: by convexity

    E (f̂/f)^r·((1 - f̂)/(1 - f))^(1 - r) <= E [r·f̂/f + (1 - r)·(1 - f̂)/(1 - f)] = 1.

The forecaster is a Bayes mixture of the class and of counts, which know nothing of it: if the class does not hold the
truth, counts predict better in the end, no function is left, and the class is *refuted*.
"""

from __future__ import annotations

import abc
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import KEPT_CONTEXTS, Context, Keyed, context_from_json, context_to_json, keyed, unchanging
from omg_cmdp.jit import Lazy
from omg_cmdp.persistence import Learned, State, bounded, numbers
from omg_cmdp.validation import UNEXPECTED, BoolArray, FloatArray

compiled = Lazy("omg_cmdp.theory.ceiling.compiled")


class Observed(NamedTuple):
    """The steps of an episode from which one of the two version spaces learns."""

    steps: NDArray[np.int64]
    """The steps h."""
    pairs: NDArray[np.int64]
    """s·A + a."""
    outcomes: Any
    """Rewards in [0, 1], or next states."""


class PlausibleRows(abc.ABC):
    """The rows P(·|s, a) of all plausible transitions of a context, each row on its own."""

    @abc.abstractmethod
    def highest(self, step: int, values: FloatArray) -> FloatArray:
        """Return bounds (J, S, A) on Σ P(s'|s, a)·V(s') over the plausible rows, for each V of `values` (J, S).

        Values (J, S, A, S) are those of each row.
        """

    @abc.abstractmethod
    def possible(self, step: int) -> BoolArray:
        """Return which next states a plausible row reaches, (S, A, S)."""


class PlausibleRewards(NamedTuple):
    """The plausible rewards of a context: bounds on them, and the functions themselves where they can be listed."""

    low: FloatArray
    """(K, S, A), K = 1 or H."""
    high: FloatArray
    """(K, S, A)."""
    tables: FloatArray | None = None
    """All of them, (N, K, S, A); None if they cannot be listed."""


class PlausibleTransitions(NamedTuple):
    """The plausible transitions of a context: their rows, and the functions themselves where they can be listed."""

    rows: PlausibleRows
    tables: FloatArray | None = None
    """All of them, (N, K, S, A, S); None if they cannot be listed."""


class ListedRows(PlausibleRows):
    """Rows of listed transitions (N, K, S, A, S)."""

    def __init__(self, tables: FloatArray) -> None:
        self._tables = tables

    def highest(self, step: int, values: FloatArray) -> FloatArray:
        """Return the largest mean over the list."""
        tables = self._tables[:, step % self._tables.shape[1]]
        each = "ji" if values.ndim == 2 else "jsai"
        return np.asarray(np.einsum(f"nsai,{each}->njsa", tables, values).max(axis=0))

    def possible(self, step: int) -> BoolArray:
        """Return what some table of the list reaches."""
        return np.asarray((self._tables[:, step % self._tables.shape[1]] > 0.0).any(axis=0))


def listed(tables: FloatArray) -> PlausibleRewards | PlausibleTransitions:
    """Return what is plausible if these tables are, (N, K, S, A) of rewards or (N, K, S, A, S) of transitions."""
    if tables.ndim == 4:
        return PlausibleRewards(tables.min(axis=0), tables.max(axis=0), tables)
    return PlausibleTransitions(ListedRows(tables), tables)


class VersionSpace(Learned, abc.ABC):
    """What is plausible of rewards or of transitions, at confidence 1 - δ, at all times."""

    refuted = False
    """Whether no function of the class is plausible any more: with probability 1 - δ the truth is not in the class."""

    @abc.abstractmethod
    def plausible(self, context: Keyed) -> Any:
        """Return the `PlausibleRewards` or `PlausibleTransitions` of a context."""

    @abc.abstractmethod
    def learn(self, context: Keyed, seen: Observed) -> None:
        """Take in the outcomes of an episode."""


class Tallies(Learned):
    """Counts of outcomes for each pair, (P, K), and the log probability of all that was seen by a rule of succession.

    `prior` is (P, K): (n(outcome) + prior)/(n + Σ prior) is the forecast.
    """

    learned = ("counts", "evidence")

    def __init__(self, prior: FloatArray, *, of_rewards: bool) -> None:
        self.counts, self.evidence = np.zeros_like(prior), np.zeros(len(prior))
        self._prior, self._of_rewards = prior, of_rewards

    def learn(self, seen: Observed) -> None:
        """Count outcomes, and what the forecasts made of them."""
        tally = compiled.tally_rewards if self._of_rewards else compiled.tally_transitions
        tally(self.counts, self._prior, seen.pairs, seen.outcomes, self.evidence)


class ContextTallies:
    """Tallies for each context that comes, up to 4096 of them; later ones share the last."""

    def __init__(self, prior: FloatArray, *, of_rewards: bool) -> None:
        self._tallies = Tallies(prior, of_rewards=of_rewards)  # of one context at a time
        self._counts: dict[Hashable, FloatArray] = {}
        self._contexts: list[Context] = []

    @property
    def evidence(self) -> FloatArray:
        """Their evidence for each pair, (P,)."""
        return self._tallies.evidence

    def learn(self, context: Keyed, seen: Observed) -> None:
        """Count the outcomes in the context's own tallies."""
        # A rule that depends on the past only, so that the forecaster stays one.
        key = context.key if context.key in self._counts or len(self._counts) < KEPT_CONTEXTS else None
        if key not in self._counts:
            self._counts[key] = np.zeros_like(self._tallies.counts)
            self._contexts.append(None if key is None else unchanging(context.context))
        self._tallies.counts = self._counts[key]
        self._tallies.learn(seen)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the tallies of all contexts, in the order in which these came."""
        return {
            "contexts": np.array([context_to_json(each) for each in self._contexts], dtype=np.str_),
            "counts": np.array(list(self._counts.values())).reshape(-1, *self._tallies.counts.shape),
            "evidence": bounded(self.evidence),
        }

    def load_state(self, state: State) -> None:
        """Load the tallies of all contexts."""
        try:
            contexts = [context_from_json(text) for text in state["contexts"].tolist()]
        except UNEXPECTED as error:
            raise ValueError(f"`state` must hold 'contexts' as text, got {error!r}") from error
        counts = numbers("counts", state, (len(contexts), *self._tallies.counts.shape))
        self._tallies.evidence = numbers("evidence", state, self.evidence.shape)
        keys = [None if context is None else keyed(context).key for context in contexts]
        self._counts, self._contexts = dict(zip(keys, counts, strict=True)), [unchanging(each) for each in contexts]


def mixed(evidence: FloatArray, weights: FloatArray) -> FloatArray:
    """Return log Σ w·exp(evidence) over the first axis: the log evidence of a Bayes mixture."""
    return np.asarray(np.logaddexp.reduce(evidence + np.log(weights).reshape(-1, *[1] * (evidence.ndim - 1)), axis=0))


def spread(possible: FloatArray) -> FloatArray:
    """Return a prior (P, K) of one pseudo-count for each pair, spread over the outcomes that are possible."""
    return np.asarray(possible / possible.sum(axis=1, keepdims=True))
