"""Theorem C of docs/theory.md: the gain that drawn models see bounds what their optima are worth, draw by draw."""

import itertools
import math

import numpy as np
import pytest

from lab.tests.audit.rounds import random_pair
from library.tests.agents.exploration.draws import (
    clipped_optimum,
    estimate,
    flow,
    joint_plan,
    pooled,
    promised,
    random_draws,
    seen_by,
    single_step,
)
from library.tests.random_mdps import by_step, random_mdp, random_policy, with_tables
from omg_cmdp.mdp import TabularMDP, occupancy_measure, optimal_policy, policy_value
from omg_cmdp.mdp.bellman import policy_values
from omg_cmdp.planning import plan
from omg_cmdp.planning.certificate import slacks

FLOOR = 1e-3
ROUNDING = 1e-9


def gain_round(m, q, v):
    """Return Σ m + ¼·Σ q̂·v/m over q̂ > 0: the right side of Theorem C."""
    held = q > 0.0
    return float((m[held] + 0.25 * q[held] * v[held] / m[held]).sum())


def problems(rng, count):
    """Yield a model, and what a few draws say of it, in half of the cases clipped by what an episode can earn."""
    for _ in range(count):
        _, model = random_pair(rng)
        least, most = sorted(rng.uniform(0.0, model.horizon, size=2)) if rng.random() < 0.5 else (0.0, np.inf)
        yield model, seen_by(model, random_draws(rng, model, int(rng.integers(1, 7))), least, most)


def test_errors_of_backups_add_up_to_the_gain(rng):
    """Σ q_k·e_k = V_k(start) - V̂^{π_k}, for any values, clipped or not."""
    for model, draws in problems(rng, 60):
        total = (draws.occupancies * draws.errors).sum(axis=(1, 2, 3))
        np.testing.assert_allclose(total, draws.values[:, 0] @ model.start - draws.rewards, atol=1e-12)


def test_errors_of_backups_are_those_of_rewards_and_kernels(rng):
    """e_k = (f_k - f̂) + (P_k - P̂)·V_k where π_k goes, if nothing is clipped."""
    for _ in range(20):
        _, model = random_pair(rng)
        drawn = random_draws(rng, model, 3)
        draws = seen_by(model, drawn)
        kernel, rewards = by_step(model)
        for each, values, q, e in zip(drawn, draws.values, draws.occupancies, draws.errors, strict=True):
            kernel_k, rewards_k = by_step(each)
            direct = rewards_k - rewards + np.einsum("hsaj,hj->hsa", kernel_k - kernel, values[1:])
            np.testing.assert_allclose(e[q > 0.0], direct[q > 0.0], atol=1e-12)


def test_clipping_changes_nothing_that_a_model_can_earn(rng):
    """A model whose episodes all earn between `least` and `most` has the same value at the start when clipped."""
    for _ in range(40):
        mdp = random_mdp(rng, kernel="dense", reward_steps=True)
        paid = rng.uniform(0.0, 1.0, size=mdp.horizon)  # by step alone, so that each episode earns the same
        mdp = with_tables(mdp, rewards=np.broadcast_to(paid[:, None, None], by_step(mdp)[1].shape))
        _, values = clipped_optimum(mdp, least=paid.sum() - 1e-12, most=paid.sum() + 1e-12)
        assert mdp.start @ values[0] == pytest.approx(paid.sum())


def test_theorem_c_for_any_barrier(rng):
    """E V_k - V̂(q̂) <= Σ m + ¼·Σ q̂·v/m, any m; before the last step it is an equality."""
    for model, draws in problems(rng, 60):
        weights = 10.0 ** rng.uniform(-3, 1, size=draws.errors.shape[1:])
        solution = plan(model, 1.0, weights=weights, tolerance=1e-12)
        q, v = solution.occupancy, flow(draws)
        held = q > 0.0
        left = promised(model, draws) - policy_value(model, solution.policy)
        through, visits = (draws.occupancies * draws.errors).mean(axis=0), draws.occupancies.mean(axis=0)
        exact = (weights + through - weights * visits / np.where(held, q, 1.0))[held].sum()
        assert left == pytest.approx(exact, abs=1e-3 * weights[held].sum())
        assert left <= gain_round(weights, q, v) + 1e-4 * weights[held].sum()


