"""Random planning problems, and a check of their certificates that shares nothing with the planner."""

from __future__ import annotations

import dataclasses

import numpy as np

from library.tests.random_mdps import by_step, random_mdp
from omg_cmdp import Problem, TabularMDP, occupancy_measure
from omg_cmdp.mdp import reachable_states
from omg_cmdp.mdp.bellman import best_response

EPISODES = 1_000_000


def barrier_problem(rng, **fixed):
    """Return a log-barrier problem: γ from 1e-2 to 1e6, weights over six orders of magnitude, tolerance 1/(16T)."""
    mdp = random_mdp(rng, **fixed)
    weights = None if rng.random() < 0.5 else 10.0 ** rng.uniform(-3, 3, _table_shape(rng, mdp))
    return Problem(mdp=mdp, gamma=10.0 ** rng.uniform(-2, 6), weights=weights, tolerance=1 / (16 * EPISODES))


def root_problem(rng, **fixed):
    """Return a root-regulariser problem: u over ten orders of magnitude, some or all of it zero, tolerance 1e-8."""
    mdp = random_mdp(rng, **fixed)
    shape = _table_shape(rng, mdp)
    u = 10.0 ** rng.uniform(-10, 0, shape) * (rng.random(shape) < rng.choice([1.0, 1.0, 0.7, 0.2, 0.0]))
    return Problem(mdp=mdp, uncertainty=u, tolerance=1e-8)


def floored_problem(rng, **fixed):
    """Return a root-regulariser problem with a floor, as the gain-weighted rule has it: most of u is zero."""
    problem = root_problem(rng, **fixed)
    return Problem(
        mdp=problem.mdp, uncertainty=problem.uncertainty, floor=10.0 ** rng.uniform(-8, -2), tolerance=problem.tolerance
    )


PROBLEMS = [barrier_problem, root_problem, floored_problem]

KINDS_OF_BUDGETS = ("interior", "loose", "infeasible", "equal", "edge")


def budget_problem(rng, kind, **fixed):
    """Return a problem with 1 to 8 budgets, and costs of any sign over six orders of magnitude.

    The budgets are what a policy of full support costs, and a little more ("interior") or much more ("loose"); that
    cost exactly, from above and from below ("equal"); what the cheapest policy for a mixture of the costs costs
    ("edge"), or a little less ("infeasible").
    """
    problem = PROBLEMS[rng.integers(len(PROBLEMS))](rng, **fixed)
    mdp, count = problem.mdp, int(rng.choice([1, 1, 1, 2, 3, 8]))
    shape = (count, *_table_shape(rng, mdp))
    costs = rng.uniform(-1.0, 1.0, shape) if rng.random() < 0.5 else rng.random(shape) * (rng.random(shape) < 0.4)
    costs *= mdp.admissible * 10.0 ** rng.uniform(-3, 3, (count, *[1] * (len(shape) - 1)))
    size = largest_costs(mdp, costs)
    if kind in ("infeasible", "edge"):
        weights = np.tensordot(rng.dirichlet(np.ones(count)) / size, costs, 1)
        budgets = spent(mdp, best_response(mdp, -weights if weights.ndim == 3 else -weights[None])[0], costs)
        budgets -= size * 10.0 ** rng.uniform(-6, -1) * (kind == "infeasible")
    else:
        policy = rng.dirichlet(np.ones(mdp.actions), (mdp.horizon, mdp.states)) + 1e-3
        policy *= mdp.admissible
        budgets = spent(mdp, policy / policy.sum(axis=2, keepdims=True), costs)
        budgets += size * {"interior": 10.0 ** rng.uniform(-4, -1), "loose": 1.0, "equal": 0.0}[kind]
    if kind == "equal":
        costs, budgets = np.concatenate([costs[:1], -costs[:1]]), np.array([budgets[0], -budgets[0]])
    return dataclasses.replace(problem, costs=costs, budgets=budgets)


def largest_costs(mdp, costs):
    """Return horizon times the largest cost, (J,); 1 where all costs are zero."""
    size = mdp.horizon * np.abs(costs).reshape(len(costs), -1).max(axis=1)
    return np.where(size > 0.0, size, 1.0)


def spent(mdp, policy, costs):
    """Return what `policy` costs, (J,)."""
    occupancy = occupancy_measure(mdp, policy)
    return np.array([(occupancy * each).sum() for each in costs])


def combination_lock(states, actions, horizon, slip=0.0, **tables):
    """Return the MDP in which action 0 opens the next state and every other action leads back to the first."""
    transitions = np.zeros((states, actions, states))
    transitions[:, 1:, 0] = 1.0
    transitions[np.arange(states), 0, np.minimum(np.arange(states) + 1, states - 1)] = 1.0
    transitions = (1.0 - slip) * transitions + slip / states
    rewards = np.zeros((states, actions))
    rewards[-1] = 1.0
    return TabularMDP(transitions=transitions, rewards=rewards, horizon=horizon, **tables)


def duality_gap(problem, solution):
    """Return (dual objective - primal objective) in extended precision, times γ for the barrier.

    Two separate sums, of the definitions themselves, instead of the sum of gaps per tuple that the certificate is.
    """
    mdp, exact = problem.mdp, np.longdouble
    kernel, rewards = (table.astype(exact) for table in by_step(mdp))
    counted = reachable_states(mdp)[:, :, None] & mdp.admissible
    policy, values = solution.policy.astype(exact), solution.values.astype(exact)
    policy /= policy.sum(axis=2, keepdims=True)  # one rounding in a row's sum is worth γ·H·1e-16
    q, marginal = np.zeros(counted.shape, exact), mdp.start.astype(exact)
    slack = np.zeros(counted.shape, exact)
    for h in range(mdp.horizon):
        q[h] = marginal[:, None] * policy[h] * counted[h]
        marginal = np.einsum("sa,saj->j", q[h], kernel[h])
        after = values[h + 1] if h + 1 < mdp.horizon else np.zeros(mdp.states, exact)
        slack[h] = values[h][:, None] - rewards[h] - np.einsum("saj,j->sa", kernel[h], after)
    primal, dual = (q * rewards).sum(), mdp.start.astype(exact) @ values[0]
    q, slack = q[counted], slack[counted]
    assert (q > 0).all()
    assert (slack > 0).all()
    if problem.uncertainty is not None:
        u = np.broadcast_to(problem.uncertainty, counted.shape)[counted].astype(exact)
        m = exact(problem.floor)
        best = (np.sqrt(u) + np.sqrt(u + 16 * slack * m)) / (4 * slack)  # the √q that maximises φ(q) - z·q
        logs = m * (2 * np.log(best) - np.log(q)) if m > 0 else 0 * q
        return float(dual - primal + (np.sqrt(u) * best - slack * best**2 - np.sqrt(u * q) + logs).sum())
    m = np.broadcast_to(1.0 if problem.weights is None else problem.weights, counted.shape)[counted] / exact(
        problem.gamma
    )
    return float(problem.gamma * (dual - primal + (m * (np.log(m / slack) - 1 - np.log(q))).sum()))


def _table_shape(rng, mdp):
    step = (mdp.states, mdp.actions)
    return step if rng.random() < 0.5 else (mdp.horizon, *step)
