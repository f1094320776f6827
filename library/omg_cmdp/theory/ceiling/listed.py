"""Version spaces of finite classes, and of known tables, which are classes of one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, final

import numpy as np

from omg_cmdp.contexts import Keyed
from omg_cmdp.jit import Lazy
from omg_cmdp.persistence import State, numbers
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
from omg_cmdp.validation import FloatArray

compiled = Lazy("omg_cmdp.theory.ceiling.compiled")

CLASS, POOLED, BY_CONTEXT = 0.5, 0.25, 0.25
"""The prior weights of the class, of counts for all contexts together, and of counts for each context."""


@final
class ListedFunctions(VersionSpace):
    """The functions f of a finite class with L(f) <= L(forecaster) + log 1/δ.

    `functions` returns the tables of all N functions in a context, (N, S, A, ...) or (N, H, S, A, ...).
    """

    learned = ("losses",)

    def __init__(self, functions: Callable[[Keyed], FloatArray], delta: float, *, of_rewards: bool) -> None:
        self._functions, self._slack, self._of_rewards = functions, -math.log(delta), of_rewards
        self.losses, self._kept = np.zeros(0), np.zeros(0, dtype=np.bool_)
        self._counts: dict[str, Any] = {}  # from the first episode on, with which the sizes are known

    def plausible(self, context: Keyed) -> PlausibleRewards | PlausibleTransitions:
        """Return the tables of the functions that are left."""
        tables = self._tables(context)
        return listed(tables if self._kept.all() else tables[self._kept])

    def learn(self, context: Keyed, seen: Observed) -> None:
        """Charge every function its loss."""
        tables = self._tables(context)
        by_pair = tables.reshape(*tables.shape[:2], -1, *tables.shape[4:])
        if not self._counts:
            self._begin(len(tables), by_pair.shape[2], 2 if self._of_rewards else tables.shape[-1])
        charge = compiled.charge_rewards if self._of_rewards else compiled.charge_transitions
        charge(self.losses, np.ascontiguousarray(by_pair), seen.steps, seen.pairs, seen.outcomes)
        self._counts["pooled"].learn(seen)
        self._counts["by_context"].learn(context, seen)
        self.refresh()

    def _begin(self, functions: int, pairs: int, outcomes: int) -> None:
        prior = spread(np.ones((pairs, outcomes)))
        self.losses = np.zeros(functions)
        kinds = {"pooled": Tallies, "by_context": ContextTallies}
        self._counts = {name: kind(prior, of_rewards=self._of_rewards) for name, kind in kinds.items()}

    def _tables(self, context: Keyed) -> FloatArray:
        """Return (N, K, S, A, ...)."""
        tables = self._functions(context)
        return tables if tables.ndim == (4 if self._of_rewards else 5) else tables[:, None]

    def refresh(self) -> None:
        """Keep the functions that lose at most log 1/δ more than the forecaster."""
        counts = [float(each.evidence.sum()) for each in self._counts.values()]
        own = mixed(-self.losses, np.full(len(self.losses), 1.0 / len(self.losses)))
        forecaster = -mixed(np.array([own, *counts]), np.array([CLASS, POOLED, BY_CONTEXT]))
        self._kept = self.losses <= forecaster + self._slack
        self.refuted = not self._kept.any()

    def parts(self) -> dict[str, Any]:
        """Return what was counted."""
        return self._counts

    def load_state(self, state: State) -> None:
        """Load the losses and counts; of a space that had learned nothing, none."""
        losses = numbers("losses", state, (None,))
        if losses.size:
            self._begin(len(losses), *numbers("pooled/counts", state, (None, None)).shape)
            super().load_state(state)
        else:
            self.losses, self._counts = losses, {}
            self._kept, self.refuted = np.zeros(0, dtype=np.bool_), False
