"""Version spaces of finite classes, and of known tables, which are classes of one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Keyed
from omg_cmdp.jit import Lazy
from omg_cmdp.persistence import State, joint_state, part_of
from omg_cmdp.theory.ceiling.sets import (
    ContextTallies,
    Observed,
    PlausibleRewards,
    PlausibleTransitions,
    Tallies,
    VersionSpace,
    bounded,
    listed,
    mixed,
    saved_numbers,
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

    def __init__(self, functions: Callable[[Keyed], FloatArray], delta: float, *, of_rewards: bool) -> None:
        self._functions, self._slack, self._of_rewards = functions, -math.log(delta), of_rewards
        self._losses, self._kept = np.zeros(0), np.zeros(0, dtype=np.bool_)
        self._counts: tuple[Tallies, ContextTallies] | None = None

    def plausible(self, context: Keyed) -> PlausibleRewards | PlausibleTransitions:
        """Return the tables of the functions that are left."""
        tables = self._tables(context)
        return listed(tables if self._kept.all() else tables[self._kept])

    def learn(self, context: Keyed, seen: Observed) -> None:
        """Charge every function its loss."""
        tables = self._tables(context)
        by_pair = tables.reshape(*tables.shape[:2], -1, *tables.shape[4:])
        if self._counts is None:
            self._begin(len(tables), by_pair.shape[2], 2 if self._of_rewards else tables.shape[-1])
        assert self._counts is not None
        charge = compiled.charge_rewards if self._of_rewards else compiled.charge_transitions
        charge(self._losses, np.ascontiguousarray(by_pair), seen.steps, seen.pairs, seen.outcomes)
        pooled, by_context = self._counts
        pooled.learn(seen)
        by_context.learn(context, seen)
        self._keep()

    def _begin(self, functions: int, pairs: int, outcomes: int) -> None:
        prior = spread(np.ones((pairs, outcomes)))
        self._losses = np.zeros(functions)
        of_rewards = self._of_rewards
        self._counts = Tallies(prior, of_rewards=of_rewards), ContextTallies(prior, of_rewards=of_rewards)

    def _tables(self, context: Keyed) -> FloatArray:
        """Return (N, K, S, A, ...)."""
        tables = self._functions(context)
        return tables if tables.ndim == (4 if self._of_rewards else 5) else tables[:, None]

    def _keep(self) -> None:
        """Keep the functions that lose at most log 1/δ more than the forecaster."""
        counts = [float(each.evidence.sum()) for each in self._counts or ()]
        own = mixed(-self._losses, np.full(len(self._losses), 1.0 / len(self._losses)))
        forecaster = -mixed(np.array([own, *counts]), np.array([CLASS, POOLED, BY_CONTEXT]))
        self._kept = self._losses <= forecaster + self._slack
        self.refuted = not self._kept.any()

    def _parts(self) -> dict[str, Tallies | ContextTallies]:
        return {} if self._counts is None else {"pooled": self._counts[0], "by_context": self._counts[1]}

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the loss of each function, and what was counted."""
        return {"losses": bounded(self._losses), **joint_state(self._parts())}

    def load_state(self, state: State) -> None:
        """Load the losses and counts; of a space that had learned nothing, none."""
        losses = saved_numbers("losses", state, (None,))
        if not losses.size:
            self._losses, self._counts = losses, None
            self._kept, self.refuted = np.zeros(0, dtype=np.bool_), False
            return
        counts = saved_numbers("pooled/counts", state, (None, None))
        self._begin(len(losses), *counts.shape)
        self._losses = losses
        for name, part in self._parts().items():
            part.load_state(part_of(state, name))
        self._keep()
