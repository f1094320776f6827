"""What a plan must satisfy: closed forms, identities, bounds, metamorphic relations."""

import concurrent.futures

import numpy as np
import pytest
import threadpoolctl
from scipy.optimize import brentq

import omg_cmdp as omg
from library.tests.planning.problems import PROBLEMS, barrier_problem
from library.tests.random_mdps import by_step, random_mdp, random_mdps, random_policy, with_tables
from omg_cmdp.mdp import reachable_states
from omg_cmdp.mdp.thresholds import NEGLIGIBLE


def reachable(solution):
    return solution.occupancy > 0.0


def table_of(problem, name, default):
    value = getattr(problem, name)
    shape = (problem.mdp.horizon, problem.mdp.states, problem.mdp.actions)
    return np.broadcast_to(default if value is None else value, shape)


def test_the_solution_is_a_policy_with_its_own_occupancy(rng):
    for make in PROBLEMS * 15:
        problem = make(rng)
        solution = problem.plan()
        np.testing.assert_allclose(solution.policy.sum(axis=2), 1.0, atol=1e-12)
        assert (solution.policy[:, ~problem.mdp.admissible] == 0.0).all()
        expected = omg.occupancy_measure(problem.mdp, solution.policy)
        counts = reachable_states(problem.mdp)
        # What the uniform policy reaches with less than 1e-30 is left out, and what passes through it later on.
        left_out = expected[~counts].sum()
        assert left_out <= NEGLIGIBLE
        assert (solution.occupancy[~counts] == 0.0).all()
        np.testing.assert_allclose(solution.occupancy[counts], expected[counts], rtol=1e-9, atol=1e-29 + left_out)


def test_unreached_states_get_the_uniform_policy_over_admissible_actions(rng):
    for mdp in random_mdps(rng, 20, kernel="deterministic"):
        solution = omg.plan(mdp, gamma=10.0)
        unreached = solution.occupancy.sum(axis=2) == 0.0
        uniform = mdp.admissible / mdp.admissible.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(
            solution.policy[unreached], np.broadcast_to(uniform, solution.policy.shape)[unreached]
        )


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 30.0, 1e4, 1e9])
def test_one_step_is_inverse_gap_weighting(gamma, rng):
    """H = 1, one state: q_a = 1/(λ + γ·gap_a), λ in [1, A] the normaliser."""
    rewards = rng.random(6)
    gaps = gamma * (rewards.max() - rewards)
    normaliser = brentq(lambda x: (1.0 / (x + gaps)).sum() - 1.0, 1.0, 6.0, xtol=1e-15)
    mdp = omg.TabularMDP(transitions=np.ones((1, 6, 1)), rewards=rewards[None], horizon=1)
    np.testing.assert_allclose(
        omg.plan(mdp, gamma=gamma, tolerance=1e-14).policy[0, 0], 1.0 / (normaliser + gaps), rtol=1e-6
    )


def test_one_step_of_the_root_regulariser(rng):
    """H = 1, one state: q = u/(4z²), z = ν - r, with ν the normaliser."""
    rewards, u = rng.random(6), 10.0 ** rng.uniform(-4, 0, 6)
    nu = brentq(lambda v: (u / (4.0 * (v - rewards) ** 2)).sum() - 1.0, rewards.max() + 1e-9, 100.0, xtol=1e-15)
    mdp = omg.TabularMDP(transitions=np.ones((1, 6, 1)), rewards=rewards[None], horizon=1)
    plan = omg.plan(mdp, uncertainty=u[None], tolerance=1e-14)
    np.testing.assert_allclose(plan.policy[0, 0], u / (4.0 * (nu - rewards) ** 2), rtol=1e-5)


