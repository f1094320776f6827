"""`make fuzz`: tens of thousands of random problems, every certificate within tolerance and checked a second time."""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np

from library.tests.planning.problems import PROBLEMS, duality_gap
from omg_cmdp import Status


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
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
