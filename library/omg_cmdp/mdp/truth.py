"""The true MDP of a context, by which regret is measured."""

from __future__ import annotations

import functools

from omg_cmdp.contexts import OWN_BYTES
from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.mdp.budgets import Budgets, best_within
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import FloatArray, frozen


class Truth:
    """The true MDP of a context, and its optimum, computed once: within the budgets, if there are any."""

    def __init__(self, mdp: TabularMDP, limits: Budgets | None = None) -> None:
        self.mdp, self.limits = mdp, limits

    @functools.cached_property
    def raw_best(self) -> tuple[FloatArray, float]:
        """The arrays of `best` for compiled code; do not write to them."""
        if self.limits is None:
            return optimal_policy(self.mdp)
        policy = best_within(self.mdp, self.limits).policy
        return policy, flow(self.mdp, policy)[1]

    @property
    def best(self) -> tuple[FloatArray, float]:
        """An optimal policy (H, S, A), read-only, and its value V*."""
        policy, value = self.raw_best
        return frozen(policy.view()), value

    @property
    def nbytes(self) -> int:
        """About the memory that it takes, once the optimum is known."""
        tables = self.mdp.transitions.nbytes + self.mdp.rewards.nbytes
        return OWN_BYTES + tables + 8 * self.mdp.horizon * self.mdp.states * self.mdp.actions

    def regret(self, policy: FloatArray) -> float:
        """Return V* - V^π, exact; 0 for `best`, and below 0 only for a policy that exceeds a budget."""
        best, _ = self.raw_best
        return self.value(best) - self.value(policy)

    def value(self, policy: FloatArray) -> float:
        """Return V^π of a valid policy."""
        return flow(self.mdp, policy)[1]

    def occupancy(self, policy: FloatArray) -> FloatArray:
        """Return the occupancy measure (H, S, A) of a valid policy."""
        return flow(self.mdp, policy)[0]
