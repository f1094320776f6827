"""The exact numbers of one episode: its regret, the three parts of it, and the errors of the model."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.jit import Lazy
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.truth import Truth
from omg_cmdp.planning.decision import Decision, own_optimum
from omg_cmdp.validation import FloatArray

compiled = Lazy("omg_cmdp.mdp.compiled")

SURELY = np.ones(1)
_UNKNOWN = (math.nan, math.nan, math.nan)
NOTHING = np.empty(0)


class Round(NamedTuple):
    """Everything about one episode of a run, for the ledger and for audits: the argument of `observe` in `simulate`."""

    episode: int
    """Counted from 1."""
    truth: Truth
    """The true MDP of the context, with its optimum."""
    decision: Decision
    """The agent's decision."""
    played: Episode
    """The episode as it was played."""
    occupancy: FloatArray
    """Occupancy measure of the policy played, in the true MDP; the mean of a mixture."""
    value: float
    """V^π, exact; of a mixture, the mean."""
    differences: tuple[float, float, float] = _UNKNOWN
    """The three terms of the paper's decomposition, which sum to the regret; nan without a model.

    V* - V̂^{π*} (the optimal policy's value, true minus estimated), V̂^{π*} - V̂^π (what the plan gives up in its own
    model), V̂^π - V^π (the played policy's value, estimated minus true).
    """
    exploration: float = math.nan
    """V̂* - V̂^π: how far the policy played is below the best one in the agent's own model; nan without a model. It is
    below 0 only if the policy exceeds a budget there."""
    best_policy_regret: float = math.nan
    """V* - V^π̂ of the model's optimum π̂, `Agent.best_policy`: what is not known yet; the rest of the regret is the
    price of exploring."""
    errors: tuple[float, float] = _UNKNOWN[:2]
    """Σ q·(f̂ - f*)² and Σ q·D²(P̂, P*), q the occupancy above; nan without a model."""
    oracles: tuple[Any, ...] = (None, None)
    """The agent's oracles of rewards and of dynamics; None for one that has none."""
    charged: tuple[float, float] = _UNKNOWN[:2]
    """What its oracles were charged for the feedback that arrived after this episode; nan where they keep no losses."""
    arrived: tuple[int, ...] = ()
    """The episodes whose feedback that was, in this order; without delay this one."""

    @property
    def context(self) -> Context:
        """The context of the episode."""
        return self.played.context

    @property
    def optimal_value(self) -> float:
        """V*."""
        return self.truth.raw_best[1]

    @property
    def regret(self) -> float:
        """V* - V^π; below 0 only if the policy exceeds a budget."""
        return self.optimal_value - self.value

    @property
    def costs(self) -> FloatArray:
        """What the policy played costs in the truth, in expectation, (J,); J = 0 without budgets."""
        return NOTHING if self.truth.limits is None else self.truth.limits.charged(self.occupancy)

    @property
    def budgets(self) -> FloatArray:
        """What it may cost, (J,)."""
        return NOTHING if self.truth.limits is None else self.truth.limits.given


def account(episode: int, truth: Truth, decision: Decision, played: Episode) -> Round:
    """Return the round, with the exact value of the policy that was played."""
    transitions, rewards, start, _ = truth.mdp.raw
    guess, means, first, admissible = (decision.model or truth.mdp).raw
    best_policy, best = truth.raw_best
    mixture, probabilities = mixed_policies(decision)
    policies, occupancy = np.ascontiguousarray(mixture, dtype=np.float64), np.empty(best_policy.shape)
    if policies.shape != (len(probabilities), *occupancy.shape) or guess.shape[1:] != transitions.shape[1:]:
        wanted, got = f"{occupancy.shape} and {transitions.shape[1:]}", f"{policies.shape[1:]} and {guess.shape[1:]}"
        raise ValueError(f"`decide` must return policies and transitions of shapes {wanted}, got {got}")
    value, believed_best, believed, own_value, own_believed, squares, hellinger = compiled.account(
        transitions, rewards, start, guess, means, first, admissible, best_policy, policies, probabilities, occupancy
    )
    if decision.model is None:
        return Round(episode, truth, decision, played, occupancy, value)
    if decision.limits is not None:
        own_policy = own_optimum(decision.model, decision.limits)
        own_value, own_believed = flow(truth.mdp, own_policy)[1], flow(decision.model, own_policy)[1]
    differences = best - believed_best, believed_best - believed, believed - value
    own = own_believed - believed, best - own_value
    return Round(episode, truth, decision, played, occupancy, value, differences, *own, (squares, hellinger))


def mixed_policies(decision: Decision) -> tuple[FloatArray, FloatArray]:
    """Return the policies (K, H, S, A) of which one was drawn, and their probabilities (K,)."""
    return decision.mixture or (decision.policy[None], SURELY)
