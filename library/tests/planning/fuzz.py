"""`make fuzz`: tens of thousands of random problems, every certificate within tolerance and checked a second time."""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np

from library.tests.planning.problems import (
    KINDS_OF_BUDGETS,
    PROBLEMS,
    budget_problem,
    duality_gap,
    largest_costs,
    spent,
)
from omg_cmdp import Status, certificate
from omg_cmdp.mdp import reachable_states
from omg_cmdp.planning import least_excess


def fuzz(make, count, first_seed=0):
    """Solve `count` problems; return the seeds that failed, with what was wrong, and the iterations of all."""
    failures, iterations = [], []
    for seed in range(first_seed, first_seed + count):
        problem = make(np.random.default_rng(seed))
        solution = problem.plan()
        iterations.append(solution.iterations)
        # The two computations may differ by rounding, which at γ = 1e6 is some 1e-10 of the objective.
        gap = duality_gap(problem, solution)
        if solution.status is not Status.SOLVED or not solution.certificate <= problem.tolerance:
            failures.append((seed, f"{solution.status.name}, certificate {solution.certificate:.2e}"))
        elif not gap <= 1.01 * problem.tolerance:
            failures.append((seed, f"certificate {solution.certificate:.2e}, but the gap is {gap:.2e}"))
    return failures, iterations


EXPECTED = {"interior": "SOLVED", "loose": "SOLVED", "infeasible": "INFEASIBLE"}
"""What the status must be; for budgets with no room at all SOLVED or NO_INTERIOR, or STALLED with a certificate that is
within a hundred times the tolerance."""


def fuzz_budgets(count, first_seed=0, peer=None):
    """Plan `count` problems within budgets; return the seeds that failed, with what was wrong, and the statuses.

    `peer`, if given, returns its optimum of a problem and by how much that exceeds the budgets, or None if it has none.
    """
    failures, statuses = [], Counter()
    for seed in range(first_seed, first_seed + count):
        kind = KINDS_OF_BUDGETS[seed % len(KINDS_OF_BUDGETS)]
        problem = budget_problem(np.random.default_rng(seed), kind)
        solution = problem.plan()
        statuses[kind, solution.status.name] += 1
        wrong = wrong_with(problem, solution, peer)
        if (
            solution.status is Status.STALLED
            and kind not in EXPECTED
            and solution.certificate <= 100 * problem.tolerance
        ):
            continue
        if solution.status.name not in EXPECTED.get(kind, "SOLVED NO_INTERIOR"):
            wrong = f"{solution.status.name}, certificate {solution.certificate:.2e}"
        if wrong:
            failures.append((seed, f"{kind}: {wrong}"))
    return failures, statuses


def wrong_with(problem, solution, peer=None):
    """Return what is wrong with a plan within budgets, or None."""
    mdp, limits = problem.mdp, {"costs": problem.costs, "budgets": problem.budgets}
    if solution.status is Status.INFEASIBLE:
        proven = least_excess(mdp, **limits, prices=solution.prices) > 0.0
        return None if proven else "said to be infeasible, without proof"
    regular = {name: getattr(problem, name) for name in ("gamma", "weights", "uncertainty", "floor")}
    again = certificate(mdp, solution.policy, solution.values, **regular, **limits, prices=solution.prices)
    over = (spent(mdp, solution.policy, problem.costs) - problem.budgets) / largest_costs(mdp, problem.costs)
    if not again <= 1.001 * problem.tolerance:
        return f"recomputed certificate {again:.2e}"
    if not over.max() <= (1e-12 if solution.status is Status.SOLVED else 1e-7):
        return f"a budget is exceeded by {over.max():.2e} of the largest cost"
    found = None if peer is None else peer(problem)
    if found is None:
        return None
    # The peer may exceed a budget by rounding, which is worth at most its price.
    best, reached = found[0] - solution.prices @ np.maximum(found[1], 0.0), objective(problem, solution.occupancy)
    if not reached >= best - 1e-5 * (1.0 + abs(best)):
        return f"the peer reached {best:.9g}, the plan {reached:.9g}"
    return None


def objective(problem, occupancy):
    """Return ⟨q, r⟩ + Σ φ(q), over the reachable, admissible tuples; -inf if a barrier is."""
    held = reachable_states(problem.mdp)[:, :, None] & problem.mdp.admissible
    q, u = occupancy[held], 0.0 if problem.uncertainty is None else problem.uncertainty
    m = (
        problem.floor
        if problem.gamma is None
        else (1.0 if problem.weights is None else problem.weights) / problem.gamma
    )
    u, m = (np.broadcast_to(each, occupancy.shape)[held] for each in (u, m))
    logs = np.log(q, out=np.full(q.shape, -np.inf), where=q > 0.0)
    return (occupancy * problem.mdp.reward_steps).sum() + (
        np.sqrt(u * q) + np.multiply(m, logs, out=np.zeros(q.shape), where=m > 0.0)
    ).sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=20_000, help="problems of each kind")
    parser.add_argument("--first-seed", type=int, default=0)
    arguments = parser.parse_args()
    failed = 0
    for make in PROBLEMS:
        began = time.perf_counter()
        failures, iterations = fuzz(make, arguments.count, arguments.first_seed)
        failed += len(failures)
        median, high = np.percentile(iterations, [50, 99])
        print(
            f"{make.__name__}: {arguments.count} problems, {len(failures)} failures; iterations: median {median:.0f}, "
            f"99 % within {high:.0f}, most {max(iterations)}; {time.perf_counter() - began:.0f} s",
            flush=True,
        )
        for seed, reason in failures[:20]:
            print(f"  seed {seed}: {reason}")
        if len(failures) > 20:
            print(f"  and {Counter(reason.split(',')[0] for _, reason in failures[20:])}")
    count = arguments.count // 5
    failures, statuses = fuzz_budgets(count, arguments.first_seed)
    print(f"budgets: {count} problems, {len(failures)} failures; {dict(statuses)}")
    for seed, reason in failures[:20]:
        print(f"  seed {seed}: {reason}")
    raise SystemExit(failed + len(failures) > 0)


if __name__ == "__main__":
    main()
