"""UC³RL's question: what would have been played on this context in every round so far? One round, and two memories."""

from __future__ import annotations

import abc
import copy
import dataclasses
import functools
import itertools
import math
from collections.abc import Hashable, Iterable
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context, table_label
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.bellman import ValueBounds
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.combined.epochs import epoch_starts
from omg_cmdp.oracles.offline.fits import Offline
from omg_cmdp.persistence import State, fingerprint, numbers
from omg_cmdp.records import context_rows
from omg_cmdp.validation import FloatArray

kernels = Lazy("omg_cmdp.agents.kernels.counterfactual")

Oracles = tuple[RewardOracle, DynamicsOracle]


class Tables(NamedTuple):
    """The predictions of both oracles on C contexts; step h uses entry h mod K."""

    rewards: FloatArray
    """(C, K, S, A)."""
    kernels: FloatArray
    """(C, K, S, A, S)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Round:
    """One round for C contexts at once: an optimal policy for rewards with bonuses, and what it adds to the counts."""

    space: Space
    bounds: ValueBounds
    scales: tuple[float, float]
    episodes: int | None
    by_policy: bool
    reachability: float

    @functools.cached_property
    def warm_up(self) -> int:
        """The number of first rounds that play one action everywhere; they are the 1 that counts begin with."""
        return int(self.space.admissible.sum(axis=1).max()) if self.by_policy else 0

    def plan(self, tables: Tables, visits: FloatArray, fitted: int) -> tuple[FloatArray, FloatArray]:
        """Return the policies, and what the round adds to `visits`: all (C, H, S, A)."""
        optimistic = tables.rewards + self.bonus(visits, fitted)
        policies, occupancies = np.empty((2, *optimistic.shape))
        kernels.plan_round(tables.kernels, optimistic, *self._known, *self.bounds, policies, occupancies)
        return policies, policies if self.by_policy else occupancies

    def bonus(self, visits: FloatArray, fitted: int) -> FloatArray:
        """Return b = min(1, β_R/2W) + H·min(2, β_P/2W); the models were fitted after `fitted` rounds.

        H is the range of values; a `return_range` makes it smaller.
        """
        rewards, dynamics = (scale * math.sqrt(self.episodes or fitted + 1) for scale in self.scales)
        doubled = 2.0 * self.reachability * visits
        bonuses = np.minimum(1.0, rewards / doubled), np.minimum(2.0, dynamics / doubled)
        return np.asarray(bonuses[0] + self.bounds.span * bonuses[1])

    def warm_up_policy(self, number: int) -> FloatArray:
        """Return the policy (H, S, A) that plays, in every state, its admissible action of this `number`."""
        policy = np.zeros((self.space.horizon, self.space.states, self.space.actions))
        for state, allowed in enumerate(self.space.admissible):
            actions = np.flatnonzero(allowed)
            policy[:, state, actions[number % len(actions)]] = 1.0
        return policy

    def counted(self, first: int, last: int) -> int:
        """Return how many of the rounds after `first` and up to `last` come after the warm-up."""
        return max(last, self.warm_up) - max(first, self.warm_up)

    @functools.cached_property
    def _known(self) -> tuple[FloatArray, NDArray[np.uint8]]:
        return np.array(self.space.start), self.space.admissible.astype(np.uint8)


class History(abc.ABC):
    """The rounds so far, as they would have gone for any context."""

    def __init__(self, a_round: Round) -> None:
        self.rounds = 0
        self._round = a_round
        self._shape = (a_round.space.horizon, a_round.space.states, a_round.space.actions)
        pair = self._shape[1:]
        self._tails = (pair, (*pair, a_round.space.states))

    @property
    @abc.abstractmethod
    def fitted(self) -> int:
        """After how many rounds the models of the next one were fitted."""

    @abc.abstractmethod
    def tables(self, context: Context) -> Tables:
        """Return the predictions for the next round on one context, C = 1; refuse a context that cannot come."""

    @abc.abstractmethod
    def visits(self, context: Context) -> FloatArray:
        """Return W (1, H, S, A)."""

    @abc.abstractmethod
    def advance(self) -> None:
        """Count a round, after the oracles have learned from it."""

    @abc.abstractmethod
    def state(self) -> dict[str, FloatArray]:
        """Return what must be saved."""

    @abc.abstractmethod
    def read(self, state: State, rounds: int) -> list[FloatArray]:
        """Return the arrays of `state`, checked."""

    @abc.abstractmethod
    def resume(self, arrays: list[FloatArray], rounds: int) -> None:
        """Continue with these arrays; both oracles have their states already."""


@final
class ListedContexts(History):
    """All contexts that may come are listed, and each has its counts: every round is planned for all of them."""

    def __init__(self, a_round: Round, oracles: Oracles, contexts: Iterable[Context]) -> None:
        super().__init__(a_round)
        listed = _listed(contexts)
        self._places = {key: place for place, key in enumerate(listed)}
        known = list(listed.values())
        rewards, dynamics = self._tails
        self._predictions = _Predictions(oracles[0], known, rewards), _Predictions(oracles[1], known, dynamics)
        self._visits = np.ones((len(listed), *self._shape))

    def __str__(self) -> str:
        return f"{len(self._places)} contexts {fingerprint(np.array(repr(list(self._places))))}"

    @property
    def fitted(self) -> int:
        """After all of them."""
        return self.rounds

    def tables(self, context: Context) -> Tables:
        """Return the oracles' predictions."""
        here = self._here(context)
        return Tables(*(each.tables[here] for each in self._predictions))

    def visits(self, context: Context) -> FloatArray:
        """Return the context's counts."""
        return self._visits[self._here(context)].copy()

    def advance(self) -> None:
        """Add to every context what the round would have visited there, and ask the oracles again."""
        if self._round.counted(self.rounds, self.rounds + 1):
            tables = Tables(*(each.tables for each in self._predictions))
            self._visits += self._round.plan(tables, self._visits, self.fitted)[1]
        self.rounds += 1
        for each in self._predictions:
            each.refresh()

    def state(self) -> dict[str, FloatArray]:
        """Return the counts of all contexts."""
        return {"visits": self._visits.copy()}

    def read(self, state: State, rounds: int) -> list[FloatArray]:
        """Return the counts."""
        visits = numbers("visits", state, self._visits.shape)
        if visits.min() < 1.0:
            raise ValueError(f"`state` must hold visits of at least 1, got {visits.min()}")
        return [visits]

    def resume(self, arrays: list[FloatArray], rounds: int) -> None:
        """Continue with these counts."""
        (self._visits,), self.rounds = arrays, rounds
        for each in self._predictions:
            each.refresh()

    def _here(self, context: Context) -> slice:
        try:
            place = self._places[table_label(context)]
        except (KeyError, TypeError):
            rule = f"must be one of the {len(self._places)} in `contexts`"
            raise ValueError(f"`context` {rule}, got {context!r:.80}") from None
        return slice(place, place + 1)


