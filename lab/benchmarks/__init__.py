"""What the planner costs, beside cvxpy with Clarabel and beside bare BLAS: `make bench`."""
