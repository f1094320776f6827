"""A sample of `make fuzz`, and families of problems that random draws seldom reach."""

import numpy as np
import pytest

from library.tests.planning.fuzz import fuzz
from library.tests.planning.problems import PROBLEMS, barrier_problem, combination_lock, duality_gap
from omg_cmdp import Problem, Status, TabularMDP, certificate, occupancy_measure


@pytest.mark.parametrize("make", PROBLEMS)
def test_certificates_hold_on_random_problems(make, seed):
    failures, _ = fuzz(make, 300, first_seed=1_000_000 * (seed + 1))
    assert not failures


@pytest.mark.slow
@pytest.mark.parametrize("make", PROBLEMS)
def test_certificates_hold_on_twenty_thousand(make):
    failures, _ = fuzz(make, 20_000)
    assert not failures


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("states", [15, 16, 30, 60])
def test_certificates_hold_for_every_engine(make, states, rng):
    """Loops, BLAS and (from 48 states, for the sparse kernels) sparse rows."""
    for kernel in ("dense", "deterministic", "sparse"):
        problem = make(rng, states=states, actions=3, horizon=6, kernel=kernel)
        solution = problem.plan()
        assert solution.status is Status.SOLVED
        assert duality_gap(problem, solution) <= 1.01 * problem.tolerance


@pytest.mark.parametrize("slip", [0.0, 1e-9, 0.05])
@pytest.mark.parametrize("size", [(6, 3, 6), (10, 5, 20), (20, 2, 50), (30, 2, 100)])
@pytest.mark.parametrize("regulariser", [{"gamma": 1e-3}, {"gamma": 1e3}, {"gamma": 1e9}, {"uncertainty": "varied"}])
def test_combination_locks(size, slip, regulariser, rng):
    """Uniform play opens them with probability down to 5^-9 or 2^-29: the worst start for an interior-point method."""
    mdp = combination_lock(*size, slip=slip)
    if "uncertainty" in regulariser:
        regulariser = {"uncertainty": 10.0 ** rng.uniform(-10, 0, mdp.rewards.shape)}
    solution = Problem(mdp=mdp, tolerance=1e-7, **regulariser).plan()
    assert solution.status is Status.SOLVED


EXTREMES = {
    "one of everything": (1, 1, 1),
    "one state, one step": (1, 4, 1),
    "one step": (4, 3, 1),
    "one action": (4, 1, 5),
    "long": (4, 2, 200),
}


@pytest.mark.parametrize("size", EXTREMES.values(), ids=EXTREMES)
@pytest.mark.parametrize("noise", [0.0, 1e-300, 1e-100, 1e-29, 1e-20, 1e-8])
@pytest.mark.parametrize("rewards", ["uniform", "equal"])
def test_extremes_are_solved(size, noise, rewards, rng):
    states, actions, horizon = size
    first, second = (np.eye(states)[rng.integers(states, size=(states, actions))] for _ in range(2))
    mdp = TabularMDP(
        transitions=(1.0 - noise) * first + noise * second,
        rewards=rng.random((states, actions)) if rewards == "uniform" else np.full((states, actions), 0.5),
        horizon=horizon,
    )
    for gamma in (1e-3, 1.0, 1e3, 1e6, 1e9):
        assert Problem(mdp=mdp, gamma=gamma, tolerance=1 / 16e6).plan().status is Status.SOLVED
    for u in (0.0, 1e-12, 1.0, 1e6):
        problem = Problem(mdp=mdp, uncertainty=np.full((states, actions), u), tolerance=1e-8)
        assert problem.plan().status is Status.SOLVED


def test_beyond_double_precision_the_status_says_so_and_the_certificate_stays_true(rng):
    problem = barrier_problem(rng, states=5, actions=3, horizon=20, kernel="dense", rewards="uniform")
    problem = Problem(mdp=problem.mdp, gamma=1e12, tolerance=1e-16)
    solution = problem.plan()
    assert solution.status is Status.STALLED
    assert problem.tolerance < solution.certificate < 1.0
    assert duality_gap(problem, solution) == pytest.approx(solution.certificate, rel=0.1, abs=1e-5)


def test_a_state_rarer_than_the_threshold_counts_as_unreachable():
    transitions = np.zeros((3, 2, 3))
    transitions[:, :, 0], transitions[0, 1] = 1.0, [1.0 - 1e-20, 1e-20, 1e-31]
    mdp = TabularMDP(transitions=transitions, rewards=np.full((3, 2), 0.5), horizon=3)
    solution = Problem(mdp=mdp, gamma=100.0).plan()
    assert solution.status is Status.SOLVED
    assert (solution.occupancy[1:, 1] > 0.0).all()
    assert (solution.occupancy[:, 2] == 0.0).all()
    np.testing.assert_array_equal(solution.policy[:, 2], 0.5)


def test_a_plan_in_states_that_uniform_play_never_reaches_claims_nothing():
    """110 binary digits, then back to the start; one mistake leads to a trap. Uniform play gets there with 2^-110."""
    digits, last = np.arange(110), 110
    transitions, rewards = np.zeros((112, 2, 112)), np.zeros((112, 2))
    transitions[digits, 0, digits + 1] = transitions[digits, 1, 111] = 1.0
    transitions[last, :, 0] = transitions[111, :, 111] = 1.0
    rewards[digits, 0] = 0.5
    problem = Problem(mdp=TabularMDP(transitions=transitions, rewards=rewards, horizon=130), gamma=1e4)
    solution = problem.plan()
    assert solution.status is Status.STALLED
    assert solution.certificate == np.inf
    assert certificate(problem.mdp, solution.policy, solution.values, gamma=1e4) == np.inf
    np.testing.assert_allclose(solution.occupancy, occupancy_measure(problem.mdp, solution.policy), atol=1e-15)