def test_theorem_c_for_any_policy_and_values(rng):
    """E V_k - V̂(q̂) <= Σ q̂·z + ¼·Σ v/z, for any policy and any values with slacks z > 0: no plan need be exact."""
    for model, draws in problems(rng, 60):
        policy = random_policy(rng, model)
        values = np.zeros((model.horizon, model.states))
        spare = 10.0 ** rng.uniform(-3, 1)
        after = np.zeros(model.states)
        for h in reversed(range(model.horizon)):
            kernel, rewards = by_step(model)
            backup = np.where(model.admissible, rewards[h] + kernel[h] @ after, -np.inf)
            after = values[h] = backup.max(axis=1) + spare * rng.random(model.states)
        q, z, v = occupancy_measure(model, policy), slacks(model, values), flow(draws)
        held = q > 0.0
        right = float((q[held] * z[held] + 0.25 * v[held] / z[held]).sum())
        assert promised(model, draws) - policy_value(model, policy) <= right + ROUNDING


def test_the_root_program_is_worth_at_least_what_the_draws_promise(rng):
    """E V_k <= max ⟨q, f̂⟩ + Σ √(v·q); it is so already at the mean of the draws' occupancies."""
    for model, draws in problems(rng, 60):
        v, mixture = flow(draws), draws.occupancies.mean(axis=0)
        at_mixture = float((mixture * by_step(model)[1]).sum() + np.sqrt(v * mixture).sum())
        assert promised(model, draws) <= at_mixture + ROUNDING
        solution = plan(model, uncertainty=v, tolerance=1e-7)
        best = policy_value(model, solution.policy) + float(np.sqrt(v * solution.occupancy).sum())
        assert at_mixture <= best + 2e-7


def test_theorem_c_where_one_table_serves_all_steps(rng):
    """E V_k - V̂(q̂) <= Σ q̂·z + ¼·Σ v/min_h z for any policy and values, v (S, A) the flow of all steps through a pair.

    And E V_k <= ⟨q, f̂⟩ + Σ √(v·Σ_h q_h) at the mean of the draws' occupancies, so at the best q, too.
    """
    for model, draws in problems(rng, 60):
        v, mixture = flow(pooled(draws))[0], draws.occupancies.mean(axis=0)
        at_mixture = float((mixture * by_step(model)[1]).sum() + np.sqrt(v * mixture.sum(axis=0)).sum())
        assert promised(model, draws) <= at_mixture + ROUNDING
        weights = 10.0 ** rng.uniform(-3, 1, size=draws.errors.shape[1:])
        solution = plan(model, 1.0, weights=weights, tolerance=1e-4)
        held = solution.occupancy > 0.0
        spare = slacks(model, solution.values)
        paid, nearest = (solution.occupancy * spare)[held].sum(), np.where(held, spare, np.inf).min(axis=0)
        left = promised(model, draws) - policy_value(model, solution.policy)
        assert left <= paid + 0.25 * (v / nearest).sum() + ROUNDING


def test_pooled_gains_are_never_above_squared_errors(rng):
    """v <= Σ_h E[q_k·e_k²]."""
    for _, draws in problems(rng, 60):
        squares = (draws.occupancies * draws.errors**2).mean(axis=0).sum(axis=0)
        assert (flow(pooled(draws))[0] <= squares + 1e-12).all()


