"""Every lemma as two numbers: the left side and the right side of `left <= right`, for one episode or a whole run.

An identity a = b is stated as |a - b| <= 0. What `docs/theory.md` corrects is stated as corrected; section numbers are
those of Levy, Cohen, Cassel and Mansour (2023), theorems and errata (E1, E2, ...) those of `docs/theory.md`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from omg_cmdp.planning.decision import Decision
from omg_cmdp.planning.plan import plan
from omg_cmdp.theory import bounds, errors
from omg_cmdp.theory.quantities import Barrier, Comparison, ahead, dot

REFERENCE = 1e-12
"""The tolerance of the plan that stands for the exact one."""


@dataclasses.dataclass(frozen=True)
class Statement:
    """A claim, and where it is made. It may fail with probability `failure`·delta in a run; 0: never."""

    name: str
    claim: str
    where: str
    failure: float = 0.0


STATEMENTS = {
    entry.name: entry
    for entry in (
        # Of every agent.
        Statement("optimum", "V^π <= V*", "definition of regret"),
        # Of an agent with a model.
        Statement("hellinger", "‖P* - P̂‖₁² <= 4·D²", "§4, after the definition of D²"),
        Statement("optimum error", "V* - V̂^{π*} = Σ d·err", "appendix, value-difference lemma (E8)"),
        Statement("policy error", "V̂^π - V^π = Σ q·((f̂ - f*) + (P̂ - P*)V̂^π)", "appendix, value-difference lemma"),
        Statement("decomposition", "regret = optimum error + plan gap + policy error", "§4, the three sums"),
        Statement("measure, rewards", "Σ q̂·(f̂-f*)² <= e·E_sq + (9e/4)·H²·E_hel", "appendix, rewards lemma (E7)"),
        Statement("measure, dynamics", "Σ q̂·D² <= (e + (9e/2)·H²)·E_hel", "appendix, dynamics lemma (E7)"),
        Statement("policy error, bound", "V̂^π - V^π <= √(H·E_sq) + H·√(H·E_hel)", "§4, cost for π_t (E4)"),
        # Of an agent with a barrier.
        Statement("occupancy", "q̂ is the occupancy of π in the model", "Algorithm 1"),
        Statement("optimality", "Σ m·d/q̂ = Σ m - (V̂^{π*} - V̂^π)", "§4, suboptimality of π* in M̂ (E9)"),
        Statement("plan gap", "V̂* - V̂^π <= Σ m - Σ_h min m", "docs/theory.md"),
        Statement("optimum error, bound", "V* - V̂^{π*} <= Σ m·d²/q̂ + ¼·Σ q̂·err²/m", "§4, cost for π* (E10)"),
        Statement("Theorem A", "regret <= Σ m·(1 + q̂ - 2d) + ¼·Σ q̂·(f*-f̂)²/m, P* known", "docs/theory.md"),
        Statement("Theorem B", "the same with err, plus Σ q̂·(P*-P̂)(V*-V^π)", "docs/theory.md"),
        Statement("Theorem B, value", "V* - V̂^π <= Σ m + ¼·Σ q̂·err²/m", "docs/theory.md"),
        Statement("certificate", "γ·(L(q̃) - L(q̂)) <= certificate", "docs/planner.md"),
        # Of the paper's barrier, w = 1.
        Statement("known dynamics", "regret <= (n-H)/γ + (γ/4)·Σ q̂·(f*-f̂)², P* known", "docs/theory.md"),
        Statement("cost for π*", "V* - V̂^{π*} <= Σ d/(γq̂) + 2γ·E_sq + 29γH⁴·E_hel", "§4, as printed"),
        Statement("iterates", "Σ (q̂/q̃ - 1)² <= 4γε, where γε <= 1 - log 2", "§5, iterates' difference (E5)"),
        Statement("approximate plan", "plan gap <= n/γ - Σ d/(2γq̂) + 2·√(εγH)", "§5, its corollary (E6)"),
        # Of a run.
        Statement("policy errors, sum", "Σ_t V̂^π - V^π <= √(TH·E_sq) + H·√(TH·E_hel)", "§4, cost for π_t (E4)"),
        Statement("regret, from errors", "regret <= Σ_t Σ m + Σ_t C_t/min m + value error", "docs/theory.md"),
        Statement("square loss", "E_sq <= 2·R_sq + 16H·log(2/δ)", "§4, concentration (E3)", 0.5),
        Statement("log loss", "E_hel <= R_log + 2H·log(2H/δ)", "§4, concentration", 0.5),
        Statement("theorem, corrected", "regret <= Σ_t Σ m + C/min m + value error", "docs/theory.md", 1.0),
        Statement("theorem, printed", "regret <= 62γH⁴(..) + HSAT/γ + ..", "§5, theorem", 1.0),
    )
}
"""Everything that an audit can check."""

Sides = tuple[str, float, float]


def of_the_model(c: Comparison) -> Iterator[Sides]:
    """Yield what holds for every agent with a model."""
    distance = np.abs(c.kernel_gap).sum(axis=-1) ** 2
    worst = int((4.0 * c.hellinger - distance).argmin())
    yield "hellinger", float(distance.flat[worst]), float(4.0 * c.hellinger.flat[worst])

    optimum = dot(c.believed_best, c.errors)
    surprise = -c.reward_gap - ahead(c.kernel_gap, c.believed_values)
    policy = dot(c.occupancy, surprise)
    yield "optimum error", abs(optimum - c.optimum_error), 0.0
    yield "policy error", abs(policy - c.policy_error), 0.0
    yield "decomposition", abs(optimum + c.plan_gap + policy - (c.best - c.value)), 0.0

    moved = c.reward_error, c.dynamics_error
    rewards, dynamics = dot(c.believed, c.reward_squares), dot(c.believed, c.hellinger)
    yield "measure, rewards", rewards, math.e * moved[0] + 2.25 * math.e * c.horizon**2 * moved[1]
    yield "measure, dynamics", dynamics, (math.e + 4.5 * math.e * c.horizon**2) * moved[1]
    limit = errors.value_error(horizon=c.horizon, episodes=1, reward_error=moved[0], dynamics_error=moved[1])
    yield "policy error, bound", c.policy_error, limit


def of_the_barrier(c: Comparison, b: Barrier) -> Iterator[Sides]:
    """Yield what holds for every plan with a barrier, up to the error that its certificate leaves."""
    yield "occupancy", float(np.abs(c.believed[b.held] - b.q).max()), 0.0

    weight, cover = float(b.m.sum()), float(b.m @ (b.d / b.q))
    yield "optimality", abs(cover - weight + c.plan_gap), b.defect
    # V̂^q̃ - V̂^π = Σ m·(q̂/q̃ - 1), and Jensen's inequality for r - 1 - log r.
    spread = weight * errors.iterates_bound(b.certificate / (b.gamma * weight))
    best = c.believed_optimum - c.estimate(c.believed)
    yield "plan gap", best, weight - _least_by_step(b) + spread

    squares = c.errors[b.held] ** 2
    estimation = 0.25 * float(b.q @ (squares / b.m))
    yield "optimum error, bound", c.optimum_error, float(b.m @ (b.d**2 / b.q)) + estimation
    regret, shape = c.best - c.value, weight + float(b.m @ (b.q - 2.0 * b.d))
    if not c.kernel_gap.any():
        yield "Theorem A", regret, shape + estimation + b.defect
    yield "Theorem B", regret, shape + estimation + c.third_term + b.defect
    yield "Theorem B, value", c.best - c.estimate(c.believed), weight + estimation + b.defect


def of_the_plain_barrier(c: Comparison, b: Barrier) -> Iterator[Sides]:
    """Yield what holds for the paper's barrier, whose weights are all 1/γ."""
    gamma, count, horizon = b.gamma, len(b.q), c.horizon
    if not c.kernel_gap.any():
        error = dot(c.believed, c.reward_squares)
        limit = bounds.known_dynamics_round(tuples=count, horizon=horizon, gamma=gamma, squared_error=error)
        yield "known dynamics", c.best - c.value, limit + b.defect
    cover = float((b.d / b.q).sum()) / gamma
    paid = gamma * (2.0 * c.reward_error + 29.0 * horizon**4 * c.dynamics_error)
    yield "cost for π*", c.optimum_error, cover + paid
    if b.certificate <= 1.0 / 16.0:
        rest = 2.0 * math.sqrt(max(b.certificate, 0.0) * horizon)
        yield "approximate plan", c.plan_gap, count / gamma - 0.5 * cover + rest


