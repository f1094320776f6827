"""`plan_gains`: max ⟨q, f̂⟩ + Σ √(w·Q), against the planner, and what its certificate promises."""

import numpy as np
import pytest

from library.tests.agents.exploration.situations import model_alone
from library.tests.random_mdps import by_step, random_mdp, random_mdps, random_policy
from omg_cmdp import TabularMDP, certificate, occupancy_measure, optimal_policy, plan, policy_value
from omg_cmdp.agents.exploration import base
from omg_cmdp.mdp.occupancy import uniform_policy


def uniform(model):
    """Return the occupancy measure of uniform play."""
    return occupancy_measure(model, uniform_policy(model.space))


def random_w(rng, model, steps):
    """Return w, (S, A) or (H, S, A): of one size, of many sizes, or zero in most places."""
    shape = (model.horizon, model.states, model.actions)[0 if steps else 1 :]
    w = 10.0 ** rng.uniform(-8.0, 0.5) * rng.random(shape)
    kind = rng.integers(3)
    if kind == 1:
        w = 10.0 ** rng.uniform(-12.0, 1.0, size=shape)
    if kind == 2:
        w[rng.random(shape) < 0.8] = 0.0
    return w


def objective(model, w, occupancy):
    """Return ⟨q, f̂⟩ + Σ √(w·Q), Q summed over the steps that share an entry of w."""
    shared = occupancy.sum(axis=0) if w.ndim == 2 else occupancy
    return float((occupancy * model.reward_steps).sum() + np.sqrt(w * shared).sum())


def gap(decision):
    return decision.certificate / decision.gamma


@pytest.mark.parametrize("steps", [False, True], ids=["shared", "by step"])
def test_nothing_exceeds_the_plan_by_more_than_its_certificate(steps, rng):
    """Not the optimum, nor uniform play, nor random policies, nor mixtures of them; nor the planner's root plan."""
    for model in random_mdps(rng, 40):
        w, start = random_w(rng, model, steps), uniform(model)
        decision = model_alone(model, 1e-9).plan_gains(w, start)
        q = decision.occupancy
        np.testing.assert_allclose(q, occupancy_measure(model, decision.policy), atol=1e-12)
        rivals = [start, occupancy_measure(model, optimal_policy(model)[0])]
        rivals += [occupancy_measure(model, random_policy(rng, model)) for _ in range(10)]
        rivals += [0.99 * q + 0.01 * each for each in rivals]
        if steps:
            rivals.append(plan(model, uncertainty=w, tolerance=1e-9).occupancy)
        most = max(objective(model, w, each) for each in rivals)
        assert most <= objective(model, w, q) + gap(decision) + 1e-9


def test_the_certificate_is_that_of_its_values(rng):
    """V is optimal for f̂ + β, β = ½·√(w/Q̂): gap = V(start) - ⟨q̂, f̂ + β⟩."""
    for model in random_mdps(rng, 30):
        w = random_w(rng, model, False) + 1e-3
        decision = model_alone(model, 1e-12).plan_gains(w, uniform(model))
        visits = decision.occupancy.sum(axis=0)
        bonus = np.where(visits > 0.0, 0.5 * np.sqrt(w / np.where(visits > 0.0, visits, 1.0)), 0.0)
        kernel, rewards = by_step(model)
        values = np.zeros((model.horizon + 1, model.states))
        for h in reversed(range(model.horizon)):
            worth = np.where(model.admissible, rewards[h] + bonus + kernel[h] @ values[h + 1], -np.inf)
            values[h] = worth.max(axis=1)
        np.testing.assert_allclose(decision.values, values[:-1], rtol=1e-9, atol=1e-12 * values.max())
        short = values[0] @ model.start - float((decision.occupancy * (rewards + bonus)).sum())
        assert gap(decision) == pytest.approx(short, abs=1e-9)
        assert gap(decision) <= base.ENOUGH * np.sqrt(w * visits).sum() or decision.iterations == base.ROUNDS


@pytest.mark.parametrize("steps", [False, True], ids=["shared", "by step"])
def test_anybody_can_prove_the_plan_with_its_own_weights(steps, rng):
    """With m = β·q̂, z = β + ζ: Σ m·(x - 1 - ln x) + Σ q̂·z where m = 0 is at most Σ q̂·ζ, the gap."""
    for model in random_mdps(rng, 40):
        decision = model_alone(model, 1e-9).plan_gains(random_w(rng, model, steps), uniform(model))
        proven = certificate(model, decision.policy, decision.values, gamma=decision.gamma, weights=decision.weights)
        assert proven <= decision.certificate * (1.0 + 1e-6) + 1e-12 * decision.gamma


