"""What would have been played on a context in every round so far: a round of `uc3rl`, and two ways to remember them."""

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

from omg_cmdp.contexts import Context, context_key
from omg_cmdp.jit import lazy
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.combined.epochs import epoch_starts
from omg_cmdp.oracles.offline.fits import Offline
from omg_cmdp.persistence import State, fingerprint, numbers
from omg_cmdp.validation import FloatArray

kernels = lazy("omg_cmdp.agents.kernels.counterfactual")

Oracles = tuple[RewardOracle, DynamicsOracle]


class Tables(NamedTuple):
    """What both oracles say on C contexts; step h uses entry h mod K."""

    rewards: FloatArray
    """(C, K, S, A)."""
    kernels: FloatArray
    """(C, K, S, A, S)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """One round for C contexts at once: PLAN with bonuses, and where it leads."""

    space: Space
    scales: tuple[float, float]
    episodes: int | None
    by_policy: bool
    reachability: float

    @functools.cached_property
    def warm_up(self) -> int:
        """How many rounds play one action everywhere; they are the 1 that counts begin with."""
        return int(self.space.admissible.sum(axis=1).max()) if self.by_policy else 0

    def __call__(self, tables: Tables, visits: FloatArray, began: int) -> tuple[FloatArray, FloatArray]:
        """Return the policies, and what a round adds to `visits`: all (C, H, S, A)."""
        optimistic = tables.rewards + self.bonus(visits, began)
        policies, occupancies = np.empty((2, *optimistic.shape))
        kernels.rehearse(tables.kernels, optimistic, *self._known, policies, occupancies)
        return policies, policies if self.by_policy else occupancies

    def bonus(self, visits: FloatArray, began: int) -> FloatArray:
        """Return b = min(1, β_R/2W) + H·min(2, β_P/2W) if `began` rounds were over when the round's fits were made."""
        rewards, dynamics = (scale * math.sqrt(self.episodes or began + 1) for scale in self.scales)
        doubled = 2.0 * self.reachability * visits
        bonuses = np.minimum(1.0, rewards / doubled), np.minimum(2.0, dynamics / doubled)
        return np.asarray(bonuses[0] + self.space.horizon * bonuses[1])

    def constant(self, number: int) -> FloatArray:
        """Return the policy (H, S, A) of a warm-up round: in every state its admissible action of this `number`."""
        policy = np.zeros((self.space.horizon, self.space.states, self.space.actions))
        for state, allowed in enumerate(self.space.admissible):
            actions = np.flatnonzero(allowed)
            policy[:, state, actions[number % len(actions)]] = 1.0
        return policy

    def counted(self, began: int, over: int) -> int:
        """Return how many of the rounds after `began` and up to `over` are no warm-up."""
        return max(over, self.warm_up) - max(began, self.warm_up)

    @functools.cached_property
    def _known(self) -> tuple[FloatArray, NDArray[np.uint8]]:
        return np.array(self.space.start), self.space.admissible.astype(np.uint8)


