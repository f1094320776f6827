"""Posterior sampling: play an optimal policy of a drawn model (Strens 2000; Osband, Russo and Van Roy 2013).

No guarantee under adversarial contexts.
"""

from __future__ import annotations

from typing import Unpack, final

import numpy as np

from omg_cmdp.agents.budgets import BudgetedAgent, Told
from omg_cmdp.contexts import Context, keyed
from omg_cmdp.mdp.space import Space
from omg_cmdp.oracles.base import DynamicsOracle, RewardOracle
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import seed_number


@final
class PosteriorSampling(BudgetedAgent):
    """Draw rewards and transitions, the oracles' `draws`, once per episode, and plan in them.

    The draw is a function of `seed` and the number of episodes seen, so that asking twice changes nothing.

    Parameters
    ----------
    space : Space
        Sizes, horizon, start and admissible actions.
    reward_oracle : RewardOracle
        Learns the mean rewards; the model's f̂.
    dynamics_oracle : DynamicsOracle
        Learns the transitions; the model's P̂.
    seed : int, default 0
        The seed of the draws.
    **told
        `costs` and `budgets` (`BudgetedAgent`), `reward_range` and `return_range` (`Learner`).

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> sizes = {"states": 1, "actions": 2, "horizon": 1}
    >>> oracles = omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)
    >>> agents = [PosteriorSampling(omg.Space(**sizes), *oracles, seed=seed) for seed in range(100)]
    >>> 30 < sum(int(agent.policy(None)[0, 0, 0]) for agent in agents) < 70  # each action is often the better one
    True
    """

    settings = ("seed",)
    takes_keyed = True

    def __init__(
        self,
        space: Space,
        reward_oracle: RewardOracle,
        dynamics_oracle: DynamicsOracle,
        *,
        seed: int = 0,
        **told: Unpack[Told],
    ) -> None:
        super().__init__(space, reward_oracle, dynamics_oracle, **told)
        self.seed = seed_number(seed)

    def decide(self, context: Context) -> Decision:
        """Return a policy that is optimal in the model drawn: deterministic, unless it must keep a budget."""
        generator = np.random.default_rng((self.seed, self.episodes_seen))
        known = keyed(context)
        (rewards,), (transitions,) = (
            oracle.draws(known.to(oracle), 1, generator) for oracle in (self.reward_oracle, self.dynamics_oracle)
        )
        drawn = self.space.mdp(transitions=transitions, rewards=rewards)
        return self._best(known, self.model(known), drawn, self.value_bounds)
