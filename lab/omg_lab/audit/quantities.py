"""The quantities of the analysis, for one episode: occupancy measures, values, errors of the model, the barrier."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from omg_cmdp.mdp.bellman import policy_values
from omg_cmdp.mdp.divergence import squared_hellinger
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.theory.rounds import Round, mixed_policies
from omg_cmdp.validation import BoolArray, FloatArray


class ModelComparison:
    """The true MDP beside the model, for the optimal policy π* and the policy π that was played, or a mixture.

    Tables are (H, S, A) unless they say otherwise; a first axis of length 1 stands for all steps.
    """

    def __init__(self, this: Round, model: TabularMDP) -> None:
        self.truth, self.model = this.truth.mdp, model
        self.horizon = model.horizon
        self.best_policy, self.best = this.truth.best
        self.policies, self.probabilities = mixed_policies(this.decision)
        self.value = this.value
        self.occupancy = this.occupancy
        """q, the occupancy measure of π in the truth."""
        self.reward_gap: FloatArray = self.truth.reward_steps - model.reward_steps
        self.transition_gap: FloatArray = self.truth.transition_steps - model.transition_steps
        self.hellinger: FloatArray = squared_hellinger(self.truth.transition_steps, model.transition_steps)
        self.best_values = values(self.truth, self.best_policy)
        """V* (H+1, S), in the truth."""
        self.believed_best, _ = flow(model, self.best_policy)
        """d, the occupancy measure of π* in the model."""
        self.believed = self.mean(*(flow(model, policy)[0] for policy in self.policies))
        """q̂, the occupancy measure of π in the model."""
        self.reward_squares: FloatArray = self.reward_gap**2
        self.reward_error = dot(self.occupancy, self.reward_squares)
        """Σ q·(f̂ - f*)²."""
        self.dynamics_error = dot(self.occupancy, self.hellinger)
        """Σ q·D²(P̂, P*)."""

    def mean(self, *tables: FloatArray) -> FloatArray:
        """Return the mean over the mixture of one table for each of its policies."""
        return tables[0] if len(tables) == 1 else np.tensordot(self.probabilities, tables, axes=1)

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
        return self.reward_gap + ahead(self.transition_gap, self.best_values)

    @functools.cached_property
    def distances(self) -> FloatArray:
        """‖P* - P̂‖₁."""
        return np.asarray(np.abs(self.transition_gap).sum(axis=-1))

    @functools.cached_property
    def surprise(self) -> float:
        """Σ q·((f̂ - f*) + (P̂ - P*)·V̂^π_{h+1})."""
        gaps = (-self.reward_gap - ahead(self.transition_gap, values(self.model, policy)) for policy in self.policies)
        tables = zip((flow(self.truth, policy)[0] for policy in self.policies), gaps, strict=True)
        return float(self.probabilities @ [dot(occupancy, gap) for occupancy, gap in tables])

    @functools.cached_property
    def third_term(self) -> float:
        """Σ q̂·(P* - P̂)·(V* - V^π)_{h+1}: what unknown dynamics add to Theorem A."""
        losses = (self.best_values - values(self.truth, policy) for policy in self.policies)
        tables = zip((flow(self.model, policy)[0] for policy in self.policies), losses, strict=True)
        return float(self.probabilities @ [dot(q, ahead(self.transition_gap, loss)) for q, loss in tables])

    @functools.cached_property
    def variance(self) -> float:
        """The largest variance, over rewards in [0, 1] of mean f*, of the excess Σ_h (f̂ - r)² - (f* - r)².

        With D = f̂ - f* a step has the mean D² and the second moment D²·(D² + 4·Var r), Var r <= f*·(1 - f*). The
        second moment of the sum follows backwards, because rewards do not depend on the next state.
        """
        squares, means = self.reward_squares, self.truth.reward_steps
        start, moments = self.truth.start, []
        for policy in self.policies:
            first, after = policy_values(self.truth, policy, squares)
            rest = after - squares  # P·(what comes)
            steps = squares * (squares + 4.0 * means * (1.0 - means)) + 2.0 * squares * rest
            moments.append([start @ first[0], start @ policy_values(self.truth, policy, steps)[0][0]])
        mean, second = self.probabilities @ np.array(moments)
        return float(second - mean * mean)

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
    """Z: which tuples count, (H, S, A)."""
    w: FloatArray
    q: FloatArray
    d: FloatArray
    certificate: float

    @functools.cached_property
    def m(self) -> FloatArray:
        """w/γ."""
        return np.asarray(self.w / self.gamma)

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


def values(mdp: TabularMDP, policy: FloatArray) -> FloatArray:
    """Return V of a valid policy, (H+1, S)."""
    return policy_values(mdp, policy, mdp.reward_steps)[0]


def ahead(transitions: FloatArray, table: FloatArray) -> FloatArray:
    """Return Σ_s' P_h(s'|s, a)·V_{h+1}(s'), (H, S, A), for a table V (H+1, S)."""
    return np.asarray((transitions @ table[1:, None, :, None])[..., 0])


def dot(table: FloatArray, other: FloatArray) -> float:
    """Return Σ a·b for a table (H, S, A) and one of that shape or (1, S, A)."""
    if len(other) == len(table):
        return float(table.reshape(-1) @ other.reshape(-1))
    return float((table.reshape(len(table), -1) @ other.reshape(-1)).sum())
