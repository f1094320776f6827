"""The ablations do what their formulas say, and the two ends of every comparison are where they should be."""

import functools
import math

import numpy as np
import pytest

from omg_cmdp import (
    OMG,
    ContextualMDP,
    Space,
    TabularMDP,
    occupancy_measure,
    optimal_policy,
    oracles,
    policy_value,
    simulate,
)
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import (
    PCIGW,
    Boltzmann,
    EpsilonGreedy,
    Greedy,
    Informed,
    LocalIGW,
    OccupancyEntropy,
    Power,
    Uniform,
)
from omg_cmdp.agents.rivals.occupancy_entropy import TOLERANCE, entropy_plan
from omg_cmdp.environments import CombinationLock, Decoy, SoftmaxWorld
from omg_cmdp.mdp import reachable_states
from tests.agents.catalogue import HORIZON, SPACES, build
from tests.agents.rivals.test_pc_igw import on
from tests.agents.test_exactness import filled, inverse_gap_weighting
from tests.random_mdps import KERNELS, by_step, random_mdp, random_policy

BY_GAMMA = (LocalIGW, Boltzmann, OccupancyEntropy, PCIGW)
GAMMAS = (1e-3, 0.5, 10.0, 300.0, 1e5)


def plan(kind, mdp, *more):
    """Return the policy of an agent whose model is `mdp`."""
    rewards = oracles.KnownRewards(mdp.rewards, horizon=mdp.horizon)
    dynamics = oracles.KnownDynamics(filled(mdp), horizon=mdp.horizon)
    return kind(mdp.space, rewards, dynamics, *more).policy("c")


def uniform(mdp):
    return np.tile(mdp.admissible / mdp.admissible.sum(axis=1, keepdims=True), (mdp.horizon, 1, 1))


def entropies(p):
    return -(p * np.log(np.where(p > 0.0, p, 1.0)))


def divergence(p, q):
    """Return p·log(p/q), 0 where p is."""
    held = p > 0.0
    return np.where(held, p * np.log(np.where(held, p, 1.0) / np.where(held, q, 1.0)), 0.0)


# ε-greedy


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 7.0])
def test_epsilon_greedy_mixes_greedy_and_uniform_at_every_step(epsilon, rng):
    mdp, share = random_mdp(rng, 4, 3, 4), min(1.0, epsilon)
    expected = (1.0 - share) * optimal_policy(mdp)[0] + share * uniform(mdp)
    np.testing.assert_allclose(plan(EpsilonGreedy, mdp, epsilon), expected, atol=1e-15)


def test_epsilon_falls_with_the_cube_root_of_the_episodes():
    _, agent = build("epsilon-greedy", space="restricted")
    allowed = agent.space.admissible.sum(axis=1)
    for t in (1, 8, 27, 1000):
        agent.episodes_seen = t - 1
        policy = agent.policy("a")
        share = t ** (-1.0 / 3.0)
        for s, count in enumerate(allowed):
            np.testing.assert_allclose(policy[:, s].max(axis=1), 1.0 - share + share / count)


# Boltzmann


@pytest.mark.parametrize("gamma", GAMMAS)
def test_boltzmann_is_the_maximum_of_reward_and_entropy_of_the_actions(gamma, rng):
    """For every policy π: L(π*) - L(π) = (1/γ)·Σ q_π·log(π/π*), with L(π) = ⟨q, f̂⟩ - (1/γ)·Σ q·log π."""
    for _ in range(5):
        mdp = random_mdp(rng, 4, 3, 4, rewards="uniform")
        found = plan(Boltzmann, mdp, gamma)

        def score(policy, mdp=mdp):
            visits = occupancy_measure(mdp, policy).sum(axis=2, keepdims=True)
            return gamma * policy_value(mdp, policy) + (visits * entropies(policy)).sum()

        for policy in (random_policy(rng, mdp), uniform(mdp), optimal_policy(mdp)[0], perturbed(rng, found)):
            if (found[policy > 0.0] > 1e-280).all():
                visits = occupancy_measure(mdp, policy).sum(axis=2, keepdims=True)
                gap = (visits * divergence(policy, found)).sum()
                assert score(found) - score(policy) == pytest.approx(gap, rel=1e-6, abs=1e-9 * (1.0 + gamma))


