import itertools

import numpy as np
import pytest

from library.tests.random_mdps import by_step, random_mdp, random_mdps, random_policy, with_tables
from omg_cmdp import TabularMDP, occupancy_measure, optimal_policy, policy_value
from omg_cmdp.mdp.bellman import best_response, value_bounds, value_ranges
from omg_cmdp.mdp.divergence import squared_hellinger

TINY = [(1, 1, 1), (1, 3, 2), (2, 2, 3), (3, 2, 2), (2, 3, 2)]


def deterministic_policies(mdp):
    """Yield every deterministic policy (H, S, A) of admissible actions."""
    choices = [np.flatnonzero(row) for row in mdp.admissible] * mdp.horizon
    for actions in itertools.product(*choices):
        yield np.eye(mdp.actions)[list(actions)].reshape(mdp.horizon, mdp.states, mdp.actions)


def value_by_trajectories(mdp, policy):
    """Return Σ Pr(trajectory)·(its rewards), over all trajectories one by one."""
    kernel, rewards = by_step(mdp)
    total = 0.0
    for states in itertools.product(range(mdp.states), repeat=mdp.horizon):
        for actions in itertools.product(range(mdp.actions), repeat=mdp.horizon):
            probability, collected = mdp.start[states[0]], 0.0
            for h, (s, a) in enumerate(zip(states, actions, strict=True)):
                probability *= policy[h, s, a] * (kernel[h, s, a, states[h + 1]] if h + 1 < mdp.horizon else 1.0)
                collected += rewards[h, s, a]
            total += probability * collected
    return total


def greedy_excess(mdp, policy):
    """Return max over (h, s) of max_a Q_h(s, a) - V_h(s), for the values of `policy`; zero iff it is optimal."""
    kernel, rewards = by_step(mdp)
    values, worst = np.zeros(mdp.states), 0.0
    for h in reversed(range(mdp.horizon)):
        q = rewards[h] + np.einsum("sat,t->sa", kernel[h], values)
        values = (policy[h] * q).sum(axis=1)
        worst = max(worst, (np.where(mdp.admissible, q, -np.inf).max(axis=1) - values).max())
    return worst


@pytest.mark.parametrize("sizes", TINY)
def test_policy_value_is_the_mean_over_all_trajectories(sizes, rng):
    for mdp in random_mdps(rng, 5, states=sizes[0], actions=sizes[1], horizon=sizes[2]):
        policy = random_policy(rng, mdp)
        assert policy_value(mdp, policy) == pytest.approx(value_by_trajectories(mdp, policy), abs=1e-12)


def test_policy_value_is_occupancy_times_reward(rng):
    for mdp in random_mdps(rng, 50):
        policy = random_policy(rng, mdp)
        inner_product = (occupancy_measure(mdp, policy) * mdp.reward_steps).sum()
        assert policy_value(mdp, policy) == pytest.approx(inner_product, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("sizes", TINY)
@pytest.mark.parametrize("masked", [False, True])
def test_optimal_value_is_the_best_of_all_deterministic_policies(sizes, masked, rng):
    for mdp in random_mdps(rng, 3, states=sizes[0], actions=sizes[1], horizon=sizes[2], masked=masked):
        best = max(policy_value(mdp, policy) for policy in deterministic_policies(mdp))
        assert optimal_policy(mdp)[1] == pytest.approx(best, abs=1e-13)


def test_no_random_policy_beats_the_optimal_value(rng):
    for mdp in random_mdps(rng, 50):
        best = optimal_policy(mdp)[1]
        assert all(policy_value(mdp, random_policy(rng, mdp)) <= best + 1e-12 for _ in range(5))


def test_optimal_value_is_the_value_of_the_optimal_policy(rng):
    for mdp in random_mdps(rng, 50):
        policy, value = optimal_policy(mdp)
        assert type(value) is float
        assert policy_value(mdp, policy) == pytest.approx(value, rel=1e-12, abs=1e-14)


def test_optimal_policy_is_greedy_in_every_state_reached_or_not(rng):
    for mdp in random_mdps(rng, 50):
        assert greedy_excess(mdp, optimal_policy(mdp)[0]) <= 1e-12


def test_optimal_policy_is_one_hot_on_admissible_actions(rng):
    for mdp in random_mdps(rng, 50):
        policy, _ = optimal_policy(mdp)
        assert policy.shape == (mdp.horizon, mdp.states, mdp.actions)
        assert set(np.unique(policy)) <= {0.0, 1.0}
        assert (policy.sum(axis=2) == 1.0).all()
        assert not policy[:, ~mdp.admissible].any()


def test_masks_cost_value_and_forbidden_rewards_tempt_nobody():
    mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=[[0.25, 1.0]], horizon=2, admissible=[[True, False]])
    policy, value = optimal_policy(mdp)
    assert value == 0.5
    assert policy.tolist() == [[[1.0, 0.0]], [[1.0, 0.0]]]


