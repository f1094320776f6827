"""LinMED: minimum empirical divergence in linear bandits (Balagopalan and Jun, AISTATS 2025; arXiv 2411.00229).

With f̂ the regression, b its best action, and d²(a) = ‖z(b) - z(a)‖² in the norm of (λI + Σ zzᵀ)⁻¹,

    m(a) = exp(-gap(a)²/(β·d²(a))),     p(a) ∝ q(a)·m(a),
    q = α_emp·1{a = b} + α_opt·π + (1 - α_emp - α_opt)/A,    π an optimal design for the features √m(a)·z(a):

how unlikely it is that a is at least as good as b, as a closed form where posterior sampling has a draw. For
independent actions and noise of variance ¼, β = ½ makes m the Gaussian rate of MED (Honda and Takemura, 2011),
exp(-2·gap²/(1/n_a + 1/n_b)). The paper has β_t of order d·log t, from the confidence ellipsoid of OFUL, proves regret
of order d·√T up to logarithms, and d²·log²T·loglog T/Δ with a gap Δ, and plays α_emp = .5, .9 and .99 (α_opt is not
certain). The formulas agree with the authors' code.

`LinearRewards` says what the distances are (`covariance`), also of weights for each pair. For any other oracle, actions
count as independent, with zᵀA⁻¹z = 4u, u its uncertainty; f̂ is what the oracle predicts. For these nothing is proven.

π need not be optimal: it is improved until all leverages are within twice their number (Kiefer and Wolfowitz: at the
optimum they are at most the rank r). It depends on features up to linear maps only, so that the covariance is enough.

Source: the authors' code, with which the formulas agree.
"""

from __future__ import annotations

import dataclasses
from typing import final

import numpy as np

from omg_cmdp.agents.exploration.schedules import Schedule, Tuned
from omg_cmdp.contexts import Context
from omg_cmdp.oracles.linear.rewards import LinearRewards
from omg_cmdp.planning.decision import Decision
from omg_cmdp.validation import FloatArray, at_least_zero
from omg_lab.rivals.bandits.inverse_gap import action_gaps
from omg_lab.rivals.declared import Bandit, Option, schedule


@final
class LinMED(Bandit):
    """Play each action by how unlikely it is, in a linear model, that it is as good as the one that looks best.

    Parameters
    ----------
    space : Space
        A space of horizon 1.
    reward_oracle : RewardOracle
        `LinearRewards`, whose covariance is used; for any other oracle actions count as independent.
    dynamics_oracle : DynamicsOracle
        Any; dynamics do not matter in one step.
    radius : float, Power or function of the episode
        β; ½ by default, Gaussian noise of variance ¼.
    empirical, design : float
        The shares α_emp of the best action and α_opt of the optimal design; 0.9 and 0.05 by default.
    reward_range, return_range
        As for every `Learner`.

    >>> from omg_lab.rivals import LinMED
    >>> from omg_lab.worlds import Arms
    >>> LinMED.for_world(Arms()).policy(0).shape
    (1, 1, 10)
    """

    radius: Option[Tuned, Schedule] = Option(schedule, 0.5)
    _: dataclasses.KW_ONLY
    empirical: Option[float, float] = Option(at_least_zero, 0.9)
    design: Option[float, float] = Option(at_least_zero, 0.05)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.empirical + self.design >= 1.0:
            rule = "must leave some of 1 to all actions"
            raise ValueError(f"`empirical` and `design` {rule}, got {self.empirical} and {self.design}")

    def decide(self, context: Context) -> Decision:
        """Return the probabilities of all actions in all states."""
        model, radius = self.model(context), self.radius(self.episodes_seen + 1)
        gaps, covariances = action_gaps(model), self.covariances(context)
        policy = np.stack([self._row(*each, radius) for each in zip(gaps, covariances, strict=True)])
        return Decision(policy=policy[None], model=model)

    def covariances(self, context: Context) -> FloatArray:
        """Return zᵀA⁻¹z' of the actions of each state, (S, A, A)."""
        if isinstance(self.reward_oracle, LinearRewards):
            return self.reward_oracle.covariance(context)
        spread = 4.0 * self.reward_oracle.uncertainty(context).reshape(self.space.admissible.shape)
        return np.asarray(spread[..., None] * np.eye(self.space.actions))

    def _row(self, gaps: FloatArray, covariance: FloatArray, radius: float) -> FloatArray:
        """Return the probabilities in one state."""
        best, allowed = int(gaps.argmin()), np.isfinite(gaps)
        likely = empirical_likelihoods(gaps, covariance, radius)
        roots = np.sqrt(likely)
        base = (1.0 - self.empirical - self.design) * allowed / allowed.sum()
        base = base + self.design * optimal_design(covariance * np.outer(roots, roots), allowed)
        base[best] += self.empirical
        return np.asarray(base * likely / (base @ likely))


def empirical_likelihoods(gaps: FloatArray, covariance: FloatArray, radius: float) -> FloatArray:
    """Return m (A,) = exp(-gap²/(β·d²)), 1 where there is no gap.

    >>> empirical_likelihoods(np.array([0.0, 0.1]), np.eye(2) / 50, 0.5).round(3)  # each played 50 times
    array([1.   , 0.607])
    """
    best, spread = int(gaps.argmin()), covariance.diagonal()
    distances = np.maximum(spread + spread[best] - 2.0 * covariance[best], 1e-300)
    return np.where(gaps > 0.0, np.exp(-(np.minimum(gaps, 2.0) ** 2) / (radius * distances)), 1.0) * np.isfinite(gaps)


def optimal_design(gram: FloatArray, allowed: FloatArray) -> FloatArray:
    """Return a distribution (A,) over rows with Gram matrix `gram` for which all leverages are at most twice the rank.

    By Titterington's multiplicative steps, each of which raises the determinant. Uniform if all rows are zero.
    """
    uniform = np.asarray(allowed / allowed.sum())
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-12 * max(values[-1], 1e-300)
    rows, design = vectors[:, kept] * np.sqrt(values[kept]), uniform
    for _ in range(1000 if kept.any() else 0):
        leverages = np.einsum("ai,ij,aj->a", rows, np.linalg.pinv(rows.T * design @ rows), rows)
        if leverages.max() <= 2.0 * kept.sum():
            break
        design = design * leverages / (design @ leverages)
    return design
