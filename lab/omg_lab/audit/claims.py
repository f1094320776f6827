"""The claims of a decision, computed again from its model and its policy: nothing is taken on trust."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from omg_cmdp.mdp.bellman import best_response
from omg_cmdp.mdp.occupancy import flow, reachable_states
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.thresholds import NEGLIGIBLE
from omg_cmdp.planning import rounding
from omg_cmdp.planning.certificate import certificate, slacks
from omg_cmdp.planning.decision import Decision
from omg_cmdp.planning.plan import plan
from omg_cmdp.planning.solution import Solution
from omg_cmdp.theory.rounds import Round, mixed_policies
from omg_cmdp.validation import ROW_SUM_TOLERANCE, BoolArray, FloatArray
from omg_lab.audit.quantities import Barrier, ModelComparison
from omg_lab.audit.statements import Sides

REFERENCE = 1e-12
"""The tolerance of the plan that stands for the exact one."""
PRECISION = 1.0 / 16.0
"""The largest γ·ε that the paper's corollary admits."""
LEFT_OUT = 1e-12
"""Nothing is proven of a plan if π* is likelier than this in tuples that the barrier leaves out."""
ENOUGH = 1e-9
"""A certificate that cannot be computed again to within this is not proven."""

OF_BARRIERS = ("support", "weights", "occupancy", "certificate", "precision")
"""The claims of a decision with a barrier."""


def is_planned(decision: Decision) -> bool:
    """Return whether a decision claims to be a plan in the model of its oracles: of a barrier, or for gains."""
    parts = decision.weights, decision.occupancy, decision.values
    return decision.regulariser in ("log", "root") and (
        any(part is not None for part in parts) or not math.isnan(decision.certificate)
    )


def has_barrier(decision: Decision) -> bool:
    """Return whether a decision claims to be the plan of a barrier."""
    return decision.regulariser == "log" and is_planned(decision)


def of_the_play(this: Round) -> Iterator[Sides]:
    """Yield whether what was played is what was decided."""
    played, policy = this.played, this.decision.policy
    if played.propensities is None:
        return
    steps = np.arange(played.length)
    said = policy[steps, played.states[: played.length], played.actions[: played.length]]
    off = float(np.abs(said - played.propensities[: played.length]).max())
    policies, probabilities = mixed_policies(this.decision)
    drawn = np.abs(policies - policy).max(axis=(1, 2, 3))[probabilities > 0.0]
    yield "played", max(off, float(drawn.min(initial=np.inf)), mixture_defect(this.decision)), 0.0


def mixture_defect(decision: Decision) -> float:
    """Return by how much the policies of a mixture, or their probabilities, are no distributions.

    The policy that is played was checked before it was played; the others of a mixture were not.
    """
    if decision.mixture is None:
        return 0.0
    policies, probabilities = decision.mixture
    if not (np.isfinite(policies).all() and np.isfinite(probabilities).all()):
        return math.inf
    sums = max(abs(float(probabilities.sum()) - 1.0), float(np.abs(policies.sum(axis=-1) - 1.0).max()))
    return max(0.0, sums - ROW_SUM_TOLERANCE, -float(probabilities.min()), -float(policies.min()))


def model_defect(model: TabularMDP, truth: TabularMDP) -> float:
    """Return by how much the tables of a model break the rules of its space, or that space those of the truth's."""
    if model.horizon != truth.horizon or not np.array_equal(model.admissible, truth.admissible):
        return math.inf
    used = truth.admissible
    rows, rewards = model.transition_steps[:, used], model.reward_steps[:, used]
    if not (np.isfinite(rows).all() and np.isfinite(rewards).all()):
        return math.inf
    sums = np.abs(rows.sum(axis=-1) - 1.0).max() - ROW_SUM_TOLERANCE
    outside = max(-rows.min(), -rewards.min(), rewards.max() - 1.0)
    return max(float(sums), float(outside), float(np.abs(model.start - truth.start).max()), 0.0)


def reachable(model: TabularMDP) -> BoolArray:
    """Return Z (H, S, A): the tuples that are reachable in the model, and admissible."""
    return np.asarray(reachable_states(model)[:, :, None] & model.admissible)


