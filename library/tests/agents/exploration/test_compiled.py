"""The compiled loops of the exploration rules against plain numpy, and what must be true of gains."""

import itertools

import numpy as np
import pytest

from library.tests.agents.exploration.draws import (
    chosen_by,
    clipped_optimum,
    estimate,
    flow,
    pooled,
    promised,
    seen_by,
)
from library.tests.random_mdps import by_step, random_mdps, random_policy, with_tables
from omg_cmdp import TabularMDP, occupancy_measure, optimal_policy, policy_value
from omg_cmdp.agents.exploration import compiled
from omg_cmdp.mdp.bellman import value_bounds

STEPS = [(False, False), (True, False), (False, True), (True, True)]
each_kind_of_steps = pytest.mark.parametrize("by_steps", STEPS, ids=["stationary", "rewards", "kernels", "both"])


def gains_of(model, paid, moves, bounds, steps=None):
    """Return what the compiled loop fills in for drawn rewards (K, steps, S, A) and kernels (K, steps, S, A, S)."""
    gains = np.full((steps or model.horizon, model.states, model.actions), np.nan)
    chosen = chosen_by(model, paid, moves, bounds)
    compiled.fill_gains(*model.raw[:3], *chosen, gains, np.empty((model.horizon, *gains.shape[1:])))
    return gains


def models_of(model, paid, moves):
    """Return the drawn tables as MDPs with the start and mask of `model`."""
    shape = model.horizon, model.states, model.actions
    return [
        with_tables(
            model,
            rewards=np.broadcast_to(rewards, shape),
            transitions=np.broadcast_to(kernel, (*shape, model.states)),
        )
        for rewards, kernel in zip(paid, moves, strict=True)
    ]


def random_tables(rng, model, count, by_steps):
    """Return drawn rewards (K, steps, S, A) and kernels (K, steps, S, A, S); no two numbers are equal."""
    rewards, kernels = ((model.horizon if steps else 1, model.states, model.actions) for steps in by_steps)
    return rng.random((count, *rewards)), rng.dirichlet(np.ones(model.states), (count, *kernels))


def random_returns(rng, model):
    """Return what an episode earns: anything, or one number more or less, or nearly nothing."""
    least, most = sorted(rng.uniform(0.0, model.horizon, size=2))
    return [(0.0, float(model.horizon)), (least, most), (0.0, 0.1 * most)][rng.integers(3)]


def problems(rng, count, by_steps):
    """Yield a model, drawn tables and what an episode can earn."""
    for model in random_mdps(rng, count):
        yield model, *random_tables(rng, model, int(rng.integers(2, 9)), by_steps), random_returns(rng, model)


