"""The entropy of the occupancy: certified plans, equal to cvxpy's, and unlike those for the entropy of actions."""

import math

import numpy as np
import pytest

from library.tests.agents.models import GAMMAS, divergence, entropies, learning, perturbed, policy_of, uniform
from library.tests.random_mdps import KERNELS, by_step, random_mdp, random_policy
from omg_cmdp import OMG, TabularMDP, occupancy_measure, optimal_policy, policy_value, simulate
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import Power
from omg_cmdp.mdp import reachable_states
from omg_lab.rivals import PCIGW, Boltzmann, OccupancyEntropy
from omg_lab.rivals.occupancy_entropy import TOLERANCE, entropy_plan
from omg_lab.worlds import CombinationLock


def score(mdp, gamma, policy):
    """Return γ·⟨q, r⟩ - Σ q·log q."""
    return gamma * policy_value(mdp, policy) + entropies(occupancy_measure(mdp, policy)).sum()


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_entropy_plan_is_certified_for_every_gamma(kernel, rng):
    for gamma in (*GAMMAS, 1e6, 1e9):
        for horizon in (1, 2, 5, 12):
            mdp = random_mdp(rng, states=int(rng.integers(1, 7)), horizon=horizon, kernel=kernel)
            policy, certificate, iterations = entropy_plan(mdp, gamma)
            assert certificate <= TOLERANCE
            assert iterations <= 15 * horizon
            best = score(mdp, gamma, policy)
            for other in (random_policy(rng, mdp), uniform(mdp), optimal_policy(mdp)[0], perturbed(rng, policy)):
                assert score(mdp, gamma, other) <= best + certificate + 1e-12 * gamma * horizon


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 10.0])
def test_what_is_short_of_the_entropy_plan_is_a_divergence(gamma, rng):
    """γ·(L(q*) - L(q)) = Σ q·log(q/q*) for the occupancy q of every policy."""
    for _ in range(5):
        mdp = random_mdp(rng, 4, 3, 4, kernel="dense", rewards="uniform")
        found = entropy_plan(mdp, gamma)[0]
        optimum = occupancy_measure(mdp, found)
        for policy in (random_policy(rng, mdp), uniform(mdp), optimal_policy(mdp)[0]):
            gap = divergence(occupancy_measure(mdp, policy), optimum).sum()
            assert score(mdp, gamma, found) - score(mdp, gamma, policy) == pytest.approx(gap, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("kernel", ["dense", "deterministic", "sparse"])
def test_the_entropy_plan_is_that_of_cvxpy(kernel, rng):
    cp = pytest.importorskip("cvxpy")
    for gamma in (0.5, 10.0):
        mdp = random_mdp(rng, 3, 2, 3, kernel=kernel, rewards="uniform")
        steps, rewards = by_step(mdp)
        layers = [cp.Variable((3, 2)) for _ in range(3)]
        held = reachable_states(mdp)[:, :, None] & mdp.admissible
        flows = [cp.sum(layers[0], axis=1) == mdp.start]
        flows += [cp.multiply(~held[h], layers[h]) == 0 for h in range(3)]
        for h in range(2):
            inflow = [cp.sum(cp.multiply(layers[h], steps[h, :, :, s])) for s in range(3)]
            flows.append(cp.sum(layers[h + 1], axis=1) == cp.hstack(inflow))
        gain = sum(gamma * cp.sum(cp.multiply(rewards[h], layers[h])) + cp.sum(cp.entr(layers[h])) for h in range(3))
        cp.Problem(cp.Maximize(gain), flows).solve(solver=cp.CLARABEL)
        policy, certificate, _ = entropy_plan(mdp, gamma)
        assert score(mdp, gamma, policy) >= gain.value - certificate - 1e-6
        theirs = np.array([layer.value for layer in layers])
        np.testing.assert_allclose(occupancy_measure(mdp, policy), theirs, atol=1e-4)


def fork(left, right):
    """Return an MDP without rewards: two actions lead to states with `left` and `right` actions."""
    actions = max(left, right)
    transitions = np.tile(np.eye(3)[[1, 1, 2]][:, None], (1, actions, 1))
    transitions[0, 1] = np.eye(3)[2]
    admissible = np.arange(actions) < np.array([[2], [left], [right]])
    return TabularMDP(transitions=transitions, rewards=np.zeros((3, actions)), horizon=2, admissible=admissible)


@pytest.mark.parametrize(("left", "right"), [(1, 4), (2, 2), (3, 5)])
def test_joint_entropy_counts_states_too(left, right):
    """2·h(p) + p·log m + (1-p)·log m' is largest at p ∝ √m, h(p) + p·log m + (1-p)·log m' (Boltzmann) at p ∝ m."""
    mdp = fork(left, right)
    roots = math.sqrt(left), math.sqrt(right)
    assert policy_of(OccupancyEntropy, mdp, 5.0)[0, 0, 0] == pytest.approx(roots[0] / sum(roots), abs=1e-4)
    assert policy_of(Boltzmann, mdp, 5.0)[0, 0, 0] == pytest.approx(left / (left + right))


def test_both_entropies_are_one_if_actions_do_not_move(rng):
    """Then the states' part is fixed, and so it is at one step."""
    kernel = np.repeat(rng.dirichlet(np.ones(3), (3, 1)), 2, axis=1)
    still = TabularMDP(transitions=kernel, rewards=rng.random((3, 2)), horizon=4, start=rng.dirichlet(np.ones(3)))
    for mdp in (still, random_mdp(rng, 3, 4, 1, start_distribution=True)):
        one, other = (occupancy_measure(mdp, policy_of(kind, mdp, 9.0)) for kind in (OccupancyEntropy, Boltzmann))
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_entropy_forgets_what_looks_bad_where_inverse_gaps_do_not(seed):
    """At the same γ = 30·√t the exponential is greedy on the lock."""
    world = CombinationLock(seed=seed)

    def regret(kind):
        return simulate(
            world, IID(world.contexts), learning(world, kind, Power(30.0, 0.5)), 400, seed=seed
        ).regret.sum()

    forgetful = min(regret(Boltzmann), regret(OccupancyEntropy))
    assert max(regret(PCIGW), regret(OMG)) <= 0.5 * forgetful
