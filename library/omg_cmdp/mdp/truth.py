"""The true MDP of a context, by which regret is measured."""

from __future__ import annotations

import functools

from omg_cmdp.contexts import OWN_BYTES
from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import FloatArray


class Truth:
    """The true MDP of a context, and its optimum, computed once."""

    def __init__(self, mdp: TabularMDP) -> None:
        self.mdp = mdp

    @functools.cached_property
    def best(self) -> tuple[FloatArray, float]:
        """An optimal policy (H, S, A) and its value V*."""
        return optimal_policy(self.mdp)

    @property
    def nbytes(self) -> int:
        """About the memory that it takes, once the optimum is known."""
        tables = self.mdp.transitions.nbytes + self.mdp.rewards.nbytes
        return OWN_BYTES + tables + 8 * self.mdp.horizon * self.mdp.states * self.mdp.actions

    def regret(self, policy: FloatArray) -> float:
        """Return V* - V^π, exact; 0 for `best`."""
        best, _ = self.best
        return self.value(best) - self.value(policy)

    def value(self, policy: FloatArray) -> float:
        """Return V^π of a valid policy."""
        return flow(self.mdp, policy)[1]

    def occupancy(self, policy: FloatArray) -> FloatArray:
        """Return the occupancy measure (H, S, A) of a valid policy."""
        return flow(self.mdp, policy)[0]