@pytest.mark.parametrize("share", [0.5, 1.0, 2.0])
def test_one_plan_pays_for_the_gain_and_the_floor(rng, share):
    """With m = (c/2)·√(q̂v) + m₀ the plan has E V_k - V̂(q̂) <= (c/2 + 1/(2c))·Σ √(q̂v) + (n - H)·m₀."""
    for model, draws in problems(rng, 8):
        v = flow(draws)
        solution = plan(model, uncertainty=share**2 * v, floor=FLOOR, tolerance=1e-12)
        other, weights = joint_plan(model, share**2 * v, FLOOR)
        q = solution.occupancy
        held, m = q > 0.0, 0.5 * share * np.sqrt(q * v) + FLOOR
        np.testing.assert_allclose(q, other.occupancy, atol=1e-5)  # two ways to the same plan
        np.testing.assert_allclose(weights[held], m[held], rtol=1e-3)
        price = 0.5 * (share + 1.0 / share) * float(np.sqrt(q * v).sum())
        assert gain_round(m, q, v) <= price + held.sum() * FLOOR + ROUNDING
        left = promised(model, draws) - policy_value(model, solution.policy)
        assert left <= price + (held.sum() - model.horizon) * FLOOR + 1e-6


def test_the_estimate_never_sees_more_than_the_mean(rng):
    """Noise is taken off, never added."""
    for _, draws in problems(rng, 60):
        if len(draws.values) > 1:
            assert (estimate(draws) <= flow(draws) + 1e-12).all()


def test_gains_are_never_above_squared_errors(rng):
    """v <= E[q_k·e_k²] <= E[e_k²], the second over tuples that π_k takes."""
    for _, draws in problems(rng, 60):
        squares = (draws.occupancies * draws.errors**2).mean(axis=0)
        assert (flow(draws) <= squares + 1e-12).all()
        assert (squares <= ((draws.occupancies > 0.0) * draws.errors**2).mean(axis=0) + 1e-12).all()


def test_nobody_goes_there_nothing_is_paid(rng):
    for _, draws in problems(rng, 30):
        nowhere = (draws.occupancies == 0.0).all(axis=0)
        assert (flow(draws)[nowhere] == 0.0).all()
        assert (estimate(draws)[nowhere] == 0.0).all()


def test_errors_of_either_sign_cancel():
    """One arm, nothing to decide: what is too much in one draw and too little in another is no flow."""
    assert flow(seen_by(single_step([0.5]), [single_step([0.3]), single_step([0.7])])).item() < 1e-30


@pytest.mark.parametrize(("second", "v"), [(0.5, 0.04), (0.4, 0.01), (0.3, 0.0), (0.1, 0.0)])
def test_only_the_sum_of_flows_is_a_gain(second, v):
    """Two steps of one arm: the first promises .2 more; what the second promises less is taken off: v = (Σb)₊²."""
    model, drawn = (
        TabularMDP(transitions=np.ones((1, 1, 1)), rewards=np.reshape(paid, (2, 1, 1)), horizon=2)
        for paid in ([0.5, 0.5], [0.7, second])
    )
    np.testing.assert_allclose(flow(seen_by(model, [drawn])).ravel(), [v, 0.0], atol=1e-15)


def test_on_the_draws_own_way_exactly_their_gain_is_paid(rng):
    """Σ √(v·c) = (E V_k - E V̂^{π_k})₊, c = E[q_k]; so in the root program draws get what they promise, and no more."""
    gains = []
    for model, draws in problems(rng, 60):
        gains.append(promised(model, draws) - draws.rewards.mean())
        paid = np.sqrt(flow(draws) * draws.occupancies.mean(axis=0)).sum()
        assert paid == pytest.approx(max(gains[-1], 0.0), abs=1e-12)
    assert min(gains) < -1e-3 < 1e-3 < max(gains)


def joint_gap(q, z, v, floor):
    """Return sup_y [φ(y) - z·y] + z·q - φ(q), φ(q) = √(v·q) + m₀·log q."""
    s = (np.sqrt(v) + np.sqrt(v + 16.0 * z * floor)) / (4.0 * z)
    return 0.5 * np.sqrt(v) * s - floor + 2.0 * floor * np.log(s) + z * q - np.sqrt(v * q) - floor * np.log(q)