def test_an_admissible_action_without_reward_beats_an_inadmissible_one():
    """Inadmissible rows are kept as zeros, which must not tie with a true zero."""
    mdp = TabularMDP(transitions=np.ones((1, 2, 1)), rewards=[[1.0, 0.0]], horizon=2, admissible=[[False, True]])
    assert optimal_policy(mdp)[0].tolist() == [[[0.0, 1.0]], [[0.0, 1.0]]]


@pytest.mark.parametrize("mask", [None, [[False, True, True], [True, True, True]]])
def test_ties_go_to_the_lowest_admissible_action(mask):
    mdp = TabularMDP(transitions=np.full((2, 3, 2), 0.5), rewards=np.full((2, 3), 0.5), horizon=3, admissible=mask)
    actions = optimal_policy(mdp)[0].argmax(axis=2)
    np.testing.assert_array_equal(actions, np.tile([0 if mask is None else 1, 0], (3, 1)))


def test_of_identical_actions_the_lowest_is_chosen(rng):
    """Rounding must not depend on where in the table a row stands."""
    for states in [1, 4, 7, 15, 33] * 20:
        one = random_mdp(rng, states, 1, masked=False)
        copies = with_tables(
            one,
            transitions=one.transitions.repeat(3, axis=-2),
            rewards=one.rewards.repeat(3, axis=-1),
            admissible=None,
        )
        assert (optimal_policy(copies)[0].argmax(axis=2) == 0).all()