def test_the_first_order_identity(rng):
    """Σ w·p/q̂ = Σ w - γ·(V^p - V^q̂) for the occupancy p of every policy (the paper's inequality is an equality)."""
    for _ in range(40):
        problem = barrier_problem(rng)
        if problem.gamma > 1e4:
            continue
        solution = omg.plan(problem.mdp, problem.gamma, weights=problem.weights, tolerance=1e-16)
        z = reachable(solution)
        w, q = table_of(problem, "weights", 1.0)[z], solution.occupancy[z]
        for policy in (random_policy(rng, problem.mdp), omg.optimal_policy(problem.mdp)[0]):
            p = omg.occupancy_measure(problem.mdp, policy)[z]
            lost = omg.policy_value(problem.mdp, policy) - omg.policy_value(problem.mdp, solution.policy)
            left, right = (w * p / q).sum(), w.sum() - problem.gamma * lost
            assert left == pytest.approx(right, rel=1e-6, abs=1e-6 * w.sum())


def test_the_price_of_exploration_is_at_most_n_minus_h_over_gamma(rng):
    for mdp in random_mdps(rng, 40):
        for gamma in (1.0, 100.0, 1e4):
            solution = omg.plan(mdp, gamma=gamma)
            n, lost = reachable(solution).sum(), omg.optimal_policy(mdp)[1] - omg.policy_value(mdp, solution.policy)
            assert lost <= (n - mdp.horizon) / gamma + 1e-9


def test_the_weighted_guarantee_against_every_reward(rng):
    """V* - V^π <= Σ m(1 + q̂) + ¼·Σ q̂·err²/m for known dynamics, any weights and any true rewards."""
    for _ in range(40):
        problem = barrier_problem(rng)
        solution = problem.plan()
        truth = with_tables(problem.mdp, rewards=rng.random(problem.mdp.rewards.shape))
        z = reachable(solution)
        m, q = table_of(problem, "weights", 1.0)[z] / problem.gamma, solution.occupancy[z]
        error = (by_step(truth)[1] - by_step(problem.mdp)[1])[z]
        lost = omg.optimal_policy(truth)[1] - omg.policy_value(truth, solution.policy)
        assert lost <= (m * (1.0 + q) + 0.25 * q * error**2 / m).sum() + 1e-6


