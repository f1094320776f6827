"""Small plans against cvxpy with Clarabel, within cvxpy's own accuracy."""

import numpy as np
import pytest

from library.tests.planning.peer import solve_by_peer
from library.tests.planning.problems import barrier_problem, root_problem


def objective(problem, occupancy):
    """Return ⟨q, r⟩ + Σ φ(q), over the tuples that `occupancy` reaches."""
    q = occupancy[occupancy > 0.0]
    rewards = np.broadcast_to(problem.mdp.reward_steps, occupancy.shape)
    table = problem.uncertainty if problem.gamma is None else problem.weights
    c = np.broadcast_to(1.0 if table is None else table, occupancy.shape)[occupancy > 0.0]
    extra = np.sqrt(c * q) if problem.gamma is None else c * np.log(q) / problem.gamma
    return (occupancy * rewards).sum() + extra.sum()


@pytest.mark.parametrize("make", [barrier_problem, root_problem])
@pytest.mark.parametrize("kernel", ["dense", "deterministic", "sparse"])
def test_the_plan_is_at_least_as_good_and_the_same(make, kernel, rng):
    for _ in range(2):
        problem = make(rng, states=4, actions=3, horizon=4, kernel=kernel)
        if problem.gamma is not None and not 1.0 <= problem.gamma <= 1e3:
            problem = type(problem)(mdp=problem.mdp, gamma=30.0, weights=problem.weights, tolerance=problem.tolerance)
        ours = problem.plan()
        peer = solve_by_peer(problem.mdp, problem.gamma, weights=problem.weights, uncertainty=problem.uncertainty)
        scale = 1.0 + abs(peer.objective)
        assert objective(problem, ours.occupancy) >= peer.objective - 1e-6 * scale
        if problem.uncertainty is None or np.min(problem.uncertainty) > 0.0:  # else the optimum is not unique
            np.testing.assert_allclose(ours.occupancy, peer.occupancy, atol=2e-3)
