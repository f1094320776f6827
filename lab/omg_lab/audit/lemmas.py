"""The lemmas about one episode, each as the two sides of `left <= right`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.planning.solution import Solution
from omg_cmdp.theory import bounds, errors
from omg_lab.audit.claims import PRECISION
from omg_lab.audit.quantities import Barrier, ModelComparison, dot
from omg_lab.audit.statements import Sides

E = math.e

OF_MODELS = (
    *("hellinger", "optimum error", "policy error", "decomposition"),
    *("measure, rewards", "measure, distances", "measure, dynamics"),
    *("policy error, parts", "policy error, rewards", "policy error, dynamics", "policy error, bound", "variance"),
)
OF_BARRIERS = ("optimality", "plan gap", "optimum error, bound", "Theorem B", "Theorem B, value")
OF_PLAIN_BARRIERS = ("cost for π*, in the model", "cost for π*", "approximate plan", "iterates")


def of_the_model(c: ModelComparison) -> Iterator[Sides]:
    """Yield what holds for any policy and any model."""
    squares = c.distances**2
    worst = int((4.0 * c.hellinger - squares).argmin())
    yield "hellinger", float(squares.flat[worst]), float(4.0 * c.hellinger.flat[worst])

    optimum = dot(c.believed_best, c.errors)
    yield "optimum error", abs(optimum - c.optimum_error), 0.0
    yield "policy error", abs(c.surprise - c.policy_error), 0.0
    yield "decomposition", abs(optimum + c.plan_gap + c.surprise - (c.best - c.value)), 0.0

    horizon, of_rewards, of_dynamics = c.horizon, c.reward_error, c.dynamics_error
    moved = 2.25 * E * horizon**2 * of_dynamics
    yield "measure, rewards", dot(c.believed, c.reward_squares), E * of_rewards + moved
    yield "measure, distances", dot(c.believed, squares), 4.0 * (E * of_dynamics + moved)
    yield "measure, dynamics", dot(c.believed, c.hellinger), E * of_dynamics + 2.0 * moved

    of_means, of_distances = -dot(c.occupancy, c.reward_gap), dot(c.occupancy, c.distances)
    yield "policy error, parts", c.policy_error, of_means + horizon * of_distances
    yield "policy error, rewards", of_means, math.sqrt(horizon * of_rewards)
    yield "policy error, dynamics", of_distances, 2.0 * math.sqrt(horizon * of_dynamics)
    limit = errors.value_error(horizon=horizon, episodes=1, reward_error=of_rewards, dynamics_error=of_dynamics)
    yield "policy error, bound", c.policy_error, limit
    yield "variance", c.variance, 4.0 * horizon * of_rewards


def of_the_barrier(c: ModelComparison, b: Barrier) -> Iterator[Sides]:
    """Yield what holds for every plan with a barrier, up to the error that its certificate leaves."""
    weight, cover = float(b.m.sum()), float(b.m @ (b.d / b.q))
    yield "optimality", abs(cover - weight + c.plan_gap), b.defect
    # V̂^q̃ - V̂^π = Σ m·(q̂/q̃ - 1), and Jensen's inequality for r - 1 - log r.
    spread = weight * errors.iterates_bound(b.certificate / (b.gamma * weight))
    best = optimal_policy(c.model)[1] - c.estimate(c.believed)  # V̂* - V̂^π
    yield "plan gap", best, weight - _least_by_step(b) + spread

    squares = c.errors[b.held] ** 2
    estimation = 0.25 * float(b.q @ (squares / b.m))
    yield "optimum error, bound", c.optimum_error, float(b.m @ (b.d**2 / b.q)) + estimation
    regret, shape = c.best - c.value, weight + float(b.m @ (b.q - 2.0 * b.d))
    if not c.transition_gap.any():
        yield "Theorem A", regret, shape + estimation + b.defect
    yield "Theorem B", regret, shape + estimation + c.third_term + b.defect
    yield "Theorem B, value", c.best - c.estimate(c.believed), weight + estimation + b.defect


def of_the_plain_barrier(c: ModelComparison, b: Barrier, closer: Solution) -> Iterator[Sides]:
    """Yield what holds for the paper's barrier, whose weights are all 1/γ."""
    gamma, count, horizon = b.gamma, len(b.q), c.horizon
    if not c.transition_gap.any():
        error = dot(c.believed, c.reward_squares)
        limit = bounds.known_dynamics_round(tuples=count, horizon=horizon, gamma=gamma, squared_error=error)
        yield "known dynamics", c.best - c.value, limit + b.defect
    cover = float((b.d / b.q).sum()) / gamma
    squares, distances = dot(c.believed, c.reward_squares), dot(c.believed, c.distances**2)
    inside = 0.5 * gamma * (squares + horizon**2 * distances)
    yield "cost for π*, in the model", c.optimum_error, cover + inside
    paid = gamma * (2.0 * c.reward_error + 29.0 * horizon**4 * c.dynamics_error)
    yield "cost for π*", c.optimum_error, cover + paid
    rest = 2.0 * math.sqrt(b.certificate * horizon) if b.certificate <= PRECISION else math.inf
    yield "approximate plan", c.plan_gap, count / gamma - 0.5 * cover + rest
    yield "iterates", *_iterates(b, closer)


def _iterates(b: Barrier, closer: Solution) -> tuple[float, float]:
    """Return Σ (q̂/q' - 1)², q' the closer plan, and its bound.

    q' is not exact either: with s = q'/q̃, ‖q̂/q' - 1‖ <= (‖q̂/q̃ - 1‖ + ‖s - 1‖)/min s.
    """
    better = closer.occupancy[b.held]
    near = 1.0 - errors.iterates_bound(max(closer.certificate, 0.0))
    if not (better > 0.0).all() or not near > 0.0:
        return math.nan, math.nan
    norm = (_distance(b.certificate) + _distance(max(closer.certificate, 0.0))) / near
    return float(((b.q / better - 1.0) ** 2).sum()), norm * norm


def _distance(gap: float) -> float:
    """Return a bound on √Σ (q̂/q̃ - 1)² for a plan with γ·ε <= `gap` (E5)."""
    return 2.0 * math.sqrt(gap) if gap <= 1.0 - math.log(2.0) else errors.iterates_bound(gap)


def _least_by_step(b: Barrier) -> float:
    """Return Σ_h min m over the tuples of step h, which Σ m·d/q̂ cannot fall below."""
    table = np.full(b.held.shape, np.inf)
    table[b.held] = b.m
    return float(table.min(axis=(1, 2)).sum())
