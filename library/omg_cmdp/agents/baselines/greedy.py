"""The agent that trusts its model: no exploration, no guarantee, and on many worlds the one to beat."""

from __future__ import annotations

from typing import final

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.planning.decision import Decision


@final
class Greedy(ModelAgent):
    """Play an optimal policy of the estimated model."""

    takes_keyed = True

    def decide(self, context: Context) -> Decision:
        """Return a deterministic policy."""
        model = self.model(context)
        return Decision(policy=optimal_policy(model)[0], model=model)
