"""The agent that trusts its model: no exploration, no guarantee, and on many worlds the one to beat."""

from __future__ import annotations

from typing import final

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.planning.decision import Decision


@final
class Greedy(ModelAgent):
    """Play an optimal policy of the estimated model.

    Parameters
    ----------
    space : Space
        Sizes, horizon, start and admissible actions.
    reward_oracle : RewardOracle
        Learns the mean rewards; the model's f̂.
    dynamics_oracle : DynamicsOracle
        Learns the transitions; the model's P̂.
    reward_range : (float, float), default (0, 1)
        Between which numbers every reward lies, in the units in which rewards arrive.
    return_range : (float, float), optional
        Between which numbers the sum of an episode's rewards lies, in the same units; by default H times
        `reward_range`. A tighter range makes bonuses and plausible values tighter too.

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
        """Return a deterministic policy."""
        model = self.model(context)
        return Decision(policy=optimal_policy(model)[0], model=model)