class Past(abc.ABC):
    """The rounds so far, as they would have gone for any context."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self.rounds = 0
        self._rehearsal = rehearsal
        self._shape = (rehearsal.space.horizon, rehearsal.space.states, rehearsal.space.actions)
        pair = self._shape[1:]
        self._tails = (pair, (*pair, rehearsal.space.states))

    @property
    @abc.abstractmethod
    def began(self) -> int:
        """How many rounds were over when the fits of the next one were made."""

    @abc.abstractmethod
    def tables(self, context: Context) -> Tables:
        """Return the fits of the next round on one context, C = 1; refuse a context that cannot come."""

    @abc.abstractmethod
    def visits(self, context: Context) -> FloatArray:
        """Return W (1, H, S, A)."""

    @abc.abstractmethod
    def advance(self) -> None:
        """Let a round pass, after which the oracles have learned."""

    @abc.abstractmethod
    def state(self) -> dict[str, FloatArray]:
        """Return what must be saved."""

    @abc.abstractmethod
    def read(self, state: State, rounds: int) -> list[FloatArray]:
        """Return the arrays of a `state` that was read, checked."""

    @abc.abstractmethod
    def resume(self, arrays: list[FloatArray], rounds: int) -> None:
        """Continue with these, after both oracles were restored."""


@final
class EveryContext(Past):
    """All contexts that may come are listed, and each has its counts: one rehearsal of all of them in a round."""

    def __init__(self, rehearsal: Rehearsal, oracles: Oracles, contexts: Iterable[Context]) -> None:
        super().__init__(rehearsal)
        listed = _listed(contexts)
        self._places = {key: place for place, key in enumerate(listed)}
        shown = list(listed.values())
        self._said = _Said(oracles[0], shown, self._tails[0]), _Said(oracles[1], shown, self._tails[1])
        self._visits = np.ones((len(listed), *self._shape))

    def __str__(self) -> str:
        return f"{len(self._places)} contexts {fingerprint(np.array(repr(list(self._places))))}"

    @property
    def began(self) -> int:
        """All of them."""
        return self.rounds

    def tables(self, context: Context) -> Tables:
        """Return what the oracles said."""
        here = self._here(context)
        return Tables(*(said.tables[here] for said in self._said))

    def visits(self, context: Context) -> FloatArray:
        """Return the counts that are kept."""
        return self._visits[self._here(context)].copy()

    def advance(self) -> None:
        """Add to the counts of every context where the round would have led, and ask the oracles again."""
        if self._rehearsal.counted(self.rounds, self.rounds + 1):
            tables = Tables(*(said.tables for said in self._said))
            self._visits += self._rehearsal(tables, self._visits, self.began)[1]
        self.rounds += 1
        for said in self._said:
            said.refresh()

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
        for said in self._said:
            said.refresh()

    def _here(self, context: Context) -> slice:
        try:
            place = self._places[_key(context)]
        except (KeyError, TypeError):
            rule = f"must be one of the {len(self._places)} in `contexts`"
            raise ValueError(f"`context` {rule}, got {context!r:.80}") from None
        return slice(place, place + 1)


class _Said:
    """What an oracle says on a list of contexts; it is not asked again while its fit stays the same."""

    def __init__(self, oracle: RewardOracle | DynamicsOracle, contexts: list[Context], tail: tuple[int, ...]) -> None:
        self._oracle, self._contexts, self._tail = oracle, contexts, tail
        self._fit: FloatArray | None = None
        self.refresh()

    def refresh(self) -> None:
        """Ask again, if that is needed."""
        fit = self._oracle.parameters() if isinstance(self._oracle, Offline) else None
        if fit is None or self._fit is None or not np.array_equal(fit, self._fit):
            self.tables = np.stack([_by_step(self._oracle.predict(c), self._tail) for c in self._contexts])
        self._fit = fit


@final
class KeptFits(Past):
    """Nothing is known of the contexts to come: the fits with which doubling epochs began are kept, and asked again."""

    def __init__(self, rehearsal: Rehearsal, oracles: Oracles) -> None:
        super().__init__(rehearsal)
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
    def began(self) -> int:
        """Those before the present epoch."""
        return epoch_starts(self.rounds)[-1]

    def tables(self, context: Context) -> Tables:
        """Return what the last of the kept fits says."""
        return self._recall(self._fits[-1], context)

    def visits(self, context: Context) -> FloatArray:
        """Return the counts of one context, epoch by epoch: all rounds of an epoch would have gone alike."""
        visits = np.ones((1, *self._shape))
        for fits, (began, over) in zip(self._fits, itertools.pairwise(epoch_starts(self.rounds)), strict=False):
            if counted := self._rehearsal.counted(began, over):
                visits += counted * self._rehearsal(self._recall(fits, context), visits, began)[1]
        return visits

    def advance(self) -> None:
        """Keep the fits, if an epoch begins."""
        self.rounds += 1
        if self.began == self.rounds:
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

    def _recall(self, fits: tuple[FloatArray, ...], context: Context) -> Tables:
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
        listed = {_key(context): copy.deepcopy(context) for context in contexts}
    except TypeError:
        raise ValueError(f"`contexts` must be a list of vectors or hashable labels, got {contexts!r:.60}") from None
    if not listed:
        raise ValueError("`contexts` must list at least one context, got none")
    return listed


def _key(context: Context) -> Hashable:
    return context_key(context) if isinstance(context, np.ndarray) else context