def random_terms(rng, size):
    """Return q, z, v and m₀, with products q·z on both sides of what optimality asks for."""
    q, v, floor = (10.0 ** rng.uniform(low, 0.0, size=size) for low in (-6, -8, -6))
    v[rng.random(size) < 0.1] = 0.0
    z = (0.5 * np.sqrt(q * v) + floor) / q * 10.0 ** rng.uniform(-2, 2, size=size)
    return q, z, v, floor


def test_the_gap_of_the_joint_program_has_a_closed_form(rng):
    for q, z, v, floor in zip(*random_terms(rng, 50), strict=True):
        y = q * np.exp(np.linspace(-25.0, 25.0, 200_001))
        grid = (np.sqrt(v * y) + floor * np.log(y) - z * y).max() + z * q - math.sqrt(v * q) - floor * math.log(q)
        closed = joint_gap(q, z, v, floor)
        scale = 0.5 * math.sqrt(q * v) + floor
        assert closed >= grid - 1e-12 * scale
        assert closed == pytest.approx(grid, rel=1e-5, abs=1e-6 * scale)


def test_the_gap_lies_between_two_certificates(rng):
    """m(x - 1 - ln x) <= gap <= ½√(qv)·(x - 1)²/x + m₀(x - 1 - ln x) <= m(x - 1)²/x, with m = ½√(qv) + m₀, x = qz/m."""
    q, z, v, floor = random_terms(rng, 20_000)
    root = 0.5 * np.sqrt(q * v)
    m = root + floor
    x = q * z / m
    gap, barrier, square = joint_gap(q, z, v, floor), x - 1.0 - np.log(x), (x - 1.0) ** 2 / x
    slack = 1e-12 * m * (1.0 + x + 1.0 / x)
    assert (m * barrier <= gap + slack).all()
    assert (gap <= root * square + floor * barrier + slack).all()
    assert (root * square + floor * barrier <= m * square + slack).all()


def test_a_pair_near_the_plan_pays_for_its_distance(rng):
    """Any pair, with m = ½√(q̂v) + m₀ and x = q̂z/m: E V_k - V̂(q̂) <= Σ √(q̂v) + m₀·Σ x + Σ ½√(q̂v)·(x - 1)²/x."""
    for model, draws in problems(rng, 30):
        v = flow(draws)
        rough = plan(model, uncertainty=np.maximum(v, 4.0 * FLOOR**2), tolerance=10.0 ** rng.uniform(-6, -1))
        held = rough.occupancy > 0.0
        q, z = rough.occupancy[held], slacks(model, rough.values)[held]
        root = 0.5 * np.sqrt(q * v[held])
        x = q * z / (root + FLOOR)
        right = float((2.0 * root + FLOOR * x + root * (x - 1.0) ** 2 / x).sum())
        assert promised(model, draws) - policy_value(model, rough.policy) <= right + ROUNDING


def posterior(rng, *, by_steps):
    """Return models of equal probability, and their mean: tables drawn for each step apart, or one for all steps."""
    states, actions, horizon = 2, 2, 3
    tables = [rng.dirichlet(np.full(states, 0.3), (2, states, actions)) for _ in range(horizon if by_steps else 1)]
    kernels = [np.stack(chosen * (1 if by_steps else horizon)) for chosen in itertools.product(*tables)]
    paid = rng.random((2, states, actions))
    models = [
        TabularMDP(transitions=kernel, rewards=rewards, horizon=horizon)
        for kernel, rewards in itertools.product(kernels, paid)
    ]
    return models, TabularMDP(transitions=np.mean(kernels, axis=0), rewards=paid.mean(axis=0), horizon=horizon)


