"""ε-greedy: an optimal policy of the estimated model, and at every step, with probability ε, any action.

The coin is tossed at each step, and not once for the episode: π = (1 - ε)·greedy + ε·uniform over admissible actions.
By default ε_t = t^(-1/3), the rate for bandits, where it has regret of order T^(2/3). For H > 1 there is no such
guarantee: a reward behind H right actions is found with probability (ε/A)^H.
"""

from __future__ import annotations

from typing import Unpack, final

from omg_cmdp.agents.budgets import BudgetedAgent, Told
from omg_cmdp.agents.exploration.schedules import Power, Schedule, Tuned
from omg_cmdp.contexts import Context, keyed
from omg_cmdp.mdp.occupancy import uniform_policy
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.planning.decision import Decision

CUBE_ROOT = Power(1.0, -1.0 / 3.0)


@final
class EpsilonGreedy(BudgetedAgent):
    """Explore with probability min(1, ε) at each step. Within budgets only the greedy part is.

    Parameters
    ----------
    space : Space
        Sizes, horizon, start and admissible actions.
    reward_oracle : RewardOracle
        Learns the mean rewards; the model's f̂.
    dynamics_oracle : DynamicsOracle
        Learns the transitions; the model's P̂.
    epsilon : float or callable, default t^(-1/3)
        ε, or a function of the episode t = 1, 2, ...
    **told
        `costs` and `budgets` (`BudgetedAgent`), `reward_range` and `return_range` (`Learner`).

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> sizes = {"states": 1, "actions": 2, "horizon": 1}
    >>> oracles = omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)
    >>> EpsilonGreedy(omg.Space(**sizes), *oracles, 0.1).policy(None)
    array([[[0.95, 0.05]]])
    """

    settings = ("epsilon",)
    takes_keyed = True

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle,
        dynamics_oracle: DynamicsOracle,
        epsilon: Tuned = CUBE_ROOT,
        **told: Unpack[Told],
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, **told)
        self.epsilon = Schedule(epsilon, "epsilon")

    def decide(self, context: Context) -> Decision:
        """Return the mixture, in each state, of greedy and uniform play."""
        epsilon = min(1.0, self.epsilon(self.episodes_seen + 1))
        known = keyed(context)
        best = self._best(known, self.model(known))
        mixed = (1.0 - epsilon) * best.policy + epsilon * uniform_policy(self.space)
        return best._replace(policy=mixed, status=None)
