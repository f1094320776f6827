import itertools

import numpy as np
import pytest

from library.tests.random_mdps import by_step, random_mask, random_mdp, random_mdps, random_policy, with_tables
from omg_cmdp import TabularMDP, occupancy_measure, optimal_policy
from omg_cmdp.mdp import reachable_states


def small_support_mdp(rng, states=4, actions=2, horizon=4):
    """Return an MDP whose positive probabilities are at least 1/S, so that no path is rarer than 1e-30."""
    shape = (horizon, states, actions) if rng.random() < 0.5 else (states, actions)
    support = (rng.random((*shape, states)) < 0.15) | np.eye(states, dtype=bool)[rng.integers(states, size=shape)]
    start = rng.random(states) < 0.3
    start[rng.integers(states)] = True
    return TabularMDP(
        transitions=support / support.sum(axis=-1, keepdims=True),
        rewards=np.zeros((states, actions)),
        horizon=horizon,
        start=start / start.sum(),
        admissible=random_mask(rng, states, actions),
    )


def states_on_possible_paths(mdp):
    """Return the mask (H, S) of states that lie, at their step, on a path of positive probability."""
    kernel, _ = by_step(mdp)
    possible = ((kernel > 0.0) & mdp.admissible[:, :, None]).any(axis=2)
    reached = np.zeros((mdp.horizon, mdp.states), dtype=bool)
    for path in itertools.product(range(mdp.states), repeat=mdp.horizon):
        if mdp.start[path[0]] > 0.0:
            for h, state in enumerate(path):
                reached[h, state] = True
                if h + 1 < mdp.horizon and not possible[h, state, path[h + 1]]:
                    break
    return reached


def chain(*rows, horizon, start=0, **options):
    """Return the MDP with one action whose kernel has these rows."""
    table = np.array(rows, dtype=float)[:, None, :]
    return TabularMDP(transitions=table, rewards=np.zeros(table.shape[:2]), horizon=horizon, start=start, **options)


def test_flow_is_conserved(rng):
    """What enters a state leaves it: Σ_a q_0 = start, Σ_a q_{h+1}(s') = Σ_{s,a} q_h(s, a)·P_h(s'|s, a)."""
    for mdp in random_mdps(rng, 50):
        kernel, _ = by_step(mdp)
        q = occupancy_measure(mdp, random_policy(rng, mdp))
        np.testing.assert_allclose(q[0].sum(axis=1), mdp.start, rtol=1e-14)
        inflow = np.einsum("hsa,hsat->ht", q[:-1], kernel[:-1])
        np.testing.assert_allclose(q[1:].sum(axis=2), inflow, rtol=1e-12, atol=1e-300)


def test_each_step_is_a_distribution_over_admissible_pairs(rng):
    for mdp in random_mdps(rng, 50):
        q = occupancy_measure(mdp, random_policy(rng, mdp))
        assert q.shape == (mdp.horizon, mdp.states, mdp.actions)
        assert (q >= 0.0).all()
        assert not q[:, ~mdp.admissible].any()
        np.testing.assert_allclose(q.sum(axis=(1, 2)), 1.0, rtol=1e-12)


def test_conditioned_on_the_state_the_occupancy_is_the_policy(rng):
    for mdp in random_mdps(rng, 50):
        policy = random_policy(rng, mdp)
        q = occupancy_measure(mdp, policy)
        visits = q.sum(axis=2, keepdims=True)
        seen = visits[:, :, 0] > 1e-250  # below, products lose digits to underflow
        np.testing.assert_allclose((q / np.where(visits > 0.0, visits, 1.0))[seen], policy[seen], rtol=1e-12)


def test_a_deterministic_policy_in_a_deterministic_mdp_follows_one_path(rng):
    for mdp in random_mdps(rng, 20, kernel="deterministic", start_distribution=False):
        kernel, _ = by_step(mdp)
        policy, _ = optimal_policy(mdp)
        q = occupancy_measure(mdp, policy)
        state = mdp.start.argmax()
        for h in range(mdp.horizon):
            action = policy[h, state].argmax()
            assert q[h, state, action] == 1.0
            assert np.count_nonzero(q[h]) == 1
            state = kernel[h, state, action].argmax()


