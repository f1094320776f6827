"""PC-IGW: the cover is what it should be, the inequalities of its analysis hold, and one policy is drawn and played."""

import functools
import itertools

import numpy as np
import pytest
from scipy.optimize import brentq

from lab.tests.rivals.catalogue import build
from library.tests.agents.models import an_episode, knowing, learning
from library.tests.random_mdps import KERNELS, by_step, random_mdp, random_policy
from omg_cmdp import OMG, TabularMDP, occupancy_measure, optimal_policy, oracles, policy_value, simulate
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import Greedy
from omg_cmdp.mdp import reachable_states
from omg_cmdp.mdp.bellman import best_response
from omg_lab.rivals import PCIGW
from omg_lab.rivals.pc_igw import inverse_gap_weights, policy_cover
from omg_lab.worlds import CombinationLock

GAMMAS = (1e-3, 1.0, 30.0, 1e3, 1e6)
TINY = ({"states": 2, "actions": 2, "horizon": 3}, {"states": 3, "actions": 2, "horizon": 2, "masked": True})


def tuples(mdp):
    """Return the mask (H, S, A) of Z, and n."""
    held = reachable_states(mdp)[:, :, None] & mdp.admissible
    return held, int(held.sum())


def every_policy(mdp):
    """Yield all deterministic policies (H, S, A)."""
    choices = [np.flatnonzero(mdp.admissible[s]) for s in range(mdp.states)] * mdp.horizon
    for actions in itertools.product(*choices):
        yield np.eye(mdp.actions)[list(actions)].reshape(mdp.horizon, mdp.states, mdp.actions)


def ratios(mdp, gamma, policies):
    """Return q_h(s, a)/(2n + γ·gap) of each policy, (K, H, S, A)."""
    best, (_, n) = optimal_policy(mdp)[1], tuples(mdp)
    found = [(occupancy_measure(mdp, policy), best - policy_value(mdp, policy)) for policy in policies]
    return np.array([q / (2 * n + gamma * gap) for q, gap in found])


def mean_occupancy(mdp, mixture):
    flows = [occupancy_measure(mdp, policy) for policy in mixture.policies]
    return np.tensordot(mixture.probabilities, flows, 1)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("size", TINY, ids=str)
def test_the_cover_holds_the_best_of_all_policies_for_every_tuple(size, gamma, rng):
    for _ in range(3):
        mdp = random_mdp(rng, **size)
        held, _ = tuples(mdp)
        ours = ratios(mdp, gamma, policy_cover(mdp, gamma).policies).max(axis=0)
        best = ratios(mdp, gamma, every_policy(mdp)).max(axis=0)
        np.testing.assert_allclose(ours[held], best[held], rtol=1e-9)


def dinkelbach(mdp, gamma, h, s, a):
    """Return max q_h(s, a)/(2n + γ·gap), with a plan of all steps for this tuple alone."""
    best, (_, n), (_, rewards) = optimal_policy(mdp)[1], tuples(mdp), by_step(mdp)
    ratio, bonus = 0.0, np.zeros(rewards.shape)
    bonus[h, s, a] = 1.0
    while True:
        policy, _ = best_response(mdp, ratio * gamma * rewards + bonus)
        mass = occupancy_measure(mdp, policy)[h, s, a]
        price = 2 * n + gamma * (best - policy_value(mdp, policy))
        if mass - ratio * price <= 1e-12 * mass:
            return ratio
        ratio = mass / price


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_search_for_all_actions_of_a_state_finds_what_one_for_each_finds(kernel, rng):
    for gamma in (1.0, 100.0, 1e4):
        mdp = random_mdp(rng, 4, 3, 5, kernel=kernel, rewards="uniform")
        ours = ratios(mdp, gamma, policy_cover(mdp, gamma).policies).max(axis=0)
        for place in zip(*np.nonzero(tuples(mdp)[0]), strict=True):
            assert ours[place] == pytest.approx(dinkelbach(mdp, gamma, *place), rel=1e-6, abs=1e-25)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_policies_differ_and_their_gaps_are_exact(gamma, rng):
    for _ in range(5):
        mdp = random_mdp(rng, states=int(rng.integers(1, 6)), horizon=4)
        policies, gaps, plans = policy_cover(mdp, gamma)
        best = optimal_policy(mdp)[1]
        np.testing.assert_allclose(gaps, [best - policy_value(mdp, policy) for policy in policies], atol=1e-12)
        assert (gaps >= 0.0).all()
        assert gaps[0] == 0.0
        assert len({policy.tobytes() for policy in policies}) == len(policies) <= tuples(mdp)[1] + 1
        assert plans <= 10 * mdp.horizon * mdp.states


