"""Plans within budgets: closed forms, certificates, metamorphic relations, and what is said where none can be."""

import dataclasses
import warnings

import cvxpy
import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.planning.fuzz import fuzz_budgets, objective
from library.tests.planning.peer import solve_by_peer
from library.tests.planning.problems import barrier_problem, budget_problem, largest_costs, spent
from library.tests.random_mdps import random_mdp
from omg_cmdp.mdp.bellman import best_response
from omg_cmdp.planning import least_excess


def peer(problem):
    """Return the optimum that Clarabel finds, and by how much it exceeds the budgets; None where it doubts it."""
    names = ("gamma", "weights", "uncertainty", "floor", "costs", "budgets")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it takes logarithms of what it left at 0
            found = solve_by_peer(problem.mdp, **{name: getattr(problem, name) for name in names}, stacked=True)
    except (ArithmeticError, ValueError, cvxpy.error.SolverError):
        return None
    exceeds = spent(problem.mdp, found.policy, problem.costs) - problem.budgets
    met = (exceeds <= 1e-9 * largest_costs(problem.mdp, problem.costs)).all()
    reached = objective(problem, omg.occupancy_measure(problem.mdp, found.policy))
    return (reached, exceeds) if found.status == "optimal" and met else None


def test_random_budgets_are_kept_and_certified_or_refuted(seed):
    failures, statuses = fuzz_budgets(100, first_seed=1_000_000 * (seed + 1))
    assert not failures
    assert {name for _, name in statuses} == {"SOLVED", "INFEASIBLE", "NO_INTERIOR"}


@pytest.mark.slow
def test_three_thousand_problems_against_cvxpy():
    failures, _ = fuzz_budgets(3000, peer=peer)
    assert not failures


def bound_problem(rng, share=0.5):
    """Return a problem with a budget that binds, between the cheapest cost and that of the plan without it."""
    while True:
        problem = barrier_problem(rng, states=4, actions=3, horizon=4, kernel="dense", rewards="uniform", masked=False)
        problem = dataclasses.replace(problem, gamma=50.0, weights=None, tolerance=1e-9)
        costs = rng.random((1, 4, 3))
        least = -problem.mdp.start @ best_response(problem.mdp, -costs)[1][0]
        free = spent(problem.mdp, problem.plan().policy, costs)
        if free[0] - least > 0.05:
            return dataclasses.replace(problem, costs=costs, budgets=least + share * (free - least))


def test_one_step_has_a_closed_form(rng):
    """H = 1, one state, one budget: q_a = 1/(ν + γ·(λ·c_a - r_a)) with the two sums right."""
    rewards, costs = rng.random((1, 5)), rng.random((1, 1, 5))
    mdp = omg.TabularMDP(transitions=np.ones((1, 5, 1)), rewards=rewards, horizon=1)
    budget = [0.5 * costs.min() + 0.5 * (omg.plan(mdp, 20.0).policy[0, 0] * costs).sum()]
    plan = omg.plan(mdp, 20.0, costs=costs, budgets=budget, tolerance=1e-13)
    assert plan.costs == pytest.approx(budget, abs=1e-12)
    assert plan.prices[0] > 0.0
    inverse = 1.0 / plan.policy[0, 0] - 20.0 * (plan.prices[0] * costs[0, 0] - rewards[0])
    np.testing.assert_allclose(inverse, inverse[0], rtol=1e-5)


@pytest.mark.parametrize("regulariser", [{"gamma": 80.0}, {"uncertainty": np.full((5, 3), 0.01), "floor": 1e-3}])
def test_a_budget_that_does_not_bind_changes_no_bit(regulariser, rng):
    mdp = random_mdp(rng, states=5, actions=3, horizon=4)
    free = omg.plan(mdp, **regulariser)
    kept = omg.plan(mdp, **regulariser, costs=rng.random((2, 5, 3)), budgets=[4.0, 5.0])
    np.testing.assert_array_equal(kept.policy, free.policy)
    np.testing.assert_array_equal(kept.values, free.values)
    assert (kept.certificate, kept.iterations) == (free.certificate, free.iterations)
    np.testing.assert_array_equal(kept.prices, 0.0)


def test_prices_bound_what_another_budget_is_worth(rng):
    """L is concave in b with slope λ: λ(b')·(b' - b) <= L(b') - L(b) <= λ(b)·(b' - b)."""
    for _ in range(5):
        problem = bound_problem(rng)
        more = dataclasses.replace(problem, budgets=problem.budgets + rng.uniform(-0.02, 0.02))
        (low, first), (high, second) = ((objective(p, s.occupancy), s) for p in (problem, more) for s in [p.plan()])
        moved = float(more.budgets[0] - problem.budgets[0])
        slack = 2.0 * problem.tolerance / problem.gamma + 1e-12
        assert second.prices[0] * moved - slack <= high - low <= first.prices[0] * moved + slack