def test_equal_steps_are_a_stationary_mdp(rng):
    for mdp in random_mdps(rng, 20, kernel_steps=False):
        policy = random_policy(rng, mdp)
        stepwise = with_tables(mdp, transitions=by_step(mdp)[0])
        np.testing.assert_array_equal(occupancy_measure(stepwise, policy), occupancy_measure(mdp, policy))
        np.testing.assert_array_equal(reachable_states(stepwise), reachable_states(mdp))


def test_a_start_distribution_is_a_mixture_of_start_states(rng):
    for mdp in random_mdps(rng, 20, start_distribution=True):
        policy = random_policy(rng, mdp)
        from_each = [occupancy_measure(with_tables(mdp, start=state), policy) for state in range(mdp.states)]
        mixture = np.einsum("s,shta->hta", mdp.start, from_each)
        np.testing.assert_allclose(occupancy_measure(mdp, policy), mixture, rtol=1e-12, atol=1e-300)


def test_the_result_may_be_written_to_without_harm(rng):
    mdp = random_mdp(rng)
    policy = random_policy(rng, mdp)
    before = policy.copy()
    occupancy_measure(mdp, policy)[...] = -1.0
    np.testing.assert_array_equal(policy, before)
    assert (occupancy_measure(mdp, policy) >= 0.0).all()


def test_reachable_states_are_those_on_possible_paths(rng):
    for _ in range(40):
        mdp = small_support_mdp(rng)
        np.testing.assert_array_equal(reachable_states(mdp), states_on_possible_paths(mdp))


def test_every_policy_visits_only_reachable_states(rng):
    for mdp in random_mdps(rng, 50):
        visits = occupancy_measure(mdp, random_policy(rng, mdp)).sum(axis=2)
        assert (visits[~reachable_states(mdp)] < 1e-20).all()


EACH_SIDE_OF_1E_30 = pytest.mark.parametrize(
    ("probability", "reached"), [(1e-31, False), (1e-30, True), (1e-29, True), (1e-300, False), (0.0, False)]
)


@EACH_SIDE_OF_1E_30
def test_a_start_rarer_than_1e_30_is_unreachable(probability, reached):
    mdp = chain([1, 0], [0, 1], horizon=1, start=[1.0, probability])
    assert reachable_states(mdp).tolist() == [[True, reached]]


@EACH_SIDE_OF_1E_30
def test_a_transition_rarer_than_1e_30_reaches_nothing(probability, reached):
    mdp = chain([1.0, probability], [0, 1], horizon=2)
    assert reachable_states(mdp).tolist() == [[True, False], [True, reached]]


@pytest.mark.parametrize(("second", "reached"), [(1e-16, False), (1e-14, True)])
def test_small_probabilities_multiply_along_a_path(second, reached):
    mdp = chain([1.0, 1e-15, 0], [0, 1.0, second], [0, 0, 1], horizon=3)
    assert reachable_states(mdp)[2].tolist() == [True, True, reached]


def test_rare_starts_that_add_up_are_reachable_only_if_each_is():
    """Two ways of 6e-31 into state 2 make 1.2e-30, yet what passes through an unreachable state does not count."""
    rows = ([1, 0, 0], [0, 0, 1], [0, 0, 1])
    twice = chain([1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1], horizon=2, start=[1.0, 6e-31, 6e-31, 0.0])
    once = chain(*rows, horizon=2, start=[1.0, 1.2e-30, 0.0])
    assert reachable_states(twice).tolist() == [[True, False, False, False]] * 2
    assert reachable_states(once).tolist() == [[True, True, False], [True, False, True]]


def test_two_rare_ways_from_reachable_states_add_up():
    mdp = chain([0.5, 0.5, 1.2e-30], [0.5, 0.5, 1.2e-30], [0, 0, 1], horizon=2, start=[0.5, 0.5, 0.0])
    assert reachable_states(mdp)[1].all()


@pytest.mark.parametrize(("mask", "reached"), [(None, False), ([[True] + [False] * 9, [True] * 10], True)])
def test_rarity_is_measured_under_the_uniform_policy_on_admissible_actions(mask, reached):
    transitions = np.zeros((2, 10, 2))
    transitions[0, :, 0] = transitions[1, :, 1] = 1.0
    transitions[0, 0, 1] = 5e-30
    mdp = TabularMDP(transitions=transitions, rewards=np.zeros((2, 10)), horizon=2, admissible=mask)
    assert reachable_states(mdp)[1].tolist() == [True, reached]
