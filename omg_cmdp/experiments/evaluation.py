"""The exact numbers of one episode: regret, its three parts, and the errors of the model."""

from __future__ import annotations

import dataclasses

import numpy as np

from omg_cmdp.agents.base import Decision
from omg_cmdp.contexts import Context
from omg_cmdp.environments.base import Draw, Truth
from omg_cmdp.mdp.compiled import kernels
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import FloatArray


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Round:
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

    @property
    def regret(self) -> float:
        """V* - V^π."""
        return self.truth.best[1] - self.value


def play_round(episode: int, context: Context, truth: Truth, decision: Decision, draw: Draw) -> Round:
    """Return the round, with the exact value of the policy that was played."""
    occupancy = played_occupancy(truth.mdp, decision)
    return Round(
        episode=episode,
        context=context,
        truth=truth,
        decision=decision,
        draw=draw,
        occupancy=occupancy,
        value=float(kernels().value(truth.mdp.raw[1], occupancy)),
    )


def value_differences(played: Round) -> tuple[float, float, float]:
    """Return the three terms of the paper's decomposition, which sum to the regret; nan without a model.

    V*_M - V*_M̂ (the optimal policy's value, true minus estimated), V̂^{π*} - V̂^π (what the plan gives up in its own
    model), V̂^π - V^π (the played policy's value, estimated minus true).
    """
    model = played.decision.model
    if model is None:
        return float("nan"), float("nan"), float("nan")
    best_policy, best = played.truth.best
    believed_best = float(kernels().value(model.raw[1], flow(model, best_policy)))
    believed = float(kernels().value(model.raw[1], played_occupancy(model, played.decision)))
    return best - believed_best, believed_best - believed, believed - played.value


def model_errors(played: Round) -> tuple[float, float]:
    """Return Σ q·(f̂ - f*)² and Σ q·D²(P̂, P*), q the true occupancy of the policy played; nan without a model."""
    model, truth = played.decision.model, played.truth.mdp
    if model is None:
        return float("nan"), float("nan")
    kernel, rewards, _, _ = model.raw
    true_kernel, true_rewards, _, _ = truth.raw
    squares, hellinger = kernels().model_errors(played.occupancy, rewards, true_rewards, kernel, true_kernel)
    return squares, hellinger


def played_occupancy(mdp: TabularMDP, decision: Decision) -> FloatArray:
    """Return the occupancy measure (H, S, A), in `mdp`, of what was decided; the mean of a mixture."""
    if decision.mixture is None:
        return flow(mdp, decision.policy)
    policies, probabilities = decision.mixture
    flows = [probability * flow(mdp, policy) for policy, probability in zip(policies, probabilities, strict=True)]
    return np.asarray(np.sum(flows, axis=0))


def played_policy(mdp: TabularMDP, decision: Decision) -> FloatArray:
    """Return the policy that does in `mdp`, state by state, what was decided.

    A mixture is as good there as the policy π_h(a|s) = q_h(s, a)/Σ_a q_h(s, a) of its mean occupancy q.
    """
    if decision.mixture is None:
        return decision.policy
    occupancy = played_occupancy(mdp, decision)
    marginal = occupancy.sum(axis=2, keepdims=True)
    return np.where(marginal > 0.0, occupancy / np.where(marginal > 0.0, marginal, 1.0), decision.policy)
