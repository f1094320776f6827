"""`plan`: the policy of one episode, from one concave program over occupancy measures; `plan_many`: a batch of them.

    plan(mdp, gamma=γ, weights=w)     max ⟨q, r⟩ + (1/γ)·Σ w·log q     (w = 1: line 8 of OMG-CMDP!, Levy et al. 2023)
    plan(mdp, uncertainty=u, floor=m) max ⟨q, r⟩ + Σ √(u·q) + m·Σ log q

The sums run over the reachable, admissible (h, s, a). With costs and budgets, subject to ⟨q, c_j⟩ <= b_j.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from omg_cmdp import validation
from omg_cmdp.jit import Lazy, one_thread
from omg_cmdp.mdp.budgets import Budgets, checked_budgets
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.planning.budgets import plan_within
from omg_cmdp.planning.regularisers import regulariser
from omg_cmdp.planning.solution import Solution, Status, as_solution
from omg_cmdp.validation import FloatArray

solver = Lazy("omg_cmdp.planning.solver.solve")
hard = Lazy("omg_cmdp.planning.solver.hard")
sparse = Lazy("omg_cmdp.planning.solver.sparse")
tuples = Lazy("omg_cmdp.planning.solver.tuples")

SPARSE_FROM, SPARSE_BELOW = 48, 0.25
"""Sparse rows pay from this many states on, below this share of non-zeros (measured)."""

_NO_ROWS = (np.empty((0, 0, 0), np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
_NO_POLICY = np.empty((0, 0, 0))
_ANY_THREADS = contextlib.nullcontext()


def plan(
    mdp: TabularMDP,
    gamma: float | None = None,
    *,
    weights: ArrayLike | None = None,
    uncertainty: ArrayLike | None = None,
    floor: float = 0.0,
    costs: ArrayLike | None = None,
    budgets: ArrayLike | Budgets | None = None,
    tolerance: float = 1e-9,
    start: Solution | None = None,
) -> Solution:
    """Return the policy that maximises reward plus regulariser, with a certificate of its optimality.

    A plan runs on one thread, so that its bits do not depend on the machine's load.

    Parameters
    ----------
    mdp : TabularMDP
        The model.
    gamma : float, optional
        γ > 0 of the barrier. Give either this or `uncertainty`.
    weights : array (S, A) or (H, S, A), optional
        The positive weights w of the barrier; by default all 1.
    uncertainty : array (S, A) or (H, S, A), optional
        u >= 0, of the regulariser Σ √(u·q).
    floor : float, default 0
        The weight m of a barrier beside `uncertainty`.
    costs : array (J, S, A) or (J, H, S, A), optional
        What decisions cost, J <= 8 kinds of cost, any numbers.
    budgets : array (J,), optional
        What an episode may cost in expectation. A budget is met if the cost exceeds it by at most 1e-12 of the horizon
        times the largest cost; one that the plan without budgets meets changes nothing.
    tolerance : float, default 1e-9
        What the plan is certified to: γ times the gap for the barrier (the paper asks for 1/(16T)), the gap itself with
        uncertainty.
    start : Solution, optional
        An earlier solution of the same shape. It saves time if the problem changed little, and never costs accuracy.

    Returns
    -------
    Solution
        The plan; its `status` says whether the tolerance was reached.

    Examples
    --------
    >>> from omg_cmdp import TabularMDP, plan
    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[1.0, 0.0]]), horizon=1)
    >>> plan(mdp, gamma=1.0).policy.round(3)  # inverse gap weighting: 1/(λ + γ·gap)
    array([[[0.618, 0.382]]])
    >>> plan(mdp, gamma=1.0, costs=[[[1.0, 0.0]]], budgets=[0.3]).policy.round(3)  # the first action costs 1
    array([[[0.3, 0.7]]])
    """
    validation.instance_of("mdp", mdp, TabularMDP)
    roots, barrier, scale = regulariser(mdp, gamma, weights, uncertainty, floor)
    given = checked_budgets(mdp, costs, budgets)
    tolerance = validation.positive_number("tolerance", tolerance)
    earlier = _NO_POLICY if start is None else _earlier_policy(mdp, start)

    transitions, rewards, first, mask = mdp.raw
    horizon, states, rows = mdp.space.horizon, mdp.space.states, _NO_ROWS
    if states >= SPARSE_FROM and np.count_nonzero(transitions) < SPARSE_BELOW * transitions.size:
        rows = sparse.sparse_rows(transitions, mask)
    program = transitions, *rows, rewards, first, mask, horizon, roots, barrier
    # Half of the tolerance is for the loop; the rest absorbs what recomputing the pair changes.
    aim = 0.5 * tolerance / scale
    with one_thread() if states >= tuples.BLAS_FROM else _ANY_THREADS:
        if given is not None:
            solution = plan_within(mdp, given, program, scale, tolerance, earlier, start)
        else:
            found = solver.solve(*program, aim, earlier)
            if found[-1] == solver.HARD:
                found = hard.solve_hard(*program, aim, earlier)
            solution = as_solution(found, scale, tolerance)
    if start is not None and solution.status is Status.STALLED:
        regular: dict[str, Any] = {"weights": weights, "uncertainty": uncertainty, "floor": floor}
        cold = plan(mdp, gamma, **regular, costs=costs, budgets=budgets, tolerance=tolerance)
        return min(solution, cold, key=lambda either: either.certificate)
    return solution


def plan_many(
    mdps: Iterable[TabularMDP], gamma: float | None = None, *, workers: int | None = None, **options: Any
) -> list[Solution]:
    """Plan for every MDP on all cores, and return the solutions in order; they are those of `plan`, bit for bit.

    Parameters
    ----------
    mdps : iterable of TabularMDP
        The models.
    gamma : float, optional
        As `plan` takes it.
    workers : int, optional
        Number of threads; by default that of the cores.
    **options
        What else `plan` takes, the same for all: `weights` or `uncertainty`, `floor`, `costs` and `budgets`,
        `tolerance`, `start`.

    Examples
    --------
    >>> mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=np.array([[1.0, 0.0]]), horizon=1)
    >>> [solution.status.name for solution in plan_many([mdp, mdp], gamma=2.0, workers=1)]
    ['SOLVED', 'SOLVED']
    """
    batch = validation.listed("mdps", mdps)
    threads = (os.cpu_count() or 1) if workers is None else validation.positive_integer("workers", workers)
    threads = min(len(batch), threads)
    if threads <= 1:
        return [plan(mdp, gamma, **options) for mdp in batch]
    # Compiled code releases the GIL. Chunks, because a small plan takes less time than handing it to a thread.
    size = max(1, min(32, len(batch) // (4 * threads)))
    chunks = [batch[i : i + size] for i in range(0, len(batch), size)]
    with one_thread(), concurrent.futures.ThreadPoolExecutor(threads) as pool:
        done = pool.map(lambda chunk: [plan(mdp, gamma, **options) for mdp in chunk], chunks)
        return [solution for chunk in done for solution in chunk]


def _earlier_policy(mdp: TabularMDP, start: Solution) -> FloatArray:
    validation.instance_of("start", start, Solution)
    policy = validation.float_table("start.policy", start.policy)
    validation.one_of_shapes("start.policy", policy, (mdp.horizon, mdp.states, mdp.actions))
    return policy