def perturbed(rng, policy):
    moved = policy * np.exp(0.01 * rng.normal(size=policy.shape))
    return moved / moved.sum(axis=2, keepdims=True)


def test_boltzmann_at_one_step_is_softmax(rng):
    mdp = random_mdp(rng, 3, 4, 1, masked=True)
    scores = np.where(mdp.admissible, np.exp(7.0 * by_step(mdp)[1][0]), 0.0)
    np.testing.assert_allclose(plan(Boltzmann, mdp, 7.0)[0], scores / scores.sum(axis=1, keepdims=True))


# Local inverse gap weighting


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("masked", [False, True])
def test_local_igw_weighs_the_values_of_what_is_played_later(gamma, masked, rng):
    mdp = random_mdp(rng, 4, 3, 4, masked=masked, rewards="uniform")
    (kernel, rewards), values = by_step(mdp), np.zeros(4)
    policy = plan(LocalIGW, mdp, gamma)
    for h in reversed(range(4)):
        gains = rewards[h] + kernel[h] @ values
        for s in range(4):
            allowed = mdp.admissible[s]
            expected = inverse_gap_weighting(gains[s, allowed], gamma)
            np.testing.assert_allclose(policy[h, s, allowed], expected, rtol=1e-7)
        values = (policy[h] * gains).sum(axis=1)


@pytest.mark.parametrize("gamma", [0.1, 10.0, 1e4])
def test_local_igw_at_one_step_is_omg(gamma, rng):
    mdp = random_mdp(rng, 3, 4, 1, start_distribution=False)
    rewards, dynamics = oracles.KnownRewards(mdp.rewards, horizon=1), oracles.KnownDynamics(filled(mdp), horizon=1)
    omg = OMG(mdp.space, rewards, dynamics, gamma, episodes=10**13).policy("c")
    start = mdp.start.argmax()
    np.testing.assert_allclose(plan(LocalIGW, mdp, gamma)[0, start], omg[0, start], atol=1e-7)


def test_local_igw_is_blind_to_what_is_rarely_reached(rng):
    """The same policy wherever episodes start; OMG's barrier has it otherwise."""
    tables = {"transitions": rng.dirichlet(np.ones(3), (3, 2)), "rewards": rng.random((3, 2)), "horizon": 3}
    one, other = (TabularMDP(**tables, start=start) for start in ([1.0, 0.0, 0.0], [0.01, 0.9, 0.09]))
    np.testing.assert_array_equal(plan(LocalIGW, one, 20.0), plan(LocalIGW, other, 20.0))
    assert np.abs(plan(OMG, one, 20.0)[0, 0] - plan(OMG, other, 20.0)[0, 0]).max() > 0.01


# Entropy of the occupancy


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
    """Return an MDP without rewards: two actions lead to states with so many actions each."""
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
    assert plan(OccupancyEntropy, mdp, 5.0)[0, 0, 0] == pytest.approx(roots[0] / sum(roots), abs=1e-4)
    assert plan(Boltzmann, mdp, 5.0)[0, 0, 0] == pytest.approx(left / (left + right))


def test_both_entropies_are_one_if_actions_do_not_move(rng):
    """Then the states' part is fixed, and so it is at one step."""
    kernel = np.repeat(rng.dirichlet(np.ones(3), (3, 1)), 2, axis=1)
    still = TabularMDP(transitions=kernel, rewards=rng.random((3, 2)), horizon=4, start=rng.dirichlet(np.ones(3)))
    for mdp in (still, random_mdp(rng, 3, 4, 1, start_distribution=True)):
        one, other = (occupancy_measure(mdp, plan(kind, mdp, 9.0)) for kind in (OccupancyEntropy, Boltzmann))
        np.testing.assert_allclose(one, other, atol=1e-4)