def of_the_support(c: ModelComparison, decision: Decision, held: BoolArray) -> Iterator[Sides]:
    """Yield whether the plan is inside the barrier, and whether γ and w are those of one."""
    wrong = np.where(held, c.believed <= 0.0, c.believed > NEGLIGIBLE)
    claimed = decision.occupancy
    if claimed is not None and claimed.shape == held.shape:
        wrong |= np.where(held, ~(claimed > 0.0), ~(claimed <= NEGLIGIBLE))
    yield "support", float(wrong.sum()), 0.0
    w = weights_on(decision, held)
    yield "weights", float(not 0.0 < decision.gamma < math.inf) + float((~((w > 0.0) & (w < math.inf))).sum()), 0.0
    yield "occupancy", misfit_of_occupancy(c, decision, held), 0.0
    yield "precision", math.inf if math.isnan(decision.certificate) else decision.certificate, PRECISION


def misfit_of_occupancy(c: ModelComparison, decision: Decision, held: BoolArray) -> float:
    """Return by how much the occupancy that is claimed is not that of the policy; nan if none is claimed."""
    claimed = decision.occupancy
    if claimed is None:
        return math.nan
    return float(np.abs(c.believed - claimed)[held].max()) if claimed.shape == held.shape else math.inf


def weights_on(decision: Decision, held: BoolArray) -> FloatArray:
    """Return w over the tuples of Z; nan if the table does not fit."""
    if decision.weights is None:
        return np.ones(int(held.sum()))
    try:
        return np.asarray(np.broadcast_to(decision.weights, held.shape)[held], dtype=np.float64)
    except ValueError:
        return np.full(int(held.sum()), math.nan)


def barrier(decision: Decision, c: ModelComparison, held: BoolArray) -> Barrier | None:
    """Return the barrier of a decision over Z; None if it is not one: a weight or an occupancy is not positive."""
    w, q = weights_on(decision, held), c.believed[held]
    if not ((q > 0.0).all() and (w > 0.0).all() and (w < math.inf).all() and 0.0 < decision.gamma < math.inf):
        return None
    return Barrier(
        gamma=float(decision.gamma),
        plain=decision.weights is None,
        held=held,
        w=w,
        q=q,
        d=c.believed_best[held],
        certificate=float(decision.certificate) if decision.certificate >= 0.0 else math.inf,  # nan: nothing is claimed
    )


def of_the_certificate(
    c: ModelComparison, decision: Decision, b: Barrier | None, closer: Solution | None
) -> Iterator[Sides]:
    """Yield the gap of the policy, as a second plan and the dual values prove it, beside the certificate."""
    claimed = decision.certificate
    if b is None or closer is None:  # outside of the barrier the gap is infinite
        yield "certificate", math.inf if claimed < math.inf else math.nan, claimed
        return
    least, most = gap_between(c, b, closer)
    most += closer.certificate
    if len(c.policies) == 1 and decision.values is not None:
        # Values of another shape, or numbers beyond the range of floats, prove nothing.
        with contextlib.suppress(ValueError), np.errstate(all="ignore"):
            proof = certificate(c.model, c.policies[0], decision.values, gamma=b.gamma, weights=_whole(b))
            most = min(most, proof)
    # No plan exceeds the exact one: the gap to the closer plan is a lower bound, whatever that plan's own error.
    if least > claimed:
        yield "certificate", least, claimed
    else:
        shown = most <= claimed + ENOUGH * (1.0 + claimed)
        yield "certificate", min(most, claimed) if shown else math.nan, claimed


def of_gains(c: ModelComparison, decision: Decision) -> Iterator[Sides]:
    """Yield whether a plan for gains is that of its policy, and no further from the best than it says.

    With m = w/γ, V the optimal values for the rewards f̂ + m/q̂, no plan is better by more than V(start) - ⟨q̂, f̂ + m/q̂⟩.
    """
    q, everywhere = c.believed, np.ones(c.believed.shape, dtype=bool)
    yield "occupancy", misfit_of_occupancy(c, decision, everywhere), 0.0
    w = weights_on(decision, everywhere).reshape(q.shape)
    if not ((w >= 0.0) & (w < math.inf) & ((q > 0.0) | (w == 0.0))).all():
        yield "certificate", math.inf, decision.certificate
        return
    bonus = np.divide(w, decision.gamma * q, out=np.zeros(q.shape), where=w > 0.0)
    paid = c.model.reward_steps + bonus
    best = best_response(c.model, paid)[1][0] @ c.model.start
    yield "certificate", decision.gamma * float(best - (q * paid).sum()), decision.certificate


