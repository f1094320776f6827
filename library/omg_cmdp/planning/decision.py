"""What an agent decides before an episode: a policy, or a mixture of policies, and what led to it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from omg_cmdp.mdp.bellman import best_response
from omg_cmdp.mdp.budgets import Budgets, best_within
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.planning.solution import Status
from omg_cmdp.sampling import draw_index
from omg_cmdp.validation import FloatArray, instance_of


class Mixture(NamedTuple):
    """Policies, one of which is drawn at the start of an episode and played to its end.

    Parameters
    ----------
    policies : array (K, H, S, A)
        The policies.
    probabilities : array (K,)
        How likely each of them is.

    Examples
    --------
    >>> both = Mixture(np.array([[[[1.0, 0.0]]], [[[0.0, 1.0]]]]), np.array([0.25, 0.75]))
    >>> both.draw(np.random.default_rng(0))
    array([[[0., 1.]]])
    """

    policies: FloatArray
    """(K, H, S, A)."""
    probabilities: FloatArray
    """(K,)."""

    def draw(self, generator: np.random.Generator) -> FloatArray:
        """Return one of the policies."""
        instance_of("generator", generator, np.random.Generator)
        return np.array(self.policies[draw_index(self.probabilities, generator.random())])


class Decision(NamedTuple):
    """A policy (H, S, A) and what led to it; None, nan and 0 stand for what an agent does not have.

    Only `policy` is required. A named tuple: `decision._replace(policy=...)` is the same decision with another policy.

    Examples
    --------
    >>> Decision(policy=np.array([[[1.0, 0.0]]])).exploration  # an agent without a model
    nan
    """

    policy: FloatArray
    """What to play."""
    mixture: Mixture | None = None
    """What `policy` was drawn from; regret is then that of the mixture."""
    model: TabularMDP | None = None
    """The MDP that the agent's oracles predict."""
    gamma: float = float("nan")
    """γ of the plan: the larger, the less it explores."""
    weights: FloatArray | None = None
    """w = γ·m of the barrier, (H, S, A), as `plan` takes it; None: all 1. Of a plan for gains, γ·½·√(w/Q)·q."""
    occupancy: FloatArray | None = None
    """The occupancy measure of `policy` in the model, (H, S, A)."""
    values: FloatArray | None = None
    """The dual values V of the plan, (H, S)."""
    certificate: float = float("nan")
    """The proven bound on γ times what the plan is short of its optimum."""
    iterations: int = 0
    """Newton steps of the planner; of a plan for gains, its rounds."""
    regulariser: str = "log"
    """What the plan was regularised by: "log", the barrier; "log within budgets"; "root", gains; or something else.
    Audits expect only of barriers what is proven for them."""

    limits: Budgets | None = None
    """What an episode costs in the model and may cost; None without budgets."""
    prices: FloatArray | None = None
    """λ >= 0, (J,): what one unit more of each budget would add to the plan, in rewards scaled to [0, 1]."""
    status: Status | None = None
    """With budgets, whether the policy keeps them in the model, and what was done if none does."""

    @property
    def costs(self) -> FloatArray | None:
        """What the policy costs in the model, (J,); None without budgets."""
        if self.model is None or self.limits is None:
            return None
        return self.limits.charged(flow(self.model, self.policy)[0])

    @property
    def exploration(self) -> float:
        """V̂* - V̂^π: how far below the best policy of the model, within its budgets, this one is; nan without a model.

        It is below 0 only for a policy that exceeds a budget.
        """
        if self.model is None:
            return math.nan
        policies, probabilities = self.mixture or (self.policy[None], np.ones(1))
        best, *values = (flow(self.model, each)[1] for each in (own_optimum(self.model, self.limits), *policies))
        return best - float(np.dot(probabilities, values))


def own_optimum(model: TabularMDP, limits: Budgets | None) -> FloatArray:
    """Return the best policy (H, S, A) of a model, within its budgets if there are any."""
    return best_response(model, model.raw[1])[0] if limits is None else best_within(model, limits).policy


def state_policy(mdp: TabularMDP, decision: Decision) -> FloatArray:
    """Return the policy that does in `mdp`, state by state, what was decided.

    A mixture is as good there as the policy π_h(a|s) = q_h(s, a)/Σ_a q_h(s, a) of its mean occupancy q.
    """
    if decision.mixture is None:
        return decision.policy
    policies, probabilities = decision.mixture
    occupancy = np.tensordot(probabilities, [flow(mdp, policy)[0] for policy in policies], axes=1)
    marginal = occupancy.sum(axis=2, keepdims=True)
    return np.where(marginal > 0.0, occupancy / np.where(marginal > 0.0, marginal, 1.0), decision.policy)
