"""Agents that keep budgets: the best policy of a model within what an episode may cost."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import numpy as np

from omg_cmdp.agents.base import ModelAgent, Ranges
from omg_cmdp.contexts import Context, Keyed, keyed
from omg_cmdp.mdp.bellman import ValueBounds, best_response
from omg_cmdp.mdp.budgets import MET, Budgets, best_within
from omg_cmdp.mdp.limits import Given, limits_of
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.persistence import Stateful, undone_on_failure
from omg_cmdp.planning.decision import Decision
from omg_cmdp.planning.solution import Status
from omg_cmdp.validation import FloatArray, instance_of, interval, unit_scaled

Costs = Given | RewardOracle | Sequence[RewardOracle]
"""Costs that are known, or the oracles that learn them, one for each kind."""


class Spending(TypedDict, total=False):
    """What an agent is told of costs and budgets."""

    costs: Costs | None
    budgets: Given | None
    cost_range: tuple[float, float]


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
    costs : array (J, S, A) or (J, H, S, A), callable, RewardOracle or list of them, optional
        What decisions cost, J <= 8 kinds of cost, any numbers; a function takes a context and returns such a table. If
        costs are not known, an oracle for each kind learns them, as rewards are learned; trajectories then have
        `costs`.
    budgets : array (J,) or callable, optional
        What an episode may cost in expectation, with `costs`.
    cost_range : (float, float), default (0, 1)
        Between which numbers costs lie that oracles learn: they are scaled from it to [0, 1].
    **ranges
        `reward_range` and `return_range`, as for every agent (`Learner`).
    """

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle,
        dynamics_oracle: DynamicsOracle,
        *,
        costs: Costs | None = None,
        budgets: Given | None = None,
        cost_range: tuple[float, float] = (0.0, 1.0),
        **ranges: Unpack[Ranges],
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, **ranges)
        self.cost_range: tuple[float, float] = interval("cost_range", cost_range)
        self.cost_oracles: tuple[RewardOracle, ...] = _oracles_of(costs)
        known: Any = self._expected_costs if self.cost_oracles else costs
        self._limits = limits_of(space, known, budgets)

    def limits(self, context: Context) -> Budgets | None:
        """Return what an episode costs, as far as it is known, and may cost; None without budgets."""
        return None if self._limits is None else self._limits(keyed(context).context)

    def _expected_costs(self, context: Context) -> FloatArray:
        """Return what the oracles predict, (J, S, A) or (J, H, S, A), in the units of the costs."""
        (low, high), space, known = self.cost_range, self.space, keyed(context)
        tables = [oracle.predict(known.to(oracle)) for oracle in self.cost_oracles]
        steps = max(table.ndim for table in tables) == 3
        shape = (space.horizon, space.states, space.actions)[not steps :]
        return low + (high - low) * np.stack([np.broadcast_to(table, shape) for table in tables])

    def best_policy(self, context: Context) -> FloatArray:
        """Return the best policy (H, S, A) of the agent's model within its budgets: no exploration."""
        return self._optimum(context).policy

    def _optimum(self, context: Context) -> Decision:
        """Return the optimum of the model, within the budgets: deterministic, unless it must keep one."""
        known = keyed(context)
        return self._best(known, self.model(known))

    def _best(
        self, known: Keyed, model: TabularMDP, drawn: TabularMDP | None = None, bounds: ValueBounds | None = None
    ) -> Decision:
        """Return the decision to play the best policy of `drawn`, by default the model, within the budgets.

        Without budgets, values are clipped to `bounds`, if there are any.
        """
        limits, source = self.limits(known), model if drawn is None else drawn
        if limits is None:
            return Decision(policy=best_response(source, source.raw[1], bounds=bounds)[0], model=model)
        best = best_within(source, limits)
        status: Status | None = Status.SOLVED if best.worst <= MET * source.horizon else Status.INFEASIBLE
        if drawn is not None:  # what it keeps in a drawn model, it need not in the mean one
            status = None
        prices = best.prices / limits.scales
        return Decision(policy=best.policy, model=model, limits=limits, prices=prices, status=status)

    def paid(self, trajectory: Trajectory) -> FloatArray:
        """Return what the steps of an episode cost, (J, L): as it says, or by the costs that are known."""
        limits = self.limits(trajectory.known.to(self))
        if limits is None:
            raise ValueError("`costs` must be given to an agent that is asked what an episode cost")
        if trajectory.costs is None and not self.cost_oracles:
            return limits.means(*trajectory.raw[:2])
        wanted = len(limits.given), len(trajectory.actions)
        if trajectory.costs is None or trajectory.costs.shape != wanted:
            got = None if trajectory.costs is None else trajectory.costs.shape
            raise ValueError(f"`costs` of the trajectory must have shape {wanted}, got {got}")
        return trajectory.costs

    def _learn(self, trajectory: Trajectory, rewards: FloatArray) -> None:
        if not self.cost_oracles:
            super()._learn(trajectory, rewards)
            return
        paid = self.paid(trajectory)
        low, high = self.cost_range
        if not ((paid >= low) & (paid <= high)).all():
            wanted = f"[{low:g}, {high:g}], the agent's `cost_range`"
            raise ValueError(f"`costs` must lie in {wanted}, got {paid.tolist()!r:.60}")
        scaled = unit_scaled(paid, self.cost_range)
        states, actions = trajectory.states[: len(trajectory.actions)], trajectory.actions
        with contextlib.ExitStack() as undone:
            for oracle, costs in zip(self.cost_oracles, scaled, strict=True):
                undone.enter_context(undone_on_failure(oracle))
                oracle.update(trajectory.known.to(oracle), states, actions, costs)
            super()._learn(trajectory, rewards)

    def _oracles(self) -> dict[str, Stateful]:
        return {**super()._oracles(), **{f"cost {j}": each for j, each in enumerate(self.cost_oracles)}}

    def _settings(self) -> str:
        if self._limits is None:
            return super()._settings()
        learned = f" learned in {self.cost_range}" if self.cost_oracles else ""
        return f"{super()._settings()}, costs{learned} {self._limits}"


def _oracles_of(costs: Any) -> tuple[RewardOracle, ...]:
    """Return the oracles among the forms that costs may have; () for tables and functions."""
    given = (costs,) if isinstance(costs, RewardOracle) else costs
    if not isinstance(given, (list, tuple)) or not any(isinstance(each, RewardOracle) for each in given):
        return ()
    for each in given:
        instance_of("costs", each, RewardOracle)
    return tuple(given)