def test_a_policy_that_serves_many_tuples_is_there_once(rng):
    """Nothing to choose: one policy. One state: one policy for each action that differs from the best in one step."""
    only = random_mdp(rng, states=3, actions=1, horizon=4)
    assert len(policy_cover(only, 10.0).policies) == 1
    bandit = TabularMDP(transitions=np.ones((1, 4, 1)), rewards=rng.random((1, 4)), horizon=6)
    assert len(policy_cover(bandit, 10.0).policies) == 1 + 6 * 3


@pytest.mark.parametrize("scale", [0.0, 1e-6, 1.0, 1e4, 1e12, 1e300])
def test_inverse_gap_weights_solve_their_equation(scale, rng):
    for count in (1, 2, 3, 40, 3000):
        gaps = np.append(0.0, scale * rng.random(count - 1))
        weights, normaliser = inverse_gap_weights(gaps)
        assert 1.0 <= normaliser <= count * (1.0 + 1e-12)
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(weights, 1.0 / (normaliser + gaps), rtol=1e-10)
        root = brentq(lambda x, gaps=gaps: (1.0 / (x + gaps)).sum() - 1.0, 0.5, count + 1.0, xtol=1e-14, rtol=1e-14)
        assert normaliser == pytest.approx(root, rel=1e-10)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_the_normaliser_lies_between_1_and_2n(gamma, rng):
    for _ in range(20):
        mdp = random_mdp(rng, states=int(rng.integers(1, 5)), actions=int(rng.integers(1, 4)), horizon=3)
        _, normaliser = inverse_gap_weights(gamma * policy_cover(mdp, gamma).gaps)
        assert 1.0 <= normaliser <= 2 * tuples(mdp)[1]


def check_the_two_inequalities(mdp, gamma, policies):
    """E_p gap <= 2n/γ (59), and q(π) <= q̄·(2n + γ·gap(π)) for every π (61)."""
    mixture = knowing(mdp, PCIGW, gamma).decide("c").mixture
    (held, n), best = tuples(mdp), optimal_policy(mdp)[1]
    gaps = [best - policy_value(mdp, policy) for policy in mixture.policies]
    assert mixture.probabilities @ gaps <= 2 * n / gamma + 1e-12
    covered = mean_occupancy(mdp, mixture)
    assert (covered[held] > 0.0).all()
    for policy in policies:
        occupancy, gap = occupancy_measure(mdp, policy), best - policy_value(mdp, policy)
        assert (occupancy <= covered * (2 * n + gamma * gap) * (1.0 + 1e-9) + 1e-28).all()


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("size", TINY, ids=str)
def test_little_is_lost_and_every_policy_is_covered(size, gamma, rng):
    for _ in range(3):
        mdp = random_mdp(rng, **size)
        check_the_two_inequalities(mdp, gamma, every_policy(mdp))


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_policy_is_covered_in_larger_models(kernel, rng):
    for gamma in GAMMAS:
        mdp = random_mdp(rng, 5, 3, 5, kernel=kernel)
        drawn = [random_policy(rng, mdp) for _ in range(10)]
        others = [best_response(mdp, rng.normal(size=(5, 5, 3)))[0] for _ in range(10)]
        check_the_two_inequalities(mdp, gamma, [optimal_policy(mdp)[0], *drawn, *others])