# What they have in common


@pytest.mark.parametrize("kind", BY_GAMMA)
def test_a_large_gamma_is_greedy(kind, rng):
    mdp = random_mdp(rng, 3, 3, 4, kernel="dense", rewards="uniform")
    assert policy_value(mdp, plan(kind, mdp, 1e10)) == pytest.approx(optimal_policy(mdp)[1], abs=1e-6)


@pytest.mark.parametrize("kind", [LocalIGW, Boltzmann, OccupancyEntropy])
def test_a_small_gamma_is_uniform(kind, rng):
    kernel = np.repeat(rng.dirichlet(np.ones(3), (3, 1)), 2, axis=1)  # actions do not move: no state is to be preferred
    mdp = TabularMDP(transitions=kernel, rewards=rng.random((3, 2)), horizon=4)
    np.testing.assert_allclose(plan(kind, mdp, 1e-10), uniform(mdp), atol=1e-4)


@pytest.mark.parametrize("kind", BY_GAMMA)
def test_gamma_is_a_number_or_a_function_of_the_episode(kind):
    world = Decoy()
    fixed, growing, power = on(world, kind, 6.0), on(world, kind, lambda t: 2.0 * t), on(world, kind, Power(2, 1))
    for t, same in ((1, False), (3, True)):
        for agent in (fixed, growing, power):
            agent.episodes_seen = t - 1
        first, second, third = (agent.decide(0) for agent in (fixed, growing, power))
        assert second.gamma == third.gamma == 2.0 * t
        assert np.array_equal(second.policy, third.policy)
        assert (first.gamma == second.gamma) is same
    assert on(world, kind).decide(0).gamma == kind.usual(1)


BAD = (0.0, -1.0, np.nan, np.inf, "much", [1.0], True - 1)


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_other_numbers_are_refused_by_name(bad):
    world = Decoy()
    for kind, name in (*((kind, "gamma") for kind in BY_GAMMA), (EpsilonGreedy, "epsilon")):
        with pytest.raises(ValueError, match=f"`{name}` must be a positive, finite number"):
            on(world, kind, bad)
        agent = on(world, kind, lambda _: bad)
        with pytest.raises(ValueError, match=rf"`{name}\(t\)` must be a positive, finite number"):
            agent.policy(0)


def test_powers_are_checked():
    assert Power(8, -1.0 / 3.0)(27) == pytest.approx(8.0 / 3.0)
    for scale, exponent in ((0.0, 1.0), (-1.0, 1.0), (1.0, np.nan), (1.0, "half")):
        with pytest.raises(ValueError, match=r"`(scale|exponent)` must be"):
            Power(scale, exponent)


@pytest.mark.parametrize("kind", [*BY_GAMMA, EpsilonGreedy])
def test_what_was_tuned_is_part_of_the_make(kind, tmp_path):
    """Powers are known by their numbers; of other functions only that they are functions."""
    world, path = Decoy(), tmp_path / "agent"
    on(world, kind, Power(3, 0.5)).save(path)
    on(world, kind, Power(3.0, 0.5)).restore(path)
    for other in (3.0, Power(4.0, 0.5), lambda t: 3.0 * math.sqrt(t)):
        with pytest.raises(ValueError, match="`state` must come from"):
            on(world, kind, other).restore(path)
    on(world, kind, lambda t: t).save(path)
    on(world, kind, lambda t: 2.0 * t).restore(path)


# The two ends of every comparison


