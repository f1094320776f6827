"""Clipping after planning: plan as if there were no budget, then do less of it.

    π' = (1 - θ)·π + θ·π₀,   the smallest θ with ⟨q(π'), c_j⟩ <= b_j in the model for all j

π is optimal in the model without budgets, π₀ plays the cheapest action. It is what a rule after planning does: a limit
of messages a week, a dose that is halved. The budget is kept in the model, but spent on good and bad moments alike.

Source: no paper; what teams do. The rule is the project's own.
"""

from __future__ import annotations

from typing import final

from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import best_response
from omg_cmdp.mdp.budgets import Budgets
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray
from omg_lab.rivals.budgets.limited import Limited, cheapest_policy
from omg_lab.rivals.declared import ModelRival

HALVINGS = 40


@final
class Clipped(Limited, ModelRival):
    """Play the optimum without budgets, less often, until its expected cost fits.

    Parameters
    ----------
    space : Space
        The states, actions and horizon.
    reward_oracle, dynamics_oracle
        Any two oracles; the model of a context is what they predict.
    costs, budgets
        As for `OMG`; required.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import Clipped
    >>> from omg_lab.worlds import Reminders
    >>> decision = Clipped.for_world(Reminders()).decide(0)
    >>> decision.costs.round(6)
    array([2.])
    """

    def decide(self, context: Context) -> Decision:
        """Return the optimum of the model, mixed with the cheapest policy."""
        model, limits = self.model(context), self.limits(context)
        return Decision(policy=clip(model, limits, best_response(model, model.raw[1])[0]), model=model, limits=limits)


def clip(mdp: TabularMDP, given: Budgets, policy: FloatArray) -> FloatArray:
    """Return (1 - θ)·π + θ·π₀ with the smallest θ that keeps the budgets, by bisection; θ = 1 if none does."""
    cheapest = cheapest_policy(mdp, given)

    def fits(share: float) -> bool:
        occupancy = flow(mdp, (1.0 - share) * policy + share * cheapest)[0]
        return bool((given.spent(occupancy) <= given.limits).all())

    low, high = 0.0, 0.0 if fits(0.0) else 1.0
    for _ in range(HALVINGS if high else 0):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return (1.0 - high) * policy + high * cheapest
