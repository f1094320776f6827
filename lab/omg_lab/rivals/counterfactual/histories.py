"""Two memories of the rounds so far: one for each of a list of contexts, or the fits of doubling epochs.

Both can say what an algorithm remembers of any context that may come, as if it had come in every round.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterable
from typing import final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.oracles.combined.epochs import epoch_starts
from omg_cmdp.oracles.finite.offline import Offline
from omg_cmdp.persistence import State, numbers
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.counterfactual.rounds import FittedTables, PastRound
from omg_lab.rivals.listed import Listed, Predicted, by_step

Oracles = tuple[RewardOracle, DynamicsOracle]


class History(abc.ABC):
    """The rounds so far, as they would have gone for any context."""

    def __init__(self, a_round: PastRound) -> None:
        self.rounds = 0
        self._round = a_round
        pair = a_round.sizes[1:]
        self._tails = (pair, (*pair, a_round.space.states))

    @property
    @abc.abstractmethod
    def fitted(self) -> int:
        """Number of rounds after which the models of the next one were fitted."""

    @property
    @abc.abstractmethod
    def length(self) -> int:
        """Number of rounds for which these models are kept."""

    @abc.abstractmethod
    def tables(self, context: Context) -> FittedTables:
        """Return the predictions for the next round on one context, C = 1; refuse a context that cannot come."""

    @abc.abstractmethod
    def memory(self, context: Context) -> FloatArray:
        """Return what is counted in one context, (1, H, S, A)."""

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

    def __init__(self, a_round: PastRound, oracles: Oracles, contexts: Iterable[Context]) -> None:
        super().__init__(a_round)
        self._listed = Listed(contexts)
        (rewards, dynamics), tails = oracles, self._tails
        self._predictions = Predicted(self._listed, rewards, tails[0]), Predicted(self._listed, dynamics, tails[1])
        self._memory = np.ones((len(self._listed), *a_round.sizes))

    def __str__(self) -> str:
        return str(self._listed)

    @property
    def fitted(self) -> int:
        """All of them."""
        return self.rounds

    @property
    def length(self) -> int:
        """One round."""
        return 1

    def tables(self, context: Context) -> FittedTables:
        """Return the oracles' predictions."""
        here = self._here(context)
        return FittedTables(*(each.tables[here] for each in self._predictions))

    def memory(self, context: Context) -> FloatArray:
        """Return what is kept."""
        return self._memory[self._here(context)].copy()

    def advance(self) -> None:
        """Play the round for every context, and ask the oracles again."""
        if self._round.counted(self.rounds, self.rounds + 1):
            tables = FittedTables(*(each.tables for each in self._predictions))
            self._memory = self._round.play(tables, self._memory, self.fitted, 1)[1]
        self.rounds += 1
        for each in self._predictions:
            each.refresh()

    def state(self) -> dict[str, FloatArray]:
        """Return what is remembered of all contexts."""
        return {"memory": self._memory.copy()}

    def read(self, state: State, rounds: int) -> list[FloatArray]:
        """Return what is remembered."""
        memory = numbers("memory", state, self._memory.shape)
        if memory.min() < 1.0:
            raise ValueError(f"`state` must hold visits of at least 1, got {memory.min()}")
        return [memory]

    def resume(self, arrays: list[FloatArray], rounds: int) -> None:
        """Continue with this memory."""
        (self._memory,), self.rounds = arrays, rounds
        for each in self._predictions:
            each.refresh()

    def _here(self, context: Context) -> slice:
        place = self._listed.place(context)
        return slice(place, place + 1)


@final
class EpochFits(History):
    """Any context may come: the fits at the beginning of doubling epochs are kept, and predict again when asked."""

    def __init__(self, a_round: PastRound, oracles: Oracles) -> None:
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
        """The rounds before the present epoch."""
        return epoch_starts(self.rounds)[-1]

    @property
    def length(self) -> int:
        """The length of the present epoch, which doubles the number of rounds."""
        return max(1, self.fitted)

    def tables(self, context: Context) -> FittedTables:
        """Return the predictions of the last fits."""
        return self._predict(self._fits[-1], context)

    def memory(self, context: Context) -> FloatArray:
        """Return what is remembered, epoch by epoch: all rounds of an epoch would have gone alike."""
        memory = np.ones((1, *self._round.sizes))
        for fits, (first, last) in zip(self._fits, itertools.pairwise(epoch_starts(self.rounds)), strict=False):
            if counted := self._round.counted(first, last):
                memory = self._round.play(self._predict(fits, context), memory, first, counted)[1]
        return memory

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

    def _predict(self, fits: tuple[FloatArray, ...], context: Context) -> FittedTables:
        parts = zip(self._oracles, fits, self._tails, strict=True)
        return FittedTables(*(by_step(oracle.predict_with(fit, context), tail)[None] for oracle, fit, tail in parts))


_NAMES = ("reward", "dynamics")