def test_equal_steps_are_a_stationary_mdp(rng):
    for mdp in random_mdps(rng, 30, kernel_steps=False, reward_steps=False):
        kernel, rewards = by_step(mdp)
        stepwise = with_tables(mdp, transitions=kernel, rewards=rewards)
        policy = random_policy(rng, mdp)
        assert policy_value(stepwise, policy) == policy_value(mdp, policy)
        for a, b in zip(optimal_policy(stepwise), optimal_policy(mdp), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_last_transition_is_never_used(rng):
    for mdp in random_mdps(rng, 20, kernel_steps=True):
        kernel = mdp.transitions.copy()
        kernel[-1] = np.eye(mdp.states)[0]
        policy = random_policy(rng, mdp)
        assert policy_value(with_tables(mdp, transitions=kernel), policy) == policy_value(mdp, policy)


def test_a_start_distribution_is_a_mixture_of_start_states(rng):
    for mdp in random_mdps(rng, 30, start_distribution=True):
        policy = random_policy(rng, mdp)
        from_each = [with_tables(mdp, start=state) for state in range(mdp.states)]
        values = [policy_value(one, policy) for one in from_each]
        best = [optimal_policy(one)[1] for one in from_each]
        assert policy_value(mdp, policy) == pytest.approx(mdp.start @ values, rel=1e-12, abs=1e-14)
        assert optimal_policy(mdp)[1] == pytest.approx(mdp.start @ best, rel=1e-12, abs=1e-14)


def test_equal_rewards_make_every_policy_worth_the_horizon(rng):
    for mdp in random_mdps(rng, 20, rewards="equal", masked=False):
        worth = mdp.horizon * mdp.rewards.flat[0]
        assert policy_value(mdp, random_policy(rng, mdp)) == pytest.approx(worth, rel=1e-12)
        assert optimal_policy(mdp)[1] == pytest.approx(worth, rel=1e-12)


BAD_POLICIES = [
    (np.full((2, 3), 1 / 3), "shape (4, 2, 3)", "(2, 3)"),
    (np.full((4, 2, 2), 0.5), "shape (4, 2, 3)", "(4, 2, 2)"),
    (np.full((4, 2, 3), 0.25), "sum to 1", "0.75", "(0, 0)"),
    (np.full((4, 2, 3), [1.5, -0.5, 0.0]), "non-negative", "-0.5", "(0, 0, 1)"),
    (np.full((4, 2, 3), [np.nan, 1.0, 0.0]), "finite", "nan", "(0, 0, 0)"),
    (np.full((4, 2, 3), [0.0, np.inf, 0.0]), "finite", "inf", "(0, 0, 1)"),
    (np.full((4, 2, 3), [0.5, 0.25, 0.25]), "inadmissible", "0.25", "(0, 1, 2)"),
    ([[1.0], [0.5, 0.5]], "real numbers", "list"),
    ("uniform", "real numbers", "str"),
]


@pytest.mark.parametrize("use", [policy_value, occupancy_measure])
@pytest.mark.parametrize(("policy", "fragments"), [(bad, rest) for bad, *rest in BAD_POLICIES])
def test_bad_policies_are_refused(use, policy, fragments):
    mdp = TabularMDP(
        transitions=np.full((2, 3, 2), 0.5),
        rewards=np.zeros((2, 3)),
        horizon=4,
        admissible=[[True, True, True], [True, True, False]],
    )
    with pytest.raises(ValueError, match="`policy`") as refusal:
        use(mdp, policy)
    assert all(fragment in str(refusal.value) for fragment in fragments)


@pytest.mark.parametrize("states", [3, 15, 16, 37])
def test_best_responses_to_any_rewards_are_those_of_plain_numpy(states, rng):
    """Fewer states than `SHORT` and more; rows that do not come in fours; zeros at both ends of rows."""
    transitions = rng.random((2, states, 3, states)) * (rng.random((2, states, 3, states)) < 0.2)
    transitions[..., states // 2] += 0.1
    transitions = np.tile(transitions / transitions.sum(axis=-1, keepdims=True), (2, 1, 1, 1))
    mdp = TabularMDP(transitions=transitions, rewards=np.zeros((states, 3)), horizon=4)
    rewards, bounds = rng.normal(size=(4, states, 3)), some_bounds(rng, mdp)
    policy, values = best_response(mdp, rewards, bounds=bounds)
    for h in range(4):
        action_values = rewards[h] + mdp.transition_steps[h] @ values[h + 1]
        np.testing.assert_array_equal(policy[h].argmax(axis=1), action_values.argmax(axis=1))
        expected = np.clip(action_values.max(axis=1), bounds.lows[h], bounds.highs[h])
        np.testing.assert_allclose(values[h], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_value_bounds_are_attained_and_never_left(horizon):
    """Over all sequences of H rewards that add up to something in the range."""
    grid = np.array(list(itertools.product([0.0, 0.5, 1.0], repeat=horizon)))
    tails = np.hstack([grid[:, ::-1].cumsum(axis=1)[:, ::-1], np.zeros((len(grid), 1))])  # what is earned from h on
    for returns in itertools.combinations_with_replacement(np.arange(0.0, horizon + 0.5, 0.5), 2):
        allowed = tails[(returns[0] <= tails[:, 0]) & (tails[:, 0] <= returns[1])]
        lows, highs = value_bounds(horizon, returns)
        np.testing.assert_array_equal(lows, allowed.min(axis=0))
        np.testing.assert_array_equal(highs, allowed.max(axis=0))
    np.testing.assert_array_equal(value_bounds(horizon), value_bounds(horizon, (0.0, horizon)))


def test_bounds_that_hold_in_the_truth_keep_its_optimum(rng):
    """If every episode of an MDP earns something in `returns`, clipped values are those of its reachable states."""
    binding = 0
    for mdp in random_mdps(rng, 100):
        least, most = earned(mdp, np.min), earned(mdp, np.max)
        policy, value = optimal_policy(mdp, bounds=value_bounds(mdp.horizon, (least, most)))
        assert value == pytest.approx(optimal_policy(mdp)[1], abs=1e-9)
        assert policy_value(mdp, policy) == pytest.approx(value, abs=1e-9)
        elsewhere = best_response(mdp, mdp.raw[1])[1].max(axis=1)
        binding += (elsewhere > value_bounds(mdp.horizon, (least, most)).highs + 1e-6).any()
    assert binding  # in states that cannot be reached, clipped values are others


def earned(mdp, extreme):
    """Return the least or the most that an episode can earn, whatever is played and happens."""
    kernel, rewards = by_step(mdp)
    values = np.zeros(mdp.states)
    none = -np.inf if extreme is np.max else np.inf
    for h in reversed(range(mdp.horizon)):
        after = extreme(np.where(kernel[h] > 0.0, values, none), axis=2)
        values = extreme(np.where(mdp.admissible, rewards[h] + after, none), axis=1)
    return extreme(values[mdp.start > 0.0])


def some_bounds(rng, mdp):
    return value_bounds(mdp.horizon, tuple(np.sort(rng.uniform(0.0, mdp.horizon, 2))))


@pytest.mark.parametrize("sizes", TINY)
def test_value_ranges_are_those_of_all_policies(sizes, rng):
    horizon, states, actions = sizes
    mdp = random_mdp(rng, states=states, actions=actions, horizon=horizon)
    for bounds in (None, some_bounds(rng, mdp)):
        values = np.array([values_of(mdp, policy, bounds) for policy in deterministic_policies(mdp)])
        expected = values[:, 1:].max(axis=(0, 2)) - values[:, 1:].min(axis=(0, 2))
        np.testing.assert_allclose(value_ranges(mdp, bounds=bounds), expected, atol=1e-12)


def test_an_error_of_the_transitions_costs_at_most_the_range(rng):
    """|(P - P')V|² <= range(V)²·D²(P, P')."""
    for _ in range(50):
        one, other = rng.dirichlet(np.full(4, rng.choice([0.05, 1.0])), 2)
        values = rng.normal(size=4)
        cost = (values.max() - values.min()) ** 2 * squared_hellinger(one, other)
        assert ((one - other) @ values) ** 2 <= cost * (1.0 + 1e-12)


def values_of(mdp, policy, bounds=None):
    """Return V_h(s), of shape (H + 1, S), clipped to `bounds` step by step."""
    kernel, rewards = by_step(mdp)
    values = np.zeros((mdp.horizon + 1, mdp.states))
    for h in reversed(range(mdp.horizon)):
        values[h] = (policy[h] * (rewards[h] + kernel[h] @ values[h + 1])).sum(axis=1)
        values[h] = values[h] if bounds is None else np.clip(values[h], bounds.lows[h], bounds.highs[h])
    return values
