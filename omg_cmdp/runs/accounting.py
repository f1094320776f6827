"""The exact numbers of one episode: regret, its three parts, and the errors of the model."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.environments.base import Draw
from omg_cmdp.jit import lazy
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.truth import Truth
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray

kernels = lazy("omg_cmdp.mdp.kernels")

_SURELY = np.ones(1)
_UNKNOWN = (math.nan, math.nan, math.nan)


class Round(NamedTuple):
    """All about one episode, for the ledger and for audits."""

    episode: int
    """Counted from 1."""
    context: Context
    truth: Truth
    decision: Decision
    draw: Draw
    occupancy: FloatArray
    """Of the policy played, in the true MDP; the mean of a mixture."""
    value: float
    """V^π, exact; of a mixture, the mean."""
    differences: tuple[float, float, float]
    """The three terms of the paper's decomposition, which sum to the regret; nan without a model.

    V*_M - V*_M̂ (the optimal policy's value, true minus estimated), V̂^{π*} - V̂^π (what the plan gives up in its own
    model), V̂^π - V^π (the played policy's value, estimated minus true).
    """
    errors: tuple[float, float]
    """Σ q·(f̂ - f*)² and Σ q·D²(P̂, P*), q the occupancy above; nan without a model."""

    @property
    def regret(self) -> float:
        """V* - V^π."""
        return self.truth.best[1] - self.value


def play_round(episode: int, context: Context, truth: Truth, decision: Decision, draw: Draw) -> Round:
    """Return the round, with the exact value of the policy that was played."""
    kernel, rewards, start, _ = truth.mdp.raw
    model = decision.model
    guess, means, first, _ = (truth.mdp if model is None else model).raw
    best_policy, best = truth.best
    policies, probabilities = decision.mixture or (decision.policy[None], _SURELY)
    played, occupancy = np.ascontiguousarray(policies, dtype=np.float64), np.empty(best_policy.shape)
    if played.shape != (len(probabilities), *occupancy.shape) or guess.shape[1:] != kernel.shape[1:]:
        wanted, got = f"{occupancy.shape} and {kernel.shape[1:]}", f"{played.shape[1:]} and {guess.shape[1:]}"
        raise ValueError(f"`decide` must return policies and a kernel of shapes {wanted}, got {got}")
    value, believed_best, believed, squares, hellinger = kernels.account(
        kernel, rewards, start, guess, means, first, best_policy, played, probabilities, occupancy
    )
    if model is None:
        return Round(episode, context, truth, decision, draw, occupancy, value, _UNKNOWN, _UNKNOWN[:2])
    differences = best - believed_best, believed_best - believed, believed - value
    return Round(episode, context, truth, decision, draw, occupancy, value, differences, (squares, hellinger))


def played_policy(mdp: TabularMDP, decision: Decision) -> FloatArray:
    """Return the policy that does in `mdp`, state by state, what was decided.

    A mixture is as good there as the policy π_h(a|s) = q_h(s, a)/Σ_a q_h(s, a) of its mean occupancy q.
    """
    if decision.mixture is None:
        return decision.policy
    policies, probabilities = decision.mixture
    occupancy = np.tensordot(probabilities, [flow(mdp, policy)[0] for policy in policies], axes=1)
    marginal = occupancy.sum(axis=2, keepdims=True)
    return np.where(marginal > 0.0, occupancy / np.where(marginal > 0.0, marginal, 1.0), decision.policy)
