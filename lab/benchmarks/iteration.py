"""What one iteration costs beside the BLAS and LAPACK calls it cannot avoid, for the same shapes, on one thread.

The Newton matrix is block tridiagonal in the steps. With one start state the first step is a single unknown, so that
H - 1 blocks of size S remain: H - 1 Cholesky factors, and H - 2 times the product PᵀDP of all rows, the solve with the
coupling block and the product subtracted from the next block. Nothing is counted for the first step, nor for the
solves with a single right-hand side: the comparison is a strict one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import threadpoolctl
from scipy.linalg import blas, lapack

from omg_cmdp import TabularMDP, plan

from .report import Report, Row
from .timing import GAMMA, TOLERANCE, clock, interleave, medians, random_mdp

SIZES = ((20, 50, 5), (20, 100, 5), (10, 200, 4))


def iteration_cost(*, quick: bool) -> Report:
    """Divide plan time by iterations, and that by the bare calls; set-up and certificate count as the plan's own."""
    rows, details = [], []
    for horizon, states, actions in SIZES:
        mdps = [random_mdp(horizon, states, actions, seed) for seed in range(3)]

        def plans(mdps: list[TabularMDP] = mdps) -> int:
            return sum(plan(mdp, GAMMA, tolerance=TOLERANCE).iterations for mdp in mdps)

        iterations = plans()
        with threadpoolctl.threadpool_limits(1, user_api="blas"):
            time = medians(
                interleave(
                    5 if quick else 21,
                    clock("plans", plans),
                    clock("bare", bare_calls(horizon, states, actions)),
                )
            )
        ratio = time["plans"] / iterations / time["bare"]
        rows.append(Row(f"({horizon},{states},{actions}) an iteration / bare calls", ratio, at_most=2))
        details.append({"size": [horizon, states, actions], "iterations": iterations, "median": time, "ratio": ratio})
    return Report(title="One iteration beside the BLAS/LAPACK calls it cannot avoid", rows=rows, details=details)


def bare_calls(horizon: int, states: int, actions: int) -> Callable[[], None]:
    """Return a function that makes the calls of one factorisation, in place and without copies."""
    rows = np.asfortranarray(np.random.default_rng(0).random((states, states * actions)))
    products = [np.zeros((states, states), order="F") for _ in range(horizon)]
    # The identity is its own Cholesky factor and leaves a right-hand side as it is: every call can be repeated in place
    # without overflow, and without a copy that would count as work. BLAS does not skip zeros.
    blocks = [np.asfortranarray(np.eye(states)) for _ in range(horizon)]
    couplings = [np.asfortranarray(rows[:, :states] / states) for _ in range(horizon)]

    def calls() -> None:
        for h in range(1, horizon):
            lapack.dpotrf(blocks[h], lower=0, clean=0, overwrite_a=1)
            if h < horizon - 1:
                blas.dsyrk(1.0, rows, beta=0.0, c=products[h], overwrite_c=1)
                blas.dtrsm(1.0, blocks[h], couplings[h], side=1, overwrite_b=1)
                blas.dsyrk(-1.0, couplings[h], beta=1.0, c=products[h], overwrite_c=1)

    return calls
