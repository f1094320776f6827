"""What the planner costs, beside cvxpy with Clarabel and beside bare BLAS: `python -m benchmarks`, or `make bench`."""