def test_the_root_plan_is_the_fixed_point_of_its_own_weights(rng):
    """Weights m = ½√(u·q̂) in the log barrier give back q̂."""
    for mdp in random_mdps(rng, 10, states=4, actions=3, horizon=4, kernel="dense"):
        u = 10.0 ** rng.uniform(-3, 0, (mdp.horizon, mdp.states, mdp.actions))
        root = omg.plan(mdp, uncertainty=u, tolerance=1e-13)
        m = np.where(reachable(root), 0.5 * np.sqrt(u * root.occupancy), 1.0)
        barrier = omg.plan(mdp, gamma=1.0, weights=m, tolerance=1e-13)
        np.testing.assert_allclose(barrier.occupancy, root.occupancy, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("regulariser", [{"gamma": 50.0}, {"uncertainty": 0.01}])
class TestMetamorphic:
    def plan(self, mdp, regulariser):
        if "uncertainty" in regulariser:
            regulariser = {"uncertainty": np.full((mdp.states, mdp.actions), regulariser["uncertainty"])}
        return omg.plan(mdp, tolerance=1e-13, **regulariser)

    def test_a_constant_added_to_a_steps_rewards_changes_nothing(self, regulariser, rng):
        for mdp in random_mdps(rng, 10, reward_steps=True, rewards="uniform"):
            half = with_tables(mdp, rewards=0.5 * mdp.rewards)
            raised = with_tables(mdp, rewards=0.5 * mdp.rewards + rng.uniform(0, 0.5, (mdp.horizon, 1, 1)))
            first, second = (self.plan(m, regulariser).occupancy for m in (half, raised))
            np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-9)

    def test_permuting_states_and_actions_permutes_the_plan(self, regulariser, rng):
        for mdp in random_mdps(rng, 10, kernel_steps=False, reward_steps=False):
            states, actions = rng.permutation(mdp.states), rng.permutation(mdp.actions)
            permuted = with_tables(
                mdp,
                transitions=mdp.transitions[np.ix_(states, actions, states)],
                rewards=mdp.rewards[np.ix_(states, actions)],
                start=mdp.start[states],
                admissible=mdp.admissible[np.ix_(states, actions)],
            )
            expected = self.plan(mdp, regulariser).occupancy[:, states][:, :, actions]
            np.testing.assert_allclose(self.plan(permuted, regulariser).occupancy, expected, rtol=1e-5, atol=1e-9)

    def test_duplicated_actions_share_equally(self, regulariser, rng):
        for mdp in random_mdps(rng, 10, kernel_steps=False, reward_steps=False, masked=False):
            twice = omg.TabularMDP(
                transitions=np.concatenate([mdp.transitions] * 2, axis=1),
                rewards=np.concatenate([mdp.rewards] * 2, axis=1),
                horizon=mdp.horizon,
                start=mdp.start,
            )
            first, second = np.split(self.plan(twice, regulariser).occupancy, 2, axis=2)
            np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-12)

    def test_step_dependent_tables_with_equal_steps_are_stationary(self, regulariser, rng):
        for mdp in random_mdps(rng, 10, kernel_steps=False, reward_steps=False):
            kernel, rewards = by_step(mdp)
            steps = with_tables(mdp, transitions=kernel, rewards=rewards)
            first, second = (self.plan(m, regulariser).occupancy for m in (mdp, steps))
            np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-9)

    def test_an_inadmissible_action_is_an_absent_one(self, regulariser, rng):
        for mdp in random_mdps(rng, 10, actions=2, kernel_steps=False, reward_steps=False, masked=False):
            mask = np.repeat([[True, True, False]], mdp.states, axis=0)
            more = omg.TabularMDP(
                transitions=np.concatenate([mdp.transitions, np.full((mdp.states, 1, mdp.states), np.nan)], axis=1),
                rewards=np.concatenate([mdp.rewards, np.full((mdp.states, 1), np.nan)], axis=1),
                horizon=mdp.horizon,
                start=mdp.start,
                admissible=mask,
            )
            expected = self.plan(mdp, regulariser).policy
            np.testing.assert_allclose(self.plan(more, regulariser).policy[:, :, :2], expected, rtol=1e-5, atol=1e-9)


def test_gamma_and_weights_scale_together(rng):
    mdp = random_mdp(rng, states=5, actions=3, horizon=5)
    weights = rng.uniform(0.5, 2.0, (5, 3))
    first = omg.plan(mdp, gamma=20.0, weights=weights, tolerance=1e-13)
    second = omg.plan(mdp, gamma=200.0, weights=10.0 * weights, tolerance=1e-12)
    np.testing.assert_allclose(first.occupancy, second.occupancy, rtol=1e-5)