@np.errstate(all="ignore")  # of numbers beyond the range of floats nothing is known
def gap_between(c: ModelComparison, b: Barrier, closer: Solution) -> tuple[float, float]:
    """Return two numbers between which γ·(L(q') - L(q̂)) lies in exact arithmetic, q' the occupancy of the closer plan.

    In plain doubles γ·⟨q' - q̂, f̂⟩ is wrong by about γ·H·ε, which at γ = 1e6 exceeds an honest certificate many times.
    But for any values V with slacks z = V - f̂ - P̂V', and every occupancy measure q, ⟨q, f̂⟩ = V(start) - ⟨q, z⟩. With
    the dual values of the closer plan, x = γ·q̂·z and x' = γ·q'·z,

        γ·(L(q') - L(q̂)) = Σ x - x' + w·log(q'/q̂),

    and as z is about w/(γ·q'), all terms are about w, whatever γ is. Tuples outside of Z add what they add.

    *What rounding may have done.* q̂ and q' have relative errors of at most δ, z of δ_z (`planning/rounding.py` has
    both, and z is computed with twice the digits). For δ + δ_z <= ¼, x and x' are then wrong by at most 2·(δ + δ_z)
    times themselves, the logarithm by -2·log(1 - δ) <= 4δ, the few operations of a term by 16ε·(x + x' + w + w·|log|),
    and the sum of n terms by 2ε·(n + 16) times the sum of their sizes. Where less is known, nothing is.
    """
    mdp, values = c.model, closer.values * reachable_states(c.model)
    better, slack = closer.occupancy, slacks(mdp, values)
    drift = np.abs(np.concatenate([c.policies, closer.policy[None]]).sum(axis=3) - 1.0).max(axis=(0, 2))
    known = np.cumsum(rounding.of_occupancy(mdp.states, mdp.actions) + drift)[:, None, None]
    q, z = better[b.held], slack[b.held]
    if not ((q > 0.0) & (z > 0.0)).all():
        return -math.inf, math.inf
    of_slack = rounding.of_slack(mdp.states) * values[:, :, None] + rounding.TINY
    delta, lost = (np.broadcast_to(each, b.held.shape)[b.held] for each in (known, of_slack))
    delta_z = lost / z
    if not (delta + delta_z <= 0.25).all():
        return -math.inf, math.inf
    x, other, logs = b.gamma * b.q * z, b.gamma * q * z, b.w * np.log(q / b.q)
    sizes = x + other + np.abs(logs)
    total = float((x - other + logs).sum())
    error = (x + other + b.w) * (4.0 * delta + 2.0 * delta_z + rounding.OF_TERM) + rounding.OF_TERM * np.abs(logs)
    outside = b.gamma * float((np.abs(slack) * (c.believed + better))[~b.held].sum())
    around = float(error.sum()) + (rounding.of_sum(len(q)) - 1.0) * float(sizes.sum()) + outside
    return (total - around, total + around) if math.isfinite(around) else (-math.inf, math.inf)


def closer_plan(c: ModelComparison, b: Barrier) -> Solution:
    """Return the plan for the same γ and w, to a tolerance that stands for exact."""
    found = plan(c.model, b.gamma, weights=_whole(b), tolerance=REFERENCE)
    # As that of π is computed: the planner's own leaves out what passes through states that count as unreachable.
    return dataclasses.replace(found, occupancy=flow(c.model, found.policy)[0])


def _whole(b: Barrier) -> FloatArray | None:
    """Return w as a table (H, S, A); entries outside the barrier may be anything."""
    if b.plain:
        return None
    table = np.ones(b.held.shape)
    table[b.held] = b.w
    return table
