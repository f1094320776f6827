"""What draws do within the budgets: the best mixture of policies, which is the optimum where no budget binds."""

import numpy as np
import pytest

from library.tests.agents.exploration.draws import chosen_by
from library.tests.random_mdps import random_mdps
from omg_cmdp import occupancy_measure
from omg_cmdp.agents.exploration import compiled, feasible
from omg_cmdp.mdp.budgets import best_within, checked_budgets

FREE = np.zeros((1, 1, 1))


def bounds_of(model):
    """Return bounds of values that bound nothing."""
    return np.full(model.horizon + 1, -1e3), np.full(model.horizon + 1, 1e3)


def budgeted(rng, count, share):
    """Yield models, with costs of up to three kinds, and budgets that are `share` of what uniform play costs."""
    for model in random_mdps(rng, count):
        kinds = int(rng.integers(1, 4))
        costs = rng.random((kinds, *[model.horizon] * int(rng.integers(2)), model.states, model.actions))
        uniform = np.broadcast_to(
            model.admissible / model.admissible.sum(axis=1, keepdims=True), (model.horizon, *model.admissible.shape)
        )
        spent = checked_budgets(model, costs, np.zeros(kinds)).charged(occupancy_measure(model, uniform))
        yield model, checked_budgets(model, costs, share * spent)


def filled(model, limits, paid, moves, charges=FREE, steps=1):
    """Return gains and visits for drawn rewards (K, steps, S, A) and kernels (K, steps, S, A, S)."""
    gains = np.full((steps, model.states, model.actions), np.nan)
    visits, charged = np.full((model.horizon, *gains.shape[1:]), np.nan), charges * np.ones((1, *gains.shape[1:]))
    transitions, rewards, start, admissible = model.raw
    mean = transitions, np.ascontiguousarray(rewards - charged), start, admissible
    feasible.fill_gains(*mean, paid, moves, *bounds_of(model), limits.costs, limits.limits, charged, gains, visits)
    return gains, visits


@pytest.mark.parametrize("share", [0.5, 0.9, 1.1])
def test_draws_that_are_the_model_do_what_is_best_within_the_budgets(share, rng):
    solved = 0
    for model, limits in budgeted(rng, 40, share):
        transitions, rewards, _, _ = model.raw
        gains, visits = filled(model, limits, np.stack([rewards] * 3), np.stack([transitions] * 3))
        np.testing.assert_allclose(gains, 0.0, atol=1e-12)
        best, excess = best_within(model, limits), float((limits.spent(visits) - limits.limits).max())
        if best.worst > 1e-9:
            assert excess == pytest.approx(best.worst, abs=1e-6)  # none keeps them: the least excess
            continue
        solved += 1
        assert excess <= 1e-9
        wanted = (occupancy_measure(model, best.policy) * model.reward_steps).sum()
        assert (visits * model.reward_steps).sum() == pytest.approx(wanted, abs=1e-5)
    assert solved > 5


def test_budgets_that_do_not_bind_leave_the_gains_as_they_are(rng):
    for model, limits in budgeted(rng, 20, 100.0):
        transitions, rewards, _, _ = model.raw
        paid, moves = rng.random((6, *rewards.shape)), rng.dirichlet(np.ones(model.states), (6, *transitions.shape[:3]))
        for steps in (1, model.horizon):
            gains, visits = np.empty((steps, *rewards.shape[1:])), np.empty((model.horizon, *rewards.shape[1:]))
            compiled.fill_gains(*model.raw[:3], *chosen_by(model, paid, moves, bounds_of(model)), gains, visits)
            found = filled(model, limits, paid, moves, steps=steps)
            np.testing.assert_allclose(found[0], gains, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(found[1], visits, rtol=1e-9, atol=1e-12)


def test_what_all_draws_agree_on_is_the_gain_of_their_plan_after_charges(rng):
    """With draws that are equal and worth more everywhere, Σ √(v·Q) is what their plan earns more than is thought."""
    for model, limits in budgeted(rng, 20, 0.9):
        transitions, rewards, _, _ = model.raw
        better, charges = rewards + 0.1, limits.charges(rng.random(len(limits.limits)) / limits.scales)
        gains, visits = filled(model, limits, np.stack([better] * 4), np.stack([transitions] * 4), charges)
        assert np.sqrt(gains[0] * visits.sum(axis=0)).sum() == pytest.approx(0.1 * model.horizon, abs=1e-9)
