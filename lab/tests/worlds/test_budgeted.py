"""Worlds with budgets: the feasible optimum against a linear program, and budgets that bind and matter."""

import numpy as np
import pytest
from scipy.optimize import linprog

from lab.tests.worlds.catalogue import BUDGETED
from omg_cmdp import occupancy_measure, optimal_policy, policy_value

each_world = pytest.mark.parametrize("kind", BUDGETED, ids=lambda kind: kind.__name__)


def spent(mdp, policy, costs):
    return (occupancy_measure(mdp, policy) * costs[:, None]).sum(axis=(1, 2, 3))


def flow_program(mdp, costs, budgets):
    """Return the best value within the budgets by the program over occupancy measures, all at once."""
    sizes = mdp.horizon, mdp.states, mdp.actions
    flow = np.zeros((mdp.horizon, mdp.states, *sizes))
    for h in range(mdp.horizon):
        for s in range(mdp.states):
            flow[h, s, h, s] = 1.0
            if h:
                flow[h, s, h - 1] = -mdp.transitions[:, :, s]
    arriving = np.zeros((mdp.horizon, mdp.states))
    arriving[0] = mdp.start
    solved = linprog(
        -np.broadcast_to(mdp.rewards, sizes).ravel(),
        A_ub=np.broadcast_to(costs[:, None], (len(costs), *sizes)).reshape(len(costs), -1),
        b_ub=budgets,
        A_eq=flow.reshape(arriving.size, -1),
        b_eq=arriving.ravel(),
    )
    return -solved.fun


@each_world
def test_the_feasible_optimum_is_that_of_the_linear_program(kind, seed):
    world = kind(seed=seed)
    for context in world.contexts:
        mdp, costs = world.mdp(context), world.costs(context)
        policy, value = optimal_policy(mdp, costs=costs, budgets=world.budgets)
        assert value == pytest.approx(flow_program(mdp, costs, world.budgets), abs=1e-7)
        assert (spent(mdp, policy, costs) <= world.budgets + 1e-9).all()


@each_world
def test_a_budget_binds_in_most_contexts_and_who_ignores_it_passes_it_by_far(kind):
    over, lost = [], []
    for world in (kind(seed=seed) for seed in range(5)):
        for context in world.contexts:
            mdp, costs = world.mdp(context), world.costs(context)
            free, best = optimal_policy(mdp)
            over.append((spent(mdp, free, costs) / world.budgets).max())
            lost.append(best - optimal_policy(mdp, costs=costs, budgets=world.budgets)[1])
    assert np.mean(np.array(over) > 1.01) >= 0.75
    assert np.mean(over) > 1.4
    assert np.mean(lost) > 0.05


@each_world
def test_action_0_costs_nothing_so_that_a_little_room_is_always_left(kind, seed):
    world = kind(seed=seed)
    idle = np.zeros((world.space.horizon, world.space.states, world.space.actions))
    idle[..., 0] = 1.0
    for context in world.contexts:
        assert (spent(world.mdp(context), idle, world.costs(context)) == 0.0).all()
        assert policy_value(world.mdp(context), idle) < world.optimal_value(context)
    assert (world.budgets > 0.0).all()


@each_world
def test_more_budget_is_worth_no_less(kind, seed):
    world = kind(seed=seed)
    for context in world.contexts:
        mdp, costs = world.mdp(context), world.costs(context)
        values = [optimal_policy(mdp, costs=costs, budgets=scale * world.budgets)[1] for scale in (0.5, 1.0, 2.0, 4.0)]
        assert np.diff(values).min() >= -1e-9
        assert values[1] - values[0] >= values[3] / 4.0 - values[2] / 4.0 - 1e-9  # concave, by doubled steps


@each_world
def test_no_single_policy_is_good_and_within_the_budgets_for_all_contexts(kind):
    """Every context's own best policy, played for all, loses a few percent or passes a budget by that much."""
    for world in (kind(seed=seed) for seed in range(5)):
        tables = [(world.mdp(context), world.costs(context)) for context in world.contexts]
        best = [optimal_policy(mdp, costs=costs, budgets=world.budgets) for mdp, costs in tables]
        for policy, _ in best:
            value = np.mean([policy_value(mdp, policy) for mdp, _ in tables])
            worst = max((spent(mdp, policy, costs) / world.budgets).max() for mdp, costs in tables)
            assert value < 0.98 * np.mean([value for _, value in best]) or worst > 1.02
