"""What a decision within budgets claims, and what follows for it (docs/budgets.md), computed again from its model."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from omg_cmdp.mdp.budgets import MET
from omg_cmdp.planning.budgets import ALLOWED
from omg_cmdp.planning.certificate import certificate
from omg_cmdp.planning.solution import Status
from omg_cmdp.theory.budgets import priced_round
from omg_cmdp.theory.rounds import Round
from omg_lab.audit import claims
from omg_lab.audit.quantities import ModelComparison
from omg_lab.audit.statements import Sides

BARRIER = "log within budgets"
"""What a decision says that is the plan of a barrier within its budgets."""
KEPT = {Status.SOLVED: MET, Status.NO_INTERIOR: ALLOWED, Status.CAUTIOUS: MET}
"""By how much a decision with this status may exceed a budget in its model, relative to the horizon."""


def of_the_budgets(this: Round, c: ModelComparison) -> Iterator[Sides]:
    """Yield whether a decision keeps its budgets in the model, is the plan that it says, and what this proves."""
    decision, actual = this.decision, this.truth.limits
    limits, status = decision.limits, decision.status
    if limits is None or status not in KEPT:
        return
    excess = float((limits.spent(c.believed) - limits.limits).max())
    yield "budget", excess, 4.0 * KEPT[status] * c.horizon
    if decision.regulariser != BARRIER or decision.prices is None or decision.values is None:
        return
    held = claims.reachable(c.model)
    b = claims.barrier(decision, c, held)
    proof = math.inf
    if b is not None:
        options: dict[str, Any] = {
            "gamma": b.gamma,
            "weights": decision.weights,
            "budgets": limits,
            "prices": decision.prices,
        }
        with contextlib.suppress(ValueError), np.errstate(all="ignore"):
            proof = certificate(c.model, c.policies[0], decision.values, **options)
    yield "budget certificate", proof, decision.certificate * (1.0 + claims.ENOUGH) + claims.ENOUGH
    if b is None or actual is None or float(c.believed_best[~held].sum()) > claims.LEFT_OUT:
        yield "Theorem H", math.nan, math.nan
        return
    weights = np.zeros(held.shape)
    weights[held] = b.m
    sides = (this.truth.mdp, actual), (c.model, limits)
    right = priced_round(*sides, decision.prices, weights, c.policies[0], this.truth.best[0])
    yield "Theorem H", this.regret, right + b.defect
