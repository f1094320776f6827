"""The peer: the planner's concave program written in cvxpy and solved by Clarabel, as a user would do it.

    max ⟨q, r⟩ + (1/γ)·Σ w·log q    or    max ⟨q, r⟩ + Σ √(u·q)

over occupancy measures, one unknown for each reachable and admissible (h, s, a).
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from omg_cmdp.mdp import TabularMDP
from omg_cmdp.mdp.occupancy import reachable_states
from omg_cmdp.validation import BoolArray, FloatArray


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class PeerSolution:
    """The peer's answer and its cost: `total` seconds from the tables on, `solve` of them by Clarabel's own clock."""

    policy: FloatArray
    occupancy: FloatArray
    objective: float
    status: str
    iterations: int
    total: float
    solve: float


def solve_by_peer(
    mdp: TabularMDP,
    gamma: float | None = None,
    *,
    weights: ArrayLike | None = None,
    uncertainty: ArrayLike | None = None,
    floor: float = 0.0,
    costs: ArrayLike = (),
    budgets: ArrayLike = (),
    stacked: bool = False,
    **settings: Any,
) -> PeerSolution:
    """Build and solve the program; the arguments are those of `plan`, `settings` go to Clarabel.

    Each step has a variable and a flow equation, as one writes it down; `stacked` makes one sparse equation of all:
    more for the user to write, less for cvxpy to compile.
    """
    began = time.perf_counter()
    support = reachable_states(mdp)[:, :, None] & mdp.admissible
    flow, inflow = _flow(mdp, support)
    if stacked:
        flow, inflow = [[sp.block_array(flow, format="csr")]], [np.concatenate(inflow)]
    variables: list[Any] = [cp.Variable(flow[k][k].shape[1]) for k in range(len(flow))]
    equations = [
        sum(block @ q for block, q in zip(row, variables, strict=True) if block is not None) == right
        for row, right in zip(flow, inflow, strict=True)
    ]
    if uncertainty is None:
        concave, table = "log", np.asarray(1.0 if weights is None else weights) / gamma
    else:
        concave, table = "sqrt", np.sqrt(np.asarray(uncertainty))
    linear = zip(_split(mdp.rewards, support, stacked), variables, strict=True)
    regulariser = zip(_split(table, support, stacked), variables, strict=True)
    objective = sum(r @ q for r, q in linear) + sum(c @ getattr(cp, concave)(q) for c, q in regulariser)
    if floor > 0.0:
        objective += floor * sum(cp.sum(cp.log(q)) for q in variables)
    for table, budget in zip(np.asarray(costs), np.asarray(budgets), strict=True):
        split = zip(_split(table, support, stacked), variables, strict=True)
        equations.append(sum(c @ q for c, q in split) <= budget)
    problem: Any = cp.Problem(cp.Maximize(objective), equations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `status` tells of an inaccurate solution
        problem.solve(solver=cp.CLARABEL, **settings)
    for q in variables:
        if q.value is None:
            raise ArithmeticError(f"Clarabel found nothing: {problem.status}")
        q.value = q.value.clip(min=0.0)  # an interior point may end a rounding error below 0
    occupancy = np.zeros(support.shape)
    occupancy[support] = np.concatenate([q.value for q in variables])
    total = time.perf_counter() - began
    return PeerSolution(
        policy=_policy(mdp, occupancy),
        occupancy=occupancy,
        objective=float(problem.objective.value),
        status=problem.status,
        iterations=problem.solver_stats.num_iters,
        total=total,
        solve=problem.solver_stats.solve_time,
    )


def _flow(mdp: TabularMDP, support: BoolArray) -> tuple[list[list[Any]], list[FloatArray]]:
    """Return blocks and right-hand side of  Σ_a q_h(s', a) - Σ_{s,a} P(s'|s, a)·q_{h-1}(s, a) = [h = 0]·start(s')."""
    blocks: list[list[Any]] = [[None] * mdp.horizon for _ in range(mdp.horizon)]
    inflow = []
    for h in range(mdp.horizon):
        here = support[h].any(axis=1)
        blocks[h][h] = sp.csr_array(np.eye(mdp.states)[here][:, np.nonzero(support[h])[0]])
        if h > 0:
            blocks[h][h - 1] = -mdp.transition_steps[(h - 1) % len(mdp.transition_steps)][support[h - 1]].T[here]
        inflow.append(mdp.start[here] if h == 0 else np.zeros(here.sum()))
    return blocks, inflow


def _split(table: ArrayLike, support: BoolArray, stacked: bool) -> list[FloatArray]:
    """Return the entries of `table` that belong to each variable."""
    full = np.broadcast_to(np.asarray(table, dtype=np.float64), support.shape)
    return [full[support]] if stacked else [step[mask] for step, mask in zip(full, support, strict=True)]


def _policy(mdp: TabularMDP, occupancy: FloatArray) -> FloatArray:
    """Return q(s, a)/Σ_a q(s, a), uniform over the admissible actions where no mass arrives."""
    mass = occupancy.sum(axis=2, keepdims=True)
    uniform = np.broadcast_to(mdp.admissible / mdp.admissible.sum(axis=1, keepdims=True), occupancy.shape)
    return np.asarray(np.divide(occupancy, mass, out=uniform.copy(), where=mass > 0.0))
