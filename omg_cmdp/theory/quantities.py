"""The quantities of the analysis, for one episode: occupancy measures, values, errors of the model, the barrier."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from omg_cmdp.mdp.bellman import optimal_policy, policy_values
from omg_cmdp.mdp.divergence import squared_hellinger
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.planning.decision import Decision
from omg_cmdp.theory.rounds import Round
from omg_cmdp.validation import BoolArray, FloatArray


class Comparison:
    """The true MDP beside the model, for the optimal policy π* and the policy π that was played.

    Tables are (H, S, A) unless they say otherwise; a first axis of length 1 stands for all steps.
    """

    def __init__(self, this: Round, model: TabularMDP) -> None:
        self.truth, self.model = this.truth.mdp, model
        self.horizon = model.horizon
        self.best_policy, self.best = this.truth.best
        self.policy = this.decision.policy
        self.value = this.value
        self.occupancy = this.occupancy
        """q: of π, in the truth."""
        self.reward_gap: FloatArray = self.truth.reward_steps - model.reward_steps
        self.kernel_gap: FloatArray = self.truth.kernel - model.kernel
        self.hellinger: FloatArray = squared_hellinger(self.truth.kernel, model.kernel)
        self.best_values = values(self.truth, self.best_policy)
        """V* (H+1, S), in the truth."""
        self.policy_values = values(self.truth, self.policy)
        """V^π (H+1, S), in the truth."""
        self.believed_best, _ = flow(model, self.best_policy)
        """d: of π*, in the model."""
        self.believed, _ = flow(model, self.policy)
        """q̂: of π, in the model."""
        self.reward_squares: FloatArray = self.reward_gap**2
        self.reward_error = dot(self.occupancy, self.reward_squares)
        """Σ q·(f̂ - f*)²."""
        self.dynamics_error = dot(self.occupancy, self.hellinger)
        """Σ q·D²(P̂, P*)."""

    @functools.cached_property
    def optimum_error(self) -> float:
        """V* - V̂^{π*}."""
        return self.best - self.estimate(self.believed_best)

    @functools.cached_property
    def plan_gap(self) -> float:
        """V̂^{π*} - V̂^π."""
        return self.estimate(self.believed_best - self.believed)

    @functools.cached_property
    def policy_error(self) -> float:
        """V̂^π - V^π."""
        return self.estimate(self.believed) - self.value

    @functools.cached_property
    def errors(self) -> FloatArray:
        """Err = (f* - f̂) + (P* - P̂)·V*_{h+1}."""
        return self.reward_gap + ahead(self.kernel_gap, self.best_values)

    @functools.cached_property
    def believed_values(self) -> FloatArray:
        """V̂^π (H+1, S), in the model."""
        return values(self.model, self.policy)

    @functools.cached_property
    def believed_optimum(self) -> float:
        """V̂*: the largest value in the model."""
        return optimal_policy(self.model)[1]

    @functools.cached_property
    def third_term(self) -> float:
        """Σ q̂·(P* - P̂)·(V* - V^π)_{h+1}: what unknown dynamics add to Theorem A."""
        return dot(self.believed, ahead(self.kernel_gap, self.best_values - self.policy_values))

    def estimate(self, occupancy: FloatArray) -> float:
        """Return ⟨q, f̂⟩."""
        return dot(occupancy, self.model.reward_steps)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Barrier:
    """The barrier of a plan, over its n tuples (h, s, a): m = w/γ, q̂, and d of the optimal policy."""

    gamma: float
    plain: bool
    """Whether w = 1, as in the paper."""
    held: BoolArray
    """Which tuples count, (H, S, A)."""
    w: FloatArray
    m: FloatArray
    q: FloatArray
    d: FloatArray
    certificate: float

    @functools.cached_property
    def defect(self) -> float:
        """The largest |Σ m·d/q̂ - Σ m + (V̂^d - V̂^q̂)| of a plan with this certificate.

        With q̃ the exact plan, r = q̂/q̃ and b = d/q̂ - 1 it is Σ m·(1 - r)·b, and Σ w·(r - 1 - log r) <= certificate.
        By Fenchel's inequality, for any λ > |b|: γ times it is at most λ·certificate + Σ w·(±b - λ·log(1 ± b/λ)).
        """
        if not self.certificate > 0.0:
            return 0.0
        b = self.d / self.q - 1.0
        size = np.abs(b)
        scale = 1.000001 * float(size.max()) + math.sqrt(0.5 * float((self.w * b * b).sum()) / self.certificate)
        if not 0.0 < scale < math.inf:
            return 0.0 if scale == 0.0 else math.inf
        # x + log(1 - x) is the larger of the two signs.
        conjugate = -size - scale * np.log1p(-size / scale)
        return (scale * self.certificate + float((self.w * conjugate).sum())) / self.gamma


def barrier(decision: Decision, comparison: Comparison) -> Barrier | None:
    """Return the barrier of a decision; None if it has none, or if the optimal policy leaves the tuples it counts."""
    gamma, q = decision.gamma, decision.occupancy
    if q is None or not 0.0 < gamma < math.inf:
        return None
    held = q > 0.0
    d = comparison.believed_best
    if d.sum() - d[held].sum() > 1e-12:
        return None
    w = np.ones(int(held.sum())) if decision.weights is None else np.broadcast_to(decision.weights, q.shape)[held]
    return Barrier(
        gamma=gamma,
        plain=decision.weights is None,
        held=held,
        w=w,
        m=w / gamma,
        q=q[held],
        d=d[held],
        certificate=decision.certificate if decision.certificate >= 0.0 else math.inf,  # nan: nothing is proven
    )


def values(mdp: TabularMDP, policy: FloatArray) -> FloatArray:
    """Return V of a valid policy, (H+1, S)."""
    return policy_values(mdp, policy, mdp.reward_steps)[0]


def ahead(kernel: FloatArray, table: FloatArray) -> FloatArray:
    """Return Σ_s' K_h(s'|s, a)·V_{h+1}(s'), (H, S, A), for a table V (H+1, S)."""
    return np.asarray((kernel @ table[1:, None, :, None])[..., 0])


def dot(table: FloatArray, other: FloatArray) -> float:
    """Return Σ a·b for a table (H, S, A) and one of that shape or (1, S, A)."""
    if len(other) == len(table):
        return float(table.reshape(-1) @ other.reshape(-1))
    return float((table.reshape(len(table), -1) @ other.reshape(-1)).sum())
