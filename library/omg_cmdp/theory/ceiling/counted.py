"""Version spaces of tables: every pair has a row of its own, near the frequencies seen there.

For a row with frequencies f after n visits, L(p) <= L(forecaster) + log P/δ is

    n·KL(f, p) <= L(forecaster) - L(f) + log P/δ,

with a union over the P rows. The forecaster of a row mixes the rule of succession with ½ pseudo-count for each outcome,
with one in all, and with one in all for each context, which notices that contexts differ where the table says that they
do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import final

import numpy as np

from omg_cmdp.contexts import Keyed
from omg_cmdp.jit import Lazy
from omg_cmdp.persistence import Learned
from omg_cmdp.theory.ceiling.sets import (
    ContextTallies,
    Observed,
    PlausibleRewards,
    PlausibleRows,
    PlausibleTransitions,
    Tallies,
    VersionSpace,
    mixed,
    spread,
)
from omg_cmdp.validation import BoolArray, FloatArray

compiled = Lazy("omg_cmdp.theory.ceiling.compiled")

_SHARES = np.array([0.375, 0.375, 0.25])
"""The prior weights of the three forecasters of a row."""


class RowsNearby(PlausibleRows):
    """Rows p over the support with KL(frequencies, p) <= radius."""

    def __init__(self, frequencies: FloatArray, radii: FloatArray, possible: BoolArray) -> None:
        self.near = frequencies, radii, possible

    def highest(self, step: int, values: FloatArray) -> FloatArray:
        """Return the bounds of `compiled.highest_means`."""
        means = np.empty((len(values), *self.near[1].shape))
        each = values if values.ndim == 4 else values[:, None, None]
        compiled.highest_means(
            *self.near, np.ascontiguousarray(np.broadcast_to(each, (*means.shape, each.shape[3]))), means
        )
        return means

    def possible(self, step: int) -> BoolArray:
        """Return the support: what has not been seen may still happen."""
        return self.near[2]


class _Table(Learned):
    """The rows of one table: their tallies, and how far a plausible row may be from the frequencies."""

    learned = ("frequencies", "radii")

    def __init__(self, possible: FloatArray, of_rewards: bool) -> None:
        sparse = spread(possible)
        self.halves = Tallies(0.5 * possible, of_rewards=of_rewards)
        self.sparse = Tallies(sparse, of_rewards=of_rewards)
        self.by_context = ContextTallies(sparse, of_rewards=of_rewards)
        self.frequencies, self.radii = np.zeros(possible.shape), np.full(len(possible), np.inf)

    def learn(self, context: Keyed, seen: Observed, slack: float) -> None:
        """Count, and draw the new radii of the rows that were seen."""
        self.halves.learn(seen)
        self.sparse.learn(seen)
        self.by_context.learn(context, seen)
        rows = np.unique(seen.pairs)
        counts = self.sparse.counts[rows]
        visits = counts.sum(axis=1, keepdims=True)
        frequencies = counts / visits
        fitted = np.where(counts > 0.0, counts * np.log(np.maximum(frequencies, 1e-300)), 0.0).sum(axis=1)
        forecasts = np.stack([each.evidence[rows] for each in (self.halves, self.sparse, self.by_context)])
        self.frequencies[rows] = frequencies
        self.radii[rows] = (slack + fitted - mixed(forecasts, _SHARES)) / visits[:, 0]

    def parts(self) -> dict[str, Tallies | ContextTallies]:
        """Return what was counted."""
        return {"halves": self.halves, "sparse": self.sparse, "by_context": self.by_context}


@final
class CountedRows(VersionSpace):
    """Tables of which nothing is known but the support, one for all contexts or one for each of a list.

    `table` returns the number of the context's table, and `possible` (S, A, K) says which outcomes can happen.
    """

    def __init__(
        self, table: Callable[[Keyed], int], tables: int, possible: FloatArray, delta: float, *, of_rewards: bool
    ) -> None:
        self._table, self._of_rewards = table, of_rewards
        self._pairs, self._possible = possible.shape[:2], possible > 0.0
        rows = possible.reshape(-1, possible.shape[2])
        self._tables = [_Table(rows, of_rewards) for _ in range(tables)]
        self._slack = math.log(len(rows) * tables / delta)

    def plausible(self, context: Keyed) -> PlausibleRewards | PlausibleTransitions:
        """Return rows near the frequencies, or the bounds that they put on mean rewards."""
        table = self._tables[self._table(context)]
        frequencies, radii = table.frequencies.reshape(self._possible.shape), table.radii.reshape(self._pairs)
        rows = RowsNearby(frequencies, radii, self._possible)
        if not self._of_rewards:
            return PlausibleTransitions(rows)
        high, missed = rows.highest(0, np.array([[0.0, 1.0], [1.0, 0.0]]))
        return PlausibleRewards(1.0 - missed[None], high[None])

    def learn(self, context: Keyed, seen: Observed) -> None:
        """Count the outcomes in the context's table."""
        table = self._tables[self._table(context)]
        table.learn(context, seen, self._slack)
        # A negative radius: not even the frequencies themselves are plausible, because contexts differ.
        self.refuted = self.refuted or bool((table.radii < 0.0).any())

    def parts(self) -> dict[str, _Table]:
        """Return the tables."""
        return {str(number): table for number, table in enumerate(self._tables)}

    def refresh(self) -> None:
        """See whether a table is refuted."""
        self.refuted = any(bool((table.radii < 0.0).any()) for table in self._tables)
