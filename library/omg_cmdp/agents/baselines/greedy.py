"""The agent that trusts its model: no exploration, no guarantee, and on many worlds the one to beat."""

from __future__ import annotations

from typing import final

from omg_cmdp.agents.budgets import BudgetedAgent
from omg_cmdp.contexts import Context
from omg_cmdp.planning.decision import Decision


@final
class Greedy(BudgetedAgent):
    """Play an optimal policy of the estimated model.

    Parameters
    ----------
    space : Space
        Sizes, horizon, start and admissible actions.
    reward_oracle : RewardOracle
        Learns the mean rewards; the model's f̂.
    dynamics_oracle : DynamicsOracle
        Learns the transitions; the model's P̂.
    **told
        `costs` and `budgets` (`BudgetedAgent`), `reward_range` and `return_range` (`Learner`).

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> sizes = {"states": 1, "actions": 2, "horizon": 1}
    >>> agent = Greedy(omg.Space(**sizes), omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))
    >>> agent.update(omg.Trajectory(context=None, states=[0, 0], actions=[1], rewards=[1.0]))
    >>> agent.policy(None)
    array([[[0., 1.]]])
    """

    takes_keyed = True

    def decide(self, context: Context) -> Decision:
        """Return a policy that is deterministic, unless it must keep a budget."""
        return self._optimum(context)