def of_the_certificate(c: Comparison, b: Barrier, decision: Decision) -> Iterator[Sides]:
    """Yield what a second, more precise plan says about the first."""
    closer = plan(c.model, b.gamma, weights=decision.weights, tolerance=REFERENCE)
    if not (closer.occupancy[b.held] > 0.0).all():
        return
    better = closer.occupancy[b.held]
    # A lower bound on the gap, whatever the closer plan's own error: no plan exceeds the exact one.
    gap = b.gamma * c.estimate(closer.occupancy - c.believed) + float(b.w @ np.log(better / b.q))
    # Both values are up to H, and their difference is multiplied by γ: anything below this is rounding.
    rounding = 4.0 * np.finfo(np.float64).eps * b.gamma * c.model.horizon
    yield "certificate", gap - rounding, b.certificate
    most = 1.0 - math.log(2.0)
    if b.plain and max(b.certificate, closer.certificate) <= most:
        # The closer plan q' is not exact either: with s = q'/q̃, ‖q̂/q' - 1‖ <= (‖q̂/q̃ - 1‖ + ‖s - 1‖)/min s.
        norms = 2.0 * (math.sqrt(max(b.certificate, 0.0)) + math.sqrt(max(closer.certificate, 0.0)))
        near = 1.0 - errors.iterates_bound(max(closer.certificate, 0.0))
        if near > 0.0:
            yield "iterates", float(((b.q / better - 1.0) ** 2).sum()), (norms / near) ** 2


def _least_by_step(b: Barrier) -> float:
    """Return Σ_h min m over the tuples of step h, which Σ m·d/q̂ cannot fall below."""
    table = np.full(b.held.shape, np.inf)
    table[b.held] = b.m
    return float(table.min(axis=(1, 2)).sum())