@pytest.mark.parametrize(
    "world", [Decoy(), CombinationLock(), SoftmaxWorld(misspecification=0.3)], ids=lambda world: type(world).__name__
)
def test_the_informed_have_no_regret_and_no_error(world):
    table = simulate(world, IID(world.contexts), Informed(world.space, world.mdp), 50).table()
    assert np.abs(table["regret"]).max() <= 1e-12
    assert table["reward_error"].max() == table["dynamics_error"].max() == 0.0


def test_the_informed_may_be_restricted_and_start_anywhere(rng):
    for _ in range(10):
        mdp = random_mdp(rng, 4, 3, 4, masked=True)
        policy = Informed(mdp.space, lambda _, mdp=mdp: mdp).policy("any")
        assert policy_value(mdp, policy) == pytest.approx(optimal_policy(mdp)[1], abs=1e-12)


def test_the_informed_need_a_function():
    mdp = Decoy().mdp(0)
    with pytest.raises(ValueError, match="`mdp` must be a function of the context, got TabularMDP"):
        Informed(mdp.space, mdp)


def test_uniform_regret_is_what_uniform_play_is_short_of():
    for world in (Decoy(), CombinationLock()):
        ledger = simulate(world, IID(world.contexts), on(world, Uniform), 40)
        for context, regret in zip(ledger.contexts, ledger.regret, strict=True):
            mdp = world.mdp(context)
            assert regret == pytest.approx(optimal_policy(mdp)[1] - policy_value(mdp, uniform(mdp)), abs=1e-12)


def test_uniform_leaves_out_what_is_not_admissible():
    space = SPACES["restricted"]
    _, agent = build("uniform", space="restricted")
    np.testing.assert_array_equal(agent.policy("a") > 0.0, np.tile(space.admissible, (HORIZON, 1, 1)))


def test_greedy_never_opens_the_lock_and_omg_does(seed):
    """Greedy's regret is linear, half of it in the second half; OMG's ends."""
    world = CombinationLock(seed=seed)
    run = functools.partial(simulate, world, IID(world.contexts), episodes=400, seed=seed)
    greedy, omg = (run(agent=on(world, kind)).regret for kind in (Greedy, OMG))
    assert greedy[200:].sum() >= 0.45 * greedy.sum() >= 0.45 * 400 * 0.5
    assert omg[200:].sum() <= 0.2 * omg.sum() <= 0.2 * 0.1 * greedy.sum()


def test_entropy_forgets_what_looks_bad_where_inverse_gaps_do_not(seed):
    """At the same γ = 30·√t the exponential is greedy on the lock."""
    world = CombinationLock(seed=seed)

    def regret(kind):
        return simulate(world, IID(world.contexts), on(world, kind, Power(30.0, 0.5)), 400, seed=seed).regret.sum()

    forgetful = min(regret(Boltzmann), regret(OccupancyEntropy))
    assert max(regret(PCIGW), regret(OMG)) <= 0.5 * forgetful


class Unpromising(ContextualMDP):
    """A safe arm that pays ½, and a risky one that pays .9; the class also holds a function by which it pays .1."""

    space = Space(states=1, actions=2, horizon=1)
    functions = np.array([[[0.5, 0.1]], [[0.5, 0.9]]])

    def mdp(self, context):
        return self.space.mdp(transitions=np.ones((1, 2, 1)), rewards=self.functions[1])


def test_a_fit_that_is_wrong_and_content_holds_greedy_for_ever():
    """On a finite class the offline fit commits to a function; nothing that greedy sees speaks against this one."""
    world, dynamics = Unpromising(), oracles.KnownDynamics(np.ones((1, 2, 1)), horizon=1)
    stuck = Greedy(world.space, oracles.OfflineFiniteRewards(lambda _: world.functions, horizon=1), dynamics)
    free = OMG(world.space, oracles.FiniteRewards(lambda _: world.functions, horizon=1), dynamics)
    regret = [simulate(world, IID(["c"]), agent, 300, seed=1).regret for agent in (stuck, free)]
    np.testing.assert_allclose(regret[0], 0.4)
    assert regret[1].sum() < 30.0