class _Predictions:
    """An oracle's predictions on a list of contexts; it is asked again only when its fit has changed."""

    def __init__(self, oracle: RewardOracle | DynamicsOracle, contexts: list[Context], tail: tuple[int, ...]) -> None:
        self._oracle, self._contexts, self._tail = oracle, contexts, tail
        self._fit: FloatArray | None = None
        self.refresh()

    def refresh(self) -> None:
        """Ask again, if the fit has changed."""
        fit = self._oracle.parameters() if isinstance(self._oracle, Offline) else None
        if fit is None or self._fit is None or not np.array_equal(fit, self._fit):
            self.tables = np.stack([_by_step(self._oracle.predict(c), self._tail) for c in self._contexts])
        self._fit = fit


@final
class EpochFits(History):
    """Any context may come: the fits at the beginning of doubling epochs are kept, and predict again when asked."""

    def __init__(self, a_round: Round, oracles: Oracles) -> None:
        super().__init__(a_round)
        self._oracles: list[Offline] = []
        for name, oracle in zip(_NAMES, oracles, strict=True):
            if not isinstance(oracle, Offline):
                rule = "must be Offline if no `contexts` are listed"
                raise ValueError(f"`{name}_oracle` {rule}, got {type(oracle).__name__}")
            self._oracles.append(oracle)
        self._fits = [self._current()]

    def __str__(self) -> str:
        return "any contexts"

    @property
    def fitted(self) -> int:
        """After the rounds before the present epoch."""
        return epoch_starts(self.rounds)[-1]

    def tables(self, context: Context) -> Tables:
        """Return the predictions of the last fits."""
        return self._predict(self._fits[-1], context)

    def visits(self, context: Context) -> FloatArray:
        """Return the counts of one context, epoch by epoch: all rounds of an epoch would have gone alike."""
        visits = np.ones((1, *self._shape))
        for fits, (first, last) in zip(self._fits, itertools.pairwise(epoch_starts(self.rounds)), strict=False):
            if counted := self._round.counted(first, last):
                visits += counted * self._round.plan(self._predict(fits, context), visits, first)[1]
        return visits

    def advance(self) -> None:
        """Keep the fits, if an epoch begins."""
        self.rounds += 1
        if self.fitted == self.rounds:
            self._fits.append(self._current())

    def state(self) -> dict[str, FloatArray]:
        """Return all kept fits, the oldest first."""
        kept = zip(_NAMES, zip(*self._fits, strict=True), strict=True)
        return {f"{name} fits": np.stack(fits) for name, fits in kept}

    def read(self, state: State, rounds: int) -> list[FloatArray]:
        """Return the fits of all epochs."""
        count = len(epoch_starts(rounds))
        shapes = [fit.shape for fit in self._fits[-1]]
        return [numbers(f"{name} fits", state, (count, *shape)) for name, shape in zip(_NAMES, shapes, strict=True)]

    def resume(self, arrays: list[FloatArray], rounds: int) -> None:
        """Continue with these fits."""
        self._fits, self.rounds = list(zip(*arrays, strict=True)), rounds

    def _current(self) -> tuple[FloatArray, ...]:
        return tuple(oracle.parameters() for oracle in self._oracles)

    def _predict(self, fits: tuple[FloatArray, ...], context: Context) -> Tables:
        parts = zip(self._oracles, fits, self._tails, strict=True)
        return Tables(*(_by_step(oracle.predict_with(fit, context), tail)[None] for oracle, fit, tail in parts))


_NAMES = ("reward", "dynamics")


def _by_step(table: FloatArray, tail: tuple[int, ...]) -> FloatArray:
    """Return `table` as (K, *tail), K = 1 if it has no steps."""
    if table.shape[-len(tail) :] != tail:
        raise ValueError(f"an oracle of these sizes must `predict` tables of shape {tail}, got {table.shape}")
    return np.asarray(table if table.ndim > len(tail) else table[None])


def _listed(contexts: Iterable[Context]) -> dict[Hashable, Context]:
    """Return copies of the different `contexts` by what tells them apart."""
    try:
        listed = {table_label(context): copy.deepcopy(context) for context in context_rows("contexts", contexts)}
    except TypeError:
        raise ValueError(f"`contexts` must be a list of vectors or hashable labels, got {contexts!r:.60}") from None
    if not listed:
        raise ValueError("`contexts` must list at least one context, got none")
    return listed