class TestWarmStart:
    @pytest.mark.parametrize("make", PROBLEMS)
    def test_any_earlier_solution_gives_an_answer_as_good(self, make, rng):
        for _ in range(40):
            problem = make(rng)
            shape = {"states": problem.mdp.states, "actions": problem.mdp.actions, "horizon": problem.mdp.horizon}
            for other in (problem, make(rng, **shape)):
                solution = problem.plan(start=other.plan())
                assert solution.status is omg.Status.SOLVED
                assert solution.certificate <= problem.tolerance

    @pytest.mark.parametrize("number", [700, 1036, 1628])
    def test_where_a_warm_start_stalled_the_cold_answer_is_given(self, number):
        rng = np.random.default_rng(number)
        states, horizon = int(rng.integers(2, 9)), int(rng.integers(2, 6))
        transitions, rewards = np.eye(states)[rng.integers(states, size=(states, 2))], rng.random((states, 2))
        u = 10.0 ** rng.uniform(-20, 0, size=(states, 2)) * (rng.random((states, 2)) < 0.5)
        mdp = omg.TabularMDP(transitions=transitions, rewards=rewards, horizon=horizon)
        other = omg.plan(with_tables(mdp, rewards=rng.random((states, 2))), uncertainty=u, tolerance=1e-8)
        assert omg.plan(mdp, uncertainty=u, tolerance=1e-8, start=other).status is omg.Status.SOLVED

    def test_the_same_problem_needs_no_iteration(self, rng):
        for mdp in random_mdps(rng, 10, kernel="dense", states=5):
            solution = omg.plan(mdp, gamma=1e3)
            assert omg.plan(mdp, gamma=1e3, start=solution).iterations == 0

    def test_a_problem_that_moved_little_needs_fewer_iterations(self, rng):
        cold = warm = 0  # with dense kernels a plan takes one iteration, cold or warm
        for mdp in random_mdps(rng, 30, kernel="deterministic", rewards="uniform", states=6, actions=3, horizon=8):
            moved = with_tables(mdp, rewards=np.clip(mdp.rewards + 1e-4 * rng.standard_normal(mdp.rewards.shape), 0, 1))
            cold += omg.plan(moved, gamma=100.0).iterations
            warm += omg.plan(moved, gamma=100.0, start=omg.plan(mdp, gamma=100.0)).iterations
        assert warm < 0.7 * cold


def test_any_thread_gets_the_same_bits_and_leaves_blas_as_it_was(rng):
    mdp = random_mdp(rng, states=100, actions=3, horizon=8, kernel="dense")
    expected = omg.plan(mdp, gamma=1e3)
    before = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        solutions = list(pool.map(lambda _: omg.plan(mdp, gamma=1e3), range(9)))
    for solution in solutions:
        np.testing.assert_array_equal(solution.policy, expected.policy)
    assert [pool["num_threads"] for pool in threadpoolctl.threadpool_info()] == before


class TestPlanMany:
    @pytest.mark.parametrize("workers", [1, 2, 5])
    def test_the_answers_are_those_of_plan_bit_for_bit(self, workers, rng):
        mdps = [
            *random_mdps(rng, 40),
            *random_mdps(rng, 4, states=30, actions=3),
            random_mdp(rng, states=60, actions=2),
        ]
        for many, one in zip(
            omg.plan_many(mdps, gamma=100.0, workers=workers), [omg.plan(m, gamma=100.0) for m in mdps], strict=True
        ):
            np.testing.assert_array_equal(many.policy, one.policy)
            np.testing.assert_array_equal(many.values, one.values)
            assert many.certificate == one.certificate

    def test_options_are_those_of_plan(self, rng):
        mdps = random_mdps(rng, 3, states=4, actions=3, horizon=5)
        options = {"uncertainty": rng.uniform(0.1, 1.0, (4, 3)), "floor": 0.01, "tolerance": 1e-6}
        for many, mdp in zip(omg.plan_many(mdps, **options), mdps, strict=True):
            np.testing.assert_array_equal(many.policy, omg.plan(mdp, **options).policy)

    def test_nothing_to_plan(self):
        assert omg.plan_many([], gamma=1.0) == []


@pytest.mark.parametrize("gamma", [1e-300, 1e300])
def test_beyond_the_range_of_floats_nothing_is_claimed(gamma):
    solution = omg.plan(random_mdp(np.random.default_rng(0), 4, 2, 3), gamma=gamma)
    assert (solution.status is omg.Status.SOLVED) == (solution.certificate <= 1e-9)


@pytest.mark.parametrize("gamma", [1, np.float32(2.0), np.int64(3), np.array(4.0)])
def test_any_real_number_is_a_gamma(gamma):
    assert omg.plan(random_mdp(np.random.default_rng(0), 4, 2, 3), gamma=gamma).status is omg.Status.SOLVED