@pytest.mark.parametrize("gamma", GAMMAS)
def test_the_optimum_is_not_far_above_the_mixture_whatever_the_truth(gamma, rng):
    """V* - E_p V̂^π <= 4n/γ + (γH/4)·Σ q̄·err², err = (f* - f̂) + (P* - P̂)·V*, for truth and model drawn anew."""
    for _ in range(10):
        start = rng.dirichlet(np.ones(4))
        tables = [(rng.dirichlet(np.full(4, 0.3), (4, 3)), rng.random((4, 3))) for _ in range(2)]
        if rng.random() < 0.5:  # a model that is close
            share = 10.0 ** rng.uniform(-4, -1)
            tables[1] = tuple((1 - share) * true + share * other for true, other in zip(*tables, strict=True))
        truth, model = (TabularMDP(transitions=p, rewards=r, horizon=4, start=start) for p, r in tables)
        mixture = knowing(model, PCIGW, gamma).decide("c").mixture
        believed = mixture.probabilities @ [policy_value(model, policy) for policy in mixture.policies]
        values = best_response(truth, truth.reward_steps)[1]
        errors = (
            truth.rewards - model.rewards + np.einsum("sat,ht->hsa", truth.transitions - model.transitions, values[1:])
        )
        spent = (mean_occupancy(model, mixture) * errors**2).sum()
        bound = 4 * tuples(model)[1] / gamma + gamma * truth.horizon / 4 * spent
        assert optimal_policy(truth)[1] - believed <= bound + 1e-12


@pytest.mark.parametrize("gamma", [0.1, 10.0, 1e4])
def test_one_step_is_inverse_gap_weighting_as_for_omg(gamma, rng):
    mdp = TabularMDP(transitions=np.ones((1, 5, 1)), rewards=rng.random((1, 5)), horizon=1)
    mixture = knowing(mdp, PCIGW, gamma).decide("c").mixture
    known = oracles.KnownRewards(mdp.rewards, horizon=1), oracles.KnownDynamics(mdp.transitions, horizon=1)
    omg = OMG(mdp.space, *known, gamma, episodes=10**13).policy("c")
    np.testing.assert_allclose(np.tensordot(mixture.probabilities, mixture.policies, 1), omg, atol=1e-7)


def test_the_more_gamma_the_less_exploration(rng):
    mdp = random_mdp(rng, 3, 3, 3, kernel="dense", rewards="uniform")
    few, many = (knowing(mdp, PCIGW, gamma).decide("c").mixture for gamma in (1e12, 1e-12))
    assert few.probabilities[0] == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_array_equal(few.policies[0], optimal_policy(mdp)[0])
    np.testing.assert_allclose(many.probabilities, 1.0 / len(many.probabilities))


def test_a_policy_is_drawn_as_often_as_it_should(rng):
    mdp = random_mdp(rng, 2, 3, 2, kernel="dense", rewards="uniform")
    decisions = [knowing(mdp, PCIGW, 5.0, seed=seed).decide("c") for seed in range(1500)]
    policies, probabilities = decisions[0].mixture
    drawn = np.array([[np.array_equal(d.policy, policy) for policy in policies] for d in decisions])
    assert (drawn.sum(axis=1) == 1).all()
    np.testing.assert_allclose(drawn.mean(axis=0), probabilities, atol=4.0 * 0.5 / np.sqrt(1500))


def test_the_draw_belongs_to_the_episode(rng):
    """The same when asked again, another after an update, and a restored agent draws the same."""
    contexts, agent = build("PC-IGW")
    drawn = []
    for _ in range(30):
        policy = agent.policy("a")
        assert all(np.array_equal(agent.policy("a"), policy) for _ in range(3))
        drawn.append(policy.tobytes())
        agent.update(an_episode(rng, agent.space, contexts[0], policy))
    assert len(set(drawn)) > 5


@pytest.mark.parametrize("seed_given", [-1, 2.5, "three", None])
def test_seeds_that_are_none_are_refused(seed_given):
    with pytest.raises(ValueError, match="`seed` must be an integer of at least 0"):
        learning(CombinationLock(), PCIGW, seed=seed_given)


def test_regret_is_that_of_the_mixture():
    world = CombinationLock(context_count=2, transition_class_size=4)
    seen = []
    simulate(world, IID(world.contexts), learning(world, PCIGW), 30, observe=seen.append)
    for played in seen:
        policies, probabilities = played.decision.mixture
        values = [policy_value(played.truth.mdp, policy) for policy in policies]
        assert played.value == pytest.approx(probabilities @ values, abs=1e-12)


def test_the_lock_is_opened(seed):
    """Greedy always takes the exit; PC-IGW covers the positions behind the keys, and stops losing."""
    world = CombinationLock(seed=seed)
    run = functools.partial(simulate, world, IID(world.contexts), episodes=600, seed=seed)
    ours, greedy = run(agent=learning(world, PCIGW)).regret, run(agent=learning(world, Greedy)).regret
    assert ours[300:].sum() <= 0.25 * ours.sum()
    assert ours.sum() <= 0.5 * greedy.sum()
