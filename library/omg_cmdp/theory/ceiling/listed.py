"""Version spaces of finite classes, and of known tables, which are classes of one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import final

import numpy as np

from omg_cmdp.contexts import Keyed
from omg_cmdp.theory.ceiling.sets import (
    ContextTallies,
    Observed,
    PlausibleRewards,
    PlausibleTransitions,
    Tallies,
    VersionSpace,
    listed,
    mixed,
    spread,
)
from omg_cmdp.validation import BoolArray, FloatArray

CLASS, POOLED, BY_CONTEXT = 0.5, 0.25, 0.25
"""The prior weights of the class, of counts for all contexts together, and of counts for each context."""


@final
class ListedFunctions(VersionSpace):
    """The functions f of a finite class with L(f) <= L(forecaster) + log 1/δ.

    `functions` returns the tables of all N functions in a context, (N, S, A, ...) or (N, H, S, A, ...).
    """

    def __init__(self, functions: Callable[[Keyed], FloatArray], delta: float, *, of_rewards: bool) -> None:
        self._functions, self._slack, self._of_rewards = functions, -math.log(delta), of_rewards
        self._losses, self._kept = np.zeros(0), np.zeros(0, dtype=np.bool_)
        self._pooled: Tallies | None = None
        self._by_context: ContextTallies | None = None

    def plausible(self, context: Keyed) -> PlausibleRewards | PlausibleTransitions:
        """Return the tables of the functions that are left."""
        tables = self._tables(context)
        return listed(tables if self._kept.all() else tables[self._kept])

    def learn(self, context: Keyed, seen: Observed) -> None:
        """Charge every function its loss."""
        tables = self._tables(context)
        if self._pooled is None or self._by_context is None:
            self._losses = np.zeros(len(tables))
            pairs, outcomes = math.prod(tables.shape[2:4]), 2 if self._of_rewards else tables.shape[-1]
            prior = spread(np.ones((pairs, outcomes)))
            self._pooled = Tallies(prior, of_rewards=self._of_rewards)
            self._by_context = ContextTallies(prior, of_rewards=self._of_rewards)
        self._losses = self._losses - self._log_likelihoods(tables, seen)
        self._pooled.learn(seen)
        self._by_context.learn(context, seen)
        counts = float(self._pooled.evidence.sum()), float(self._by_context.evidence.sum())
        self._kept = self._plausible_losses(*counts)
        self.refuted = not self._kept.any()

    def _tables(self, context: Keyed) -> FloatArray:
        """Return (N, K, S, A, ...)."""
        tables = self._functions(context)
        return tables if tables.ndim == (4 if self._of_rewards else 5) else tables[:, None]

    def _log_likelihoods(self, tables: FloatArray, seen: Observed) -> FloatArray:
        """Return the log likelihood of the outcomes for each function, (N,)."""
        by_pair = tables.reshape(*tables.shape[:2], -1, *tables.shape[4:])
        at = by_pair[:, seen.steps % tables.shape[1], seen.pairs]
        with np.errstate(divide="ignore", invalid="ignore"):
            if not self._of_rewards:
                return np.asarray(np.log(at[:, np.arange(len(seen.outcomes)), seen.outcomes]).sum(axis=1))
            rewards = seen.outcomes
            # 0·log 0 = 0: a reward of 1 does not contradict the mean 1.
            paid = np.where(rewards > 0.0, rewards * np.log(at), 0.0)
            unpaid = np.where(rewards < 1.0, (1.0 - rewards) * np.log1p(-at), 0.0)
            return np.asarray((paid + unpaid).sum(axis=1))

    def _plausible_losses(self, pooled: float, by_context: float) -> BoolArray:
        """Return which functions lose at most log 1/δ more than the forecaster, (N,)."""
        own = mixed(-self._losses, np.full(len(self._losses), 1.0 / len(self._losses)))
        forecaster = -mixed(np.array([own, pooled, by_context]), np.array([CLASS, POOLED, BY_CONTEXT]))
        return np.asarray(self._losses <= forecaster + self._slack)
