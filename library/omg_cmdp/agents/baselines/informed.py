"""The agent that knows the truth: no regret, the high end of every comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, final

import numpy as np

from omg_cmdp.agents.budgets import BudgetedAgent
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.environment import Environment
from omg_cmdp.mdp.limits import Given
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.oracles.finite.known import KnownDynamics, KnownRewards
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, function, instance_of


@final
class Informed(BudgetedAgent):
    """Play an optimal policy of the true MDP.

    Its oracles are the true functions, so that the ledger shows the losses that cannot be avoided.

    Parameters
    ----------
    space : Space
        Sizes, horizon, start and admissible actions.
    mdp : callable
        context -> TabularMDP, such as the method `mdp` of a world.
    costs, budgets, reward_range, return_range
        As for every agent: `BudgetedAgent`, `Learner`.

    Examples
    --------
    >>> space = Space(states=1, actions=2, horizon=1)
    >>> truth = space.mdp(transitions=np.ones((1, 2, 1)), rewards=[[0.0, 1.0]])
    >>> Informed(space, lambda context: truth).policy(None)
    array([[[0., 1.]]])
    """

    takes_keyed = True

    def __init__(
        self,
        space: Space,
        mdp: Callable[[Context], TabularMDP],
        *,
        costs: Given | None = None,
        budgets: Given | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        return_range: tuple[float, float] | None = None,
    ) -> None:
        instance_of("space", space, Space)
        function("mdp", mdp)
        super().__init__(
            space,
            KnownRewards(lambda context: mdp(context).rewards, horizon=space.horizon),
            KnownDynamics(lambda context: _rows(mdp(context)), horizon=space.horizon),
            costs=costs,
            budgets=budgets,
            reward_range=reward_range,
            return_range=return_range,
        )

    @classmethod
    def for_world(cls, world: Environment, **options: Any) -> Self:
        """Return the agent that knows the tables of `world`."""
        instance_of("world", world, Environment)
        if world.mdp is None:
            raise ValueError("the agent plays the optimum, which nobody knows where there are no tables")
        return super().for_world(world, mdp=world.mdp, **options)

    def decide(self, context: Context) -> Decision:
        """Return a policy that is deterministic, unless it must keep a budget."""
        return self._optimum(context)


def _rows(mdp: TabularMDP) -> FloatArray:
    """Return the transitions with a distribution also in the rows of inadmissible actions."""
    return np.where(mdp.admissible[:, :, None], mdp.transitions, np.eye(1, mdp.states)[0])