@pytest.mark.parametrize("factor", [1e-9, 4.0, 3e7])
def test_cost_and_budget_scale_together(factor, rng):
    problem = bound_problem(rng)
    scaled = dataclasses.replace(problem, costs=factor * problem.costs, budgets=factor * problem.budgets)
    first, second = problem.plan(), scaled.plan()
    np.testing.assert_allclose(second.policy, first.policy, rtol=1e-4)
    assert second.prices * factor == pytest.approx(first.prices, rel=1e-4)
    assert second.status is omg.Status.SOLVED


def test_the_certificate_refuses_what_does_not_prove(rng):
    problem = bound_problem(rng)
    plan = problem.plan()
    given = {"gamma": problem.gamma, "costs": problem.costs, "budgets": problem.budgets}
    proven = omg.certificate(problem.mdp, plan.policy, plan.values, **given, prices=plan.prices)
    assert proven == pytest.approx(plan.certificate, rel=1e-3, abs=1e-12)
    assert not omg.certificate(problem.mdp, plan.policy, plan.values, **given, prices=1.01 * plan.prices) <= 1e-9
    free = omg.plan(problem.mdp, problem.gamma)
    assert omg.certificate(problem.mdp, free.policy, free.values, **given, prices=[0.0]) == np.inf
    with pytest.raises(ValueError, match="`prices` come with `budgets`, got budgets alone"):
        omg.certificate(problem.mdp, plan.policy, plan.values, **given)


def test_an_earlier_plan_saves_iterations(rng):
    problem = bound_problem(rng)
    plan = problem.plan()
    moved = dataclasses.replace(problem, budgets=problem.budgets + 1e-4)
    again = moved.plan(start=plan)
    assert again.status is omg.Status.SOLVED
    assert again.iterations < moved.plan().iterations


def test_an_earlier_plan_hands_on_no_prices_where_no_budget_binds(rng):
    problem = bound_problem(rng)
    start = problem.plan()
    assert start.prices[0] > 0.0
    kept = dataclasses.replace(problem, budgets=problem.budgets + 10.0).plan(start=start)
    free = omg.plan(problem.mdp, problem.gamma, start=start)
    np.testing.assert_array_equal(kept.policy, free.policy)
    np.testing.assert_array_equal(kept.prices, 0.0)


def test_the_best_policy_within_budgets_is_proven_by_its_prices(rng):
    """It is the limit of plans: for γ = 1e6 the barrier is worth at most n/γ."""
    for _ in range(5):
        problem = bound_problem(rng)
        policy, value = omg.optimal_policy(problem.mdp, costs=problem.costs, budgets=problem.budgets)
        assert spent(problem.mdp, policy, problem.costs) <= problem.budgets + 1e-12
        plan = omg.plan(problem.mdp, 1e6, costs=problem.costs, budgets=problem.budgets, tolerance=1e-6)
        _, values = best_response(problem.mdp, problem.mdp.reward_steps - plan.prices[0] * problem.costs)
        most = problem.mdp.start @ values[0] + plan.prices @ problem.budgets  # for any prices, by weak duality
        assert most - 1e-4 <= value <= most + 1e-12
        assert ((policy > 1e-9) & (policy < 1.0 - 1e-9)).any(axis=2).sum() <= 1  # one budget needs one coin


def test_no_policy_within_budgets_is_an_error_with_what_is_possible(rng):
    problem = budget_problem(rng, "infeasible", states=3, actions=2, horizon=3, masked=False)
    with pytest.raises(ValueError, match="no policy meets the `budgets`; alone, each cost can be as low as"):
        omg.optimal_policy(problem.mdp, costs=problem.costs, budgets=problem.budgets)
    plan = problem.plan()
    assert plan.status is omg.Status.INFEASIBLE
    assert (plan.least_costs <= plan.costs + 1e-9 * largest_costs(problem.mdp, problem.costs)).all()
    assert least_excess(problem.mdp, problem.costs, problem.budgets, 0.0 * plan.prices) <= 0.0


def test_one_policy_only_is_said(rng):
    mdp = random_mdp(rng, states=3, actions=2, horizon=3, kernel="dense", masked=False)
    plan = omg.plan(mdp, 10.0, costs=np.tile([0.0, 1.0], (1, 3, 1)), budgets=[0.0])
    assert plan.status is omg.Status.NO_INTERIOR
    assert plan.occupancy[:, :, 1].sum() <= 1e-6