def test_given_rounds_enough_it_is_the_root_plan(rng, monkeypatch):
    monkeypatch.setattr(base, "ENOUGH", 1e-3)
    monkeypatch.setattr(base, "ROUNDS", 3000)
    for model in random_mdps(rng, 10, states=3, actions=2, horizon=3):
        w = 0.01 + rng.random((model.horizon, model.states, model.actions))
        decision = model_alone(model, 1e-9).plan_gains(w, uniform(model))
        best = plan(model, uncertainty=w, tolerance=1e-9)
        assert objective(model, w, best.occupancy) - objective(model, w, decision.occupancy) <= gap(decision) + 1e-9
        assert gap(decision) <= 1e-3 * np.sqrt(w * decision.occupancy).sum()


def test_few_rounds_do(rng):
    """Of Σ √(w·Q) a fifth is left at most in nine of ten models."""
    left = []
    for model in random_mdps(rng, 60):
        w = random_w(rng, model, False)
        decision = model_alone(model, 1e-9).plan_gains(w, uniform(model))
        paid = np.sqrt(w * decision.occupancy.sum(axis=0)).sum()
        left.append(gap(decision) <= 0.2 * paid + 1e-9)
    assert np.mean(left) > 0.9


def test_what_is_not_worth_the_tolerance_is_not_explored(rng):
    """Σ √(w·Q) <= √(H·Σ w) for every plan."""
    for model in random_mdps(rng, 10):
        w = 1e-9 * rng.random((model.states, model.actions))
        decision = model_alone(model, 1e-3).plan_gains(w, uniform(model))
        np.testing.assert_array_equal(decision.policy, optimal_policy(model)[0])
        assert gap(decision) == pytest.approx(np.sqrt(model.horizon * w.sum()))


def test_what_can_be_tried_late_is_not_tried_early():
    """Staying pays ½ in every step, leaving pays nothing and ends it: what leaving is like costs least at the end."""
    kernel = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    model = TabularMDP(transitions=kernel, rewards=np.array([[0.5, 0.0], [0.0, 0.0]]), horizon=5)
    w = np.array([[0.0, 1e-3], [0.0, 0.0]])
    this, start = model_alone(model, 1e-9), uniform(model)
    leaving = this.plan_gains(w, start).occupancy[:, 0, 1]
    by_steps = this.plan_gains(np.repeat(w[None], 5, axis=0), start).occupancy[:, 0, 1]
    assert leaving[-1] > 0.9 * leaving.sum()
    assert by_steps[-1] < 0.8 * by_steps.sum()


def test_off_the_plan_the_optimum_is_played(rng):
    """Half of the states are never visited."""
    kernel = np.zeros((6, 2, 6))
    kernel[..., :3] = rng.dirichlet(np.ones(3), (6, 2))
    model = TabularMDP(transitions=kernel, rewards=rng.random((6, 2)), horizon=4)
    decision = model_alone(model, 1e-9).plan_gains(np.full((6, 2), 0.1), uniform(model))
    np.testing.assert_array_equal(decision.policy[:, 3:], optimal_policy(model)[0][:, 3:])


def test_exploring_costs_its_weights_and_the_gap(rng):
    """V̂* - V̂^π <= Σ m + gap, because V(start) >= V̂*."""
    for model in random_mdps(rng, 30):
        decision = model_alone(model, 1e-9).plan_gains(random_w(rng, model, False), uniform(model))
        spent = optimal_policy(model)[1] - policy_value(model, decision.policy)
        assert spent <= decision.weights.sum() / decision.gamma + gap(decision) + 1e-12


@pytest.mark.parametrize("name", ["w", "visits"])
def test_tables_of_another_shape_are_refused(name, rng):
    model = random_mdp(rng, 3, 2, 4)
    given = {"w": np.ones((3, 2)), "visits": uniform(model)} | {name: np.ones((3, 3))}
    with pytest.raises(ValueError, match=f"`{name}` must have shape .*, got"):
        model_alone(model).plan_gains(**given)
