"""Agents that keep budgets: the best policy of a model within what an episode may cost."""

from __future__ import annotations

from typing import TypedDict, Unpack

from omg_cmdp.agents.base import ModelAgent, Ranges
from omg_cmdp.contexts import Context, Keyed, keyed
from omg_cmdp.mdp.bellman import ValueBounds, optimal_policy
from omg_cmdp.mdp.budgets import MET, Budgets, best_within
from omg_cmdp.mdp.limits import Given, limits_of
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.planning.decision import Decision
from omg_cmdp.planning.solution import Status
from omg_cmdp.validation import FloatArray


class Spending(TypedDict, total=False):
    """What an agent is told of costs and budgets."""

    costs: Given | None
    budgets: Given | None


class Told(Ranges, Spending, total=False):
    """What an agent is told of rewards, costs and budgets."""


class BudgetedAgent(ModelAgent):
    """An agent with two oracles that may have budgets: its policies keep them in its model.

    Parameters
    ----------
    space : Space
        Sizes, horizon, start and admissible actions.
    reward_oracle : RewardOracle
        Learns the mean rewards; the model's f̂.
    dynamics_oracle : DynamicsOracle
        Learns the transitions; the model's P̂.
    costs : array (J, S, A) or (J, H, S, A), or callable, optional
        What decisions cost, J <= 8 kinds of cost, any numbers; a function takes a context and returns such a table.
    budgets : array (J,) or callable, optional
        What an episode may cost in expectation, with `costs`.
    **ranges
        `reward_range` and `return_range`, as for every agent (`Learner`).
    """

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle,
        dynamics_oracle: DynamicsOracle,
        *,
        costs: Given | None = None,
        budgets: Given | None = None,
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, **ranges)
        self._limits = limits_of(space, costs, budgets)

    def limits(self, context: Context) -> Budgets | None:
        """Return what an episode costs, as far as it is known, and may cost; None without budgets."""
        return None if self._limits is None else self._limits(keyed(context).context)

    def best_policy(self, context: Context) -> FloatArray:
        """Return the best policy (H, S, A) of the agent's model within its budgets: no exploration."""
        known = keyed(context)
        return self._best(known, self.model(known)).policy

    def _best(
        self, known: Keyed, model: TabularMDP, drawn: TabularMDP | None = None, bounds: ValueBounds | None = None
    ) -> Decision:
        """Return the decision to play the best policy of `drawn`, by default the model, within the budgets.

        Without budgets, values are clipped to `bounds`, if there are any.
        """
        limits, source = self.limits(known), model if drawn is None else drawn
        if limits is None:
            return Decision(policy=optimal_policy(source, bounds=bounds)[0], model=model)
        best = best_within(source, limits)
        status = Status.SOLVED if best.worst <= MET * source.horizon else Status.INFEASIBLE
        prices = best.prices / limits.scales
        return Decision(policy=best.policy, model=model, limits=limits, prices=prices, status=status)

    def _settings(self) -> str:
        return super()._settings() + ("" if self._limits is None else f", costs {self._limits}")