@pytest.mark.parametrize("by_steps", [True, False])
def test_the_value_of_the_mean_model_and_the_mean_of_values(rng, by_steps):
    """V̂^π - E V^π = -Σ q̂·E[(P - P̂)(V^π - V̂^π)_{h+1}]: nothing if steps are learned apart, else of second order."""
    largest = 0.0
    for _ in range(20):
        models, mean = posterior(rng, by_steps=by_steps)
        policy = random_policy(rng, mean)
        q = occupancy_measure(mean, policy)
        apart = np.zeros(q.shape)
        believed = policy_values(mean, policy, mean.reward_steps)[0]
        for each in models:
            change = policy_values(each, policy, each.reward_steps)[0] - believed
            apart += np.einsum("hsaj,hj->hsa", each.transition_steps - mean.transition_steps, change[1:]) / len(models)
        difference = policy_value(mean, policy) - np.mean([policy_value(each, policy) for each in models])
        assert difference == pytest.approx(-float((q * apart).sum()), abs=1e-12)
        largest = max(largest, abs(difference))
    assert largest < 1e-12 if by_steps else largest > 1e-3


@pytest.mark.parametrize("by_steps", [True, False])
def test_bayesian_regret_of_one_episode(rng, by_steps):
    """E[V* - V^π] <= Σ √(q̂v) + V̂^π - E V^π under a correct posterior: all draws, and K of them on average."""
    for _ in range(5):
        models, mean = posterior(rng, by_steps=by_steps)
        best = np.mean([optimal_policy(each)[1] for each in models])
        for size in (1, 2, len(models)):
            lost, price = [], []
            for drawn in [models] if size == len(models) else itertools.product(models, repeat=size):
                v = flow(seen_by(mean, drawn))
                solution = plan(mean, uncertainty=v, tolerance=1e-8)
                lost.append(best - policy_value(mean, solution.policy))
                price.append(float(np.sqrt(v * solution.occupancy).sum()))
            assert np.mean(lost) <= np.mean(price) + 1e-7


def information(laws, weights):
    """Return Σ_k w_k·KL(law_k ‖ Σ w·law): what an outcome says about k; the outcomes are the last axis."""
    mean = np.tensordot(weights, laws, axes=1)
    logs = np.log(laws, out=np.zeros_like(laws), where=laws > 0.0) - np.log(np.where(mean > 0.0, mean, 1.0))
    return np.tensordot(weights, (laws * logs).sum(axis=-1), axes=1)


def test_gains_are_paid_in_information(rng):
    """Σ q̂·v <= Σ q̂·(I_f + 2(H - 1 - h)²·I_P): what a visit says about rewards (of two outcomes) and transitions."""
    for _ in range(30):
        models, mean = posterior(rng, by_steps=True)
        alike = np.full(len(models), 1.0 / len(models))
        paid = np.array([each.rewards for each in models])
        of_rewards = information(np.stack([paid, 1.0 - paid], axis=-1), alike)
        of_kernels = information(np.array([each.transition_steps for each in models]), alike)
        left_over = np.arange(mean.horizon - 1, -1, -1)[:, None, None]
        squares = of_rewards + 2.0 * left_over**2 * of_kernels
        assert (flow(seen_by(mean, models)) <= squares + 1e-12).all()


def test_the_information_ratio_of_a_bandit_is_half_its_arms(rng):
    """(E[V* - V^π])² <= (A/2)·I, I what the next reward says about f: Thompson sampling has the same constant."""
    for _ in range(100):
        size, arms = int(rng.integers(2, 6)), int(rng.integers(2, 5))
        paid, weights = rng.random((size, arms)), rng.integers(1, 5, size=size)
        drawn = [single_step(row) for row in np.repeat(paid, weights, axis=0)]
        weights = weights / weights.sum()
        mean = single_step(weights @ paid)
        q = plan(mean, uncertainty=flow(seen_by(mean, drawn)), tolerance=1e-10).occupancy[0, 0]
        lost = weights @ paid.max(axis=1) - q @ mean.rewards[0]
        told = q @ information(np.stack([paid, 1.0 - paid], axis=-1), weights)
        assert lost**2 <= arms / 2.0 * told + 1e-8