@each_kind_of_steps
def test_gains_are_those_of_the_formula(by_steps, rng):
    for model, paid, moves, (least, most) in problems(rng, 25, by_steps):
        bounds, shape = value_bounds(model.horizon, (least, most)), (model.horizon, model.states, model.actions)
        gains, visits = np.full(shape, np.nan), np.full(shape, np.nan)
        compiled.fill_gains(*model.raw[:3], *chosen_by(model, paid, moves, bounds), gains, visits)
        draws = seen_by(model, models_of(model, paid, moves), least, most)
        np.testing.assert_allclose(gains, estimate(draws), rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(visits, draws.occupancies.mean(axis=0), rtol=1e-9, atol=1e-13)


@each_kind_of_steps
def test_draws_side_by_side_choose_the_same_to_the_bit(by_steps, rng):
    for model, paid, moves, returns in problems(rng, 25, by_steps):
        moves[rng.random(moves.shape) < 0.3] = 0.0  # whatever is added up, the order is the same
        bounds, beside = value_bounds(model.horizon, returns), (moves, paid)
        one = chosen_by(model, paid, moves, bounds)
        other = tuple(np.full_like(each, -1) for each in one)
        given = (np.ascontiguousarray(np.moveaxis(each, 0, -1)) for each in beside)
        compiled.choose_side_by_side(*given, model.raw[3], *bounds, *other)
        assert [each.tobytes() for each in one] == [each.tobytes() for each in other]


@each_kind_of_steps
def test_pooled_gains_are_those_of_the_sums_over_steps(by_steps, rng):
    for model, paid, moves, (least, most) in problems(rng, 25, by_steps):
        gains = gains_of(model, paid, moves, value_bounds(model.horizon, (least, most)), steps=1)
        expected = estimate(pooled(seen_by(model, models_of(model, paid, moves), least, most)))
        np.testing.assert_allclose(gains, expected, rtol=1e-9, atol=1e-13)


def test_what_is_shared_is_divided_by_visits_and_costs(rng):
    """v·θ with θ ∝ q_h/(z_h + √v)², Σ_h θ = 1, z_h = V_h - Q_h of the optimum: nothing where nobody comes."""
    for mdp in random_mdps(rng, 10):
        q, (kernel, rewards) = occupancy_measure(mdp, random_policy(rng, mdp)), by_step(mdp)
        v = rng.random((mdp.states, mdp.actions)) * (q.sum(axis=0) > 0.0)
        _, values = clipped_optimum(mdp)
        costs = values[:-1, :, None] - rewards - np.einsum("hsaj,hj->hsa", kernel, values[1:])
        with np.errstate(invalid="ignore"):
            parts = q / (np.maximum(costs, 0.0) + np.sqrt(v)) ** 2
            expected = np.where(v > 0.0, v * parts / parts.sum(axis=0), 0.0)
        divided = q.copy()
        compiled.divide(mdp.raw[0], mdp.raw[1], mdp.raw[3], *value_bounds(mdp.horizon), v, divided)
        np.testing.assert_allclose(divided, expected, rtol=1e-9, atol=1e-12)


def test_the_square_of_the_mean_error_has_no_bias(rng):
    """At one step, given that n >= 2 of K draws visit an arm, E[v] = (n/K)·E[e | visit]²: over all K-tuples of draws.

    No error is negative, so all of the flow counts. The mean's own square would be too large, by Var(e | visit)/n.
    """
    for model in random_mdps(rng, 6, rewards="uniform", states=1, actions=3, horizon=1, masked=False):
        kernel, rewards = model.raw[:2]
        paid, bounds = rewards + (1.0 - rewards) * rng.random((4, *rewards.shape)), value_bounds(model.horizon)
        draws = seen_by(model, models_of(model, paid, np.repeat(kernel[None], 4, axis=0)))
        for count in (2, 3, 4):
            found = {}
            for chosen in map(list, itertools.product(range(4), repeat=count)):
                gains = gains_of(model, paid[chosen], np.repeat(kernel[None], count, axis=0), bounds)
                visitors = (draws.occupancies[chosen] > 0.0).sum(axis=0)
                for place in zip(*np.nonzero(visitors >= 2), strict=True):
                    found.setdefault((place, int(visitors[place])), []).append(gains[place])
            for (place, number), values in found.items():
                goes = draws.occupancies[(slice(None), *place)] > 0.0
                mean = draws.errors[(goes, *place)].mean()
                assert np.mean(values) == pytest.approx(number / count * mean**2, rel=1e-9, abs=1e-14)


def test_what_one_draw_alone_would_visit_has_its_gain(rng):
    """However unlikely it is: v = x²/(K·q), where nothing is known of the noise. What none would visit has none."""
    places = np.zeros(3)
    for model, paid, moves, (least, most) in problems(rng, 20, (True, True)):
        draws = seen_by(model, models_of(model, paid, moves), least, most)
        visitors = (draws.occupancies > 0.0).sum(axis=0)
        gains = gains_of(model, paid, moves, value_bounds(model.horizon, (least, most)))
        assert (gains[visitors == 0] == 0.0).all()
        np.testing.assert_allclose(gains[visitors == 1], flow(draws)[visitors == 1], rtol=1e-9, atol=1e-14)
        places += (visitors == 0).sum(), (visitors == 1).sum(), (gains[visitors == 1] > 0.0).sum()
    assert (places > 20).all()


def test_draws_that_agree_have_the_gain_of_one(rng):
    """K times the same draw: v = q·(e₊·G₊/Σ q·e₊)², G = V_k(start) - V̂^{π_k}, for any K."""
    for model, paid, moves, (least, most) in problems(rng, 15, (True, True)):
        one = seen_by(model, models_of(model, paid[:1], moves[:1]), least, most)
        q, positive = one.occupancies[0], np.maximum(one.errors[0], 0.0)
        gain = max(promised(model, one) - one.rewards[0], 0.0)
        expected = q * (positive * gain / max((q * positive).sum(), gain, 1e-300)) ** 2
        for count in (2, 7):
            same = (np.repeat(tables[:1], count, axis=0) for tables in (paid, moves))
            gains = gains_of(model, *same, value_bounds(model.horizon, (least, most)))
            np.testing.assert_allclose(gains, expected, rtol=1e-9, atol=1e-14)


@each_kind_of_steps
def test_no_more_is_paid_on_the_draws_own_way_than_they_promise(by_steps, rng):
    """Σ √(v·c) <= (E V_k - E V̂^{π_k})₊, c = E[q_k]: nothing at all if the sum of flows is no gain."""
    none = some = 0
    for model, paid, moves, (least, most) in problems(rng, 40, by_steps):
        draws = seen_by(model, models_of(model, paid, moves), least, most)
        gains = gains_of(model, paid, moves, value_bounds(model.horizon, (least, most)))
        missed = promised(model, draws) - draws.rewards.mean()
        assert np.sqrt(gains * draws.occupancies.mean(axis=0)).sum() <= max(missed, 0.0) + 1e-12
        if missed < -1e-9:
            assert (gains == 0.0).all()
        none, some = none + (missed < -1e-9), some + (gains.max() > 1e-6)
    assert min(none, some) > 5


def test_draws_in_any_order_and_many_times(rng):
    """Their order does not matter; if each comes ten times as often, a tenth is taken off the flow, at most."""
    for model, paid, moves, (least, most) in problems(rng, 10, (True, True)):
        bounds, draws = (
            value_bounds(model.horizon, (least, most)),
            seen_by(model, models_of(model, paid, moves), least, most),
        )
        gains = gains_of(model, paid, moves, bounds)
        np.testing.assert_allclose(gains, gains_of(model, paid[::-1].copy(), moves[::-1].copy(), bounds), rtol=1e-9)
        plain, often = flow(draws), {}
        for times in (1, 2, 20):
            often[times] = gains_of(model, *(np.repeat(tables, times, axis=0) for tables in (paid, moves)), bounds)
            assert (often[times] <= plain * (1.0 + 1e-9) + 1e-15).all()
        seen = often[2] > 0.0  # elsewhere more was taken off than there is
        assert (plain - often[20] <= (plain - often[2]) / 10.0 + 1e-12)[seen].all()


@each_kind_of_steps
def test_errors_on_the_way_add_up_to_what_the_mean_model_misses(by_steps, rng):
    """Σ q_k·e_k = V_k(start) - V̂^{π_k}, q_k the occupancy measure of π_k in the mean model."""
    for model, paid, moves, (least, most) in problems(rng, 15, by_steps):
        bounds, shape = value_bounds(model.horizon, (least, most)), (model.horizon, model.states)
        chosen, values = np.empty(shape, np.int64), np.empty((model.horizon + 1, model.states))
        visits, errors = np.empty_like(values), np.empty(shape)
        for rewards, kernel, drawn in zip(paid, moves, models_of(model, paid, moves), strict=True):
            compiled.best_actions(kernel, rewards, model.raw[3], *bounds, chosen, values)
            compiled.follow(*model.raw[:3], chosen, values, visits, errors)
            policy, expected = clipped_optimum(drawn, least, most)
            np.testing.assert_array_equal(np.eye(model.actions)[chosen], policy)
            np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(visits[:-1], occupancy_measure(model, policy).sum(axis=2), atol=1e-13)
            missed = values[0] @ model.start - policy_value(model, policy)
            assert (visits[:-1] * errors).sum() == pytest.approx(missed, abs=1e-11)


def test_the_best_actions_are_optimal(rng):
    """If nothing is clipped."""
    for mdp in random_mdps(rng, 20, kernel="dense", rewards="uniform"):
        kernel, rewards, start, admissible = mdp.raw
        chosen, values = np.empty((mdp.horizon, mdp.states), np.int64), np.empty((mdp.horizon + 1, mdp.states))
        compiled.best_actions(kernel, rewards, admissible, *value_bounds(mdp.horizon), chosen, values)
        assert start @ values[0] == pytest.approx(optimal_policy(mdp)[1], rel=1e-12)
        assert mdp.admissible[np.arange(mdp.states), chosen].all()


def test_no_gain_where_all_draws_agree_with_the_mean_model(rng):
    for model in random_mdps(rng, 30):
        paid, moves = (np.repeat(table[None], 3, axis=0) for table in model.raw[1::-1])
        assert gains_of(model, paid, moves, value_bounds(model.horizon)).max() < 1e-25


def test_no_gain_from_models_that_promise_less(rng):
    """f_k <= f̂ with the same kernel: no optimum is underrated."""
    for model in random_mdps(rng, 20):
        kernel, rewards = model.raw[:2]
        paid = rewards * rng.random((4, *rewards.shape))
        assert gains_of(model, paid, np.repeat(kernel[None], 4, axis=0), value_bounds(model.horizon)).max() < 1e-25


@each_kind_of_steps
def test_gains_are_never_above_squared_errors(by_steps, rng):
    """v <= E[q_k·e_k²], tuple by tuple, and nothing where an action is inadmissible."""
    for model, paid, moves, (least, most) in problems(rng, 25, by_steps):
        draws = seen_by(model, models_of(model, paid, moves), least, most)
        squares = (draws.occupancies * draws.errors**2).mean(axis=0)
        gains = gains_of(model, paid, moves, value_bounds(model.horizon, (least, most)))
        assert (gains >= 0.0).all()
        assert (gains <= squares * (1.0 + 1e-9) + 1e-15).all()
        assert (gains[:, ~model.admissible] == 0.0).all()


def test_permuting_states_or_actions_permutes_gains(rng):
    for model, paid, moves, returns in problems(rng, 20, (True, True)):
        bounds = value_bounds(model.horizon, returns)
        gains = gains_of(model, paid, moves, bounds)
        s, a = rng.permutation(model.states), rng.permutation(model.actions)
        kernel, rewards = by_step(model)
        place = np.ix_(range(model.horizon), s, a)
        turned = TabularMDP(
            transitions=kernel[place][..., s],
            rewards=rewards[place],
            horizon=model.horizon,
            start=model.start[s],
            admissible=model.admissible[np.ix_(s, a)],
        )
        drawn = [np.ascontiguousarray(table) for table in (paid[:, *place], moves[:, *place][..., s])]
        np.testing.assert_allclose(gains_of(turned, *drawn, bounds), gains[place], rtol=1e-9, atol=1e-14)
