"""A plan with the root regulariser, and a plan from a warm start, each beside the plain barrier plan of its size."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from omg_cmdp import Solution, TabularMDP, plan

from .planner import CASES, Case
from .report import Report, Row
from .timing import GAMMA, TOLERANCE, clock, interleave, medians, random_mdp

MOVES = (0.001, 0.01, 0.1, 1.0)
"""How far the problem moves between the earlier plan and the one that starts from it: the share of new tables in it."""


def root_regulariser(*, quick: bool) -> Report:
    """Compare max ⟨q, r⟩ + Σ √(u·q) with the barrier, both to the same gap; u is log-uniform in [1e-4, 1]."""
    rows, details = [], []
    for case in CASES:
        ratios, instances = [], []
        for seed in range(3 if quick else 9):
            one = _pair(_barrier(case, seed), _root(case, seed), quick=quick)
            ratios.append(one["ratio"])
            instances.append(one)
        rows.append(Row(f"{case.name} root / barrier", statistics.median(ratios), at_most=3))
        details.append({"case": case.name, "instances": instances})
    return Report(title="A plan with the root regulariser, relative to a barrier plan", rows=rows, details=details)


def warm_start(*, quick: bool) -> Report:
    """Compare a plan that starts from the plan of a nearby problem with the same plan from nothing."""
    rows, details = [], []
    for case in CASES:
        for share in MOVES:
            instances = [
                _pair(_barrier(case, seed), _warm(case, seed, share), quick=quick) for seed in range(3 if quick else 9)
            ]
            ratio = statistics.median(one["ratio"] for one in instances)
            # The promise is to help when the problem moved little; farther away it only must not hurt the answer.
            rows.append(Row(f"{case.name} warm / cold, moved by {share:g}", ratio, at_most=1 if share < 0.01 else None))
            details.append({"case": case.name, "moved": share, "instances": instances})
    return Report(title="A plan from a warm start, relative to one from nothing", rows=rows, details=details)


def _pair(base: Callable[[], Solution], other: Callable[[], Solution], *, quick: bool) -> dict[str, Any]:
    time = medians(interleave(3 if quick else 5, clock("base", base), clock("other", other)))
    one, two = base(), other()
    return {
        "seconds": [time["base"], time["other"]],
        "ratio": time["other"] / time["base"],
        "iterations": [one.iterations, two.iterations],
        "certificates": [one.certificate, two.certificate],
        "statuses": [one.status.name, two.status.name],
    }


def _barrier(case: Case, seed: int) -> Callable[[], Solution]:
    mdp = random_mdp(case.horizon, case.states, case.actions, seed)
    return lambda: plan(mdp, GAMMA, tolerance=TOLERANCE)


def _root(case: Case, seed: int) -> Callable[[], Solution]:
    mdp = random_mdp(case.horizon, case.states, case.actions, seed)
    unsure = 10.0 ** np.random.default_rng(seed).uniform(-4.0, 0.0, (case.states, case.actions))
    # The barrier's certificate is γ times its gap, this one is the gap itself.
    return lambda: plan(mdp, uncertainty=unsure, tolerance=TOLERANCE / GAMMA)


def _warm(case: Case, seed: int, share: float) -> Callable[[], Solution]:
    size = (case.horizon, case.states, case.actions)
    mdp, far = random_mdp(*size, seed), random_mdp(*size, seed + 1000)
    near = TabularMDP(
        transitions=(1 - share) * mdp.transitions + share * far.transitions,
        rewards=(1 - share) * mdp.rewards + share * far.rewards,
        horizon=case.horizon,
    )
    earlier = plan(near, GAMMA, tolerance=TOLERANCE)
    return lambda: plan(mdp, GAMMA, tolerance=TOLERANCE, start=earlier)
