"""One step: the closed relations between SquareCB, FALCON, FastCB and OMG-CMDP!, which normalises inverse gaps."""

import math

import numpy as np
import pytest

from omg_cmdp import OMG, Space, Trajectory, oracles, simulate
from omg_cmdp.adversaries import IID, Sorted
from omg_cmdp.agents import Greedy, Power
from omg_lab.rivals import FALCON, FastCB, SquareCB
from omg_lab.rivals.bandits.inverse_gap import square_cb
from omg_lab.rivals.pc_igw import inverse_gap_weights
from omg_lab.worlds import ContextualBandit

GAMMAS = (1e-2, 0.3, 1.0, 10.0, 123.0, 1e3, 1e5)
RULES = (SquareCB, FALCON, FastCB)
MASK = np.array([[True, True, True, False], [False, True, True, False], [False, False, False, True]])


def knowing(kind, rewards, gamma, start=0, admissible=None, **more):
    """Return a bandit agent that believes `rewards` (S, A)."""
    states, actions = np.shape(rewards)
    space = Space(states=states, actions=actions, horizon=1, start=start, admissible=admissible)
    dynamics = oracles.KnownDynamics(np.full((states, actions, states), 1.0 / states), horizon=1)
    return kind(space, oracles.KnownRewards(rewards, horizon=1), dynamics, gamma, **more)


def probabilities(kind, rewards, gamma, **more):
    if kind is normalised:
        return np.stack([normalised(row, gamma) for row in rewards])
    return knowing(kind, rewards, gamma, **more).policy("c")[0]


def normalised(rewards, gamma):
    """p = 1/(λ + γ·gap), Σ p = 1, in one state."""
    return inverse_gap_weights(gamma * (rewards.max() - rewards))[0]


def closed_form(rewards, gamma):
    """SquareCB in one state, action by action."""
    best, actions = int(np.argmax(rewards)), len(rewards)
    p = [1.0 / (actions + gamma * (rewards[best] - reward)) for reward in rewards]
    return np.array([p[a] if a != best else 1.0 - sum(p[:a] + p[a + 1 :]) for a in range(actions)])


@pytest.mark.parametrize("gamma", GAMMAS)
def test_omg_is_normalised_inverse_gap_weighting(gamma, rng):
    for actions in (1, 2, 3, 7, 20):
        rewards = rng.random((1, actions))
        ours = probabilities(OMG, rewards, gamma, episodes=10**13)
        np.testing.assert_allclose(ours[0], normalised(rewards[0], gamma), atol=1e-7, rtol=0.0)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_from_several_states_omg_weighs_gaps_with_the_mass_of_the_state(gamma, rng):
    start, rewards = np.array([0.5, 0.2, 0.3]), rng.random((3, 4))
    omg = probabilities(OMG, rewards, gamma, episodes=10**13, start=start, admissible=MASK)
    for s in range(3):
        expected = normalised(rewards[s, MASK[s]], gamma * start[s])
        np.testing.assert_allclose(omg[s, MASK[s]], expected, atol=1e-7, rtol=0.0)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_squarecb_is_its_formula_in_every_state_and_among_admissible_actions(gamma, rng):
    rewards = rng.random((3, 4))
    ours = probabilities(SquareCB, rewards, gamma, start=[0.5, 0.2, 0.3], admissible=MASK)
    for s in range(3):
        np.testing.assert_allclose(ours[s, MASK[s]], closed_form(rewards[s, MASK[s]], gamma), rtol=1e-12)
    assert (ours[~MASK] == 0.0).all()


@pytest.mark.parametrize("gamma", GAMMAS)
def test_the_ratio_to_squarecb_lies_between_1_and_the_number_of_actions_over_lambda(gamma, rng):
    """p_IGW/p_SquareCB = (A + γ·gap)/(λ + γ·gap) for all but the best action; λ = 1/p_IGW(best)."""
    for actions in (2, 3, 7):
        rewards = rng.random((1, actions))
        igw, square = (probabilities(kind, rewards, gamma)[0] for kind in (normalised, SquareCB))
        best = int(np.argmax(rewards))
        others = np.arange(actions) != best
        normaliser = 1.0 / igw[best]
        assert 1.0 <= normaliser < actions
        gaps = rewards[0, best] - rewards[0, others]
        ratios = igw[others] / square[others]
        np.testing.assert_allclose(ratios, (actions + gamma * gaps) / (normaliser + gamma * gaps), rtol=1e-9)
        assert (ratios > 1.0).all()
        assert (ratios <= actions / normaliser * (1.0 + 1e-12)).all()
        assert igw[best] < square[best]


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("actions", [1, 2, 5])
def test_without_gaps_all_are_uniform(kind, actions):
    np.testing.assert_allclose(probabilities(kind, np.full((1, actions), 0.3), 50.0), 1.0 / actions, rtol=1e-12)


def test_two_actions_in_closed_form():
    """λ = ((2 - u) + √(u² + 4))/2, u = γ·gap; at u = 1 the golden ratio: .382 against 1/3."""
    for u in (1e-3, 0.5, 1.0, 7.0, 100.0):
        rewards = np.array([[0.5, 0.4]])
        igw, square = (probabilities(kind, rewards, u / 0.1)[0, 1] for kind in (normalised, SquareCB))
        assert igw == pytest.approx(1.0 / (u + ((2.0 - u) + math.hypot(u, 2.0)) / 2.0), rel=1e-9)
        assert square == pytest.approx(1.0 / (2.0 + u), rel=1e-9)
        if u == 1.0:
            assert igw == pytest.approx(2.0 - (1.0 + math.sqrt(5.0)) / 2.0, rel=1e-9)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_fastcb_is_squarecb_with_gamma_over_the_least_loss(gamma, rng):
    rewards = rng.random((3, 4))
    ours = probabilities(FastCB, rewards, gamma, start=[0.5, 0.2, 0.3], admissible=MASK)
    for s in range(3):
        losses = 1.0 - rewards[s, MASK[s]]
        expected = closed_form(rewards[s, MASK[s]], gamma / losses.min())
        np.testing.assert_allclose(ours[s, MASK[s]], expected, rtol=1e-9)
        others = losses > losses.min()  # the form of the paper: ŷ_b/(A·ŷ_b + γ·(ŷ_a - ŷ_b))
        paper = losses.min() / (len(losses) * losses.min() + gamma * (losses[others] - losses.min()))
        np.testing.assert_allclose(ours[s, MASK[s]][others], paper, rtol=1e-9)


def test_fastcb_hardly_explores_where_nothing_is_lost():
    p = probabilities(FastCB, np.array([[1.0, 0.5], [0.6, 0.1]]), 1.0, start=[0.5, 0.5])
    assert p[0, 1] == pytest.approx(2e-6, rel=1e-4)
    assert p[1, 1] == pytest.approx(1.0 / (2.0 + 0.5 / 0.4))


# The inequality behind their regret: max f* - ⟨p, f*⟩ <= price/γ + (γ/4)·Σ p·(f* - f̂)².

PRICES = {normalised: lambda p: len(p) - 1.0, SquareCB: lambda p: len(p) * (1.0 + p.max()) - 2.0}


def excess(p, guess, truth, gamma):
    """Return regret minus (γ/4)·Σ p·(f* - f̂)²."""
    return truth.max() - p @ truth - 0.25 * gamma * p @ (truth - guess) ** 2


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("kind", PRICES)
def test_regret_is_within_the_price_and_the_error(kind, gamma, rng):
    for _ in range(300):
        guess, truth = rng.random((2, int(rng.integers(2, 8))))
        truth = truth if rng.random() < 0.5 else np.clip(guess + rng.normal(size=len(guess)) / gamma, 0.0, 1.0)
        p = probabilities(kind, guess[None], gamma)[0]
        assert excess(p, guess, truth, gamma) <= PRICES[kind](p) / gamma + 1e-9


@pytest.mark.parametrize("kind", PRICES)
def test_the_price_is_attained(kind, rng):
    """f* - f̂ = (2/γ)·(d - p)/p with d a point mass on a bad action; for large γ it stays a reward in [0, 1]."""
    for gamma in (1e4, 1e6):
        guess = 0.5 + 0.1 * rng.random(5) / math.sqrt(gamma)  # γ·gap of order √γ: large, and yet f* is near f̂
        p = probabilities(kind, guess[None], gamma)[0]
        bad = int(np.argmin(guess))
        truth = guess + 2.0 / gamma * (np.eye(5)[bad] - p) / p
        assert truth.argmax() == bad
        assert truth.min() >= 0.0
        assert truth.max() <= 1.0
        assert excess(p, guess, truth, gamma) == pytest.approx(PRICES[kind](p) / gamma, rel=1e-6)


def test_squarecb_may_lose_more_than_a_over_gamma(rng):
    """The price A/γ with the error at γ/4 is too small for SquareCB: it is up to 2(A - 1)/γ."""
    gamma, guess = 1e6, np.array([0.5001, 0.5, 0.5])
    p = probabilities(SquareCB, guess[None], gamma)[0]
    truth = guess + 2.0 / gamma * (np.eye(3)[1] - p) / p
    assert excess(p, guess, truth, gamma) > 3.9 / gamma


def test_squarecb_on_a_run_stays_within_the_sum_of_its_prices(seed):
    """Σ regret <= Σ price/γ_t + Σ (γ_t/4)·E err², on any order of contexts."""
    world, episodes = ContextualBandit(seed=seed), 400
    for kind, price in ((SquareCB, 2.0 * (world.space.actions - 1)), (OMG, world.space.actions - 1.0)):
        agent = kind(world.space, *learners(world), Power(3.0, 0.5))
        table = simulate(world, Sorted(world.contexts, episodes), agent, episodes, seed=seed).table()
        bound = price / table.gamma + 0.25 * table.gamma * table.reward_error
        assert (table.regret <= bound + 1e-9).all()


def learners(world, kind=oracles.FiniteRewards):
    rewards = kind(world.reward_functions, horizon=1)
    return rewards, oracles.FiniteDynamics(world.transition_functions, horizon=1)


@pytest.mark.parametrize("kind", [SquareCB, FastCB])
def test_gamma_is_that_of_the_episode(kind):
    agent = knowing(kind, [[0.1, 0.2]], Power(3.0, 0.5))
    for t in range(1, 5):
        assert agent.decide("c").gamma == 3.0 * math.sqrt(t)
        agent.update(Trajectory(context="c", states=[0, 0], actions=[1], rewards=[1.0]))


# FALCON.


def test_falcon_changes_its_mind_at_doubling_epochs_only(rng):
    space = Space(states=1, actions=2, horizon=1)
    rewards = oracles.OfflineFiniteRewards({"c": rng.random((50, 1, 2))}, horizon=1)
    agent = FALCON(space, rewards, oracles.KnownDynamics(np.ones((1, 2, 1)), horizon=1), Power(10.0, 0.5))
    played, gammas = [], []
    for _ in range(64):
        decision = agent.decide("c")
        played.append(decision.policy[0, 0].tolist())
        gammas.append(decision.gamma)
        action = int(rng.integers(2))
        agent.update(Trajectory(context="c", states=[0, 0], actions=[action], rewards=[rng.random()]))
    # Episode t = 1 is for itself; epoch m is 2^(m-1) < t <= 2^m.
    for first, end in ((1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (32, 64)):
        assert played[first:end] == [played[first]] * (end - first)
        assert gammas[first:end] == [10.0 * math.sqrt(first)] * (end - first)
    assert gammas[0] == 10.0
    assert len({tuple(p) for p in played}) > 3


def test_falcon_is_squarecb_by_the_fit_of_the_epoch(rng):
    """At t = 9 it has learned from 8 episodes, at t = 16 still from 8."""
    tables, space = {"c": rng.random((50, 1, 3))}, Space(states=1, actions=3, horizon=1)
    dynamics = oracles.KnownDynamics(np.ones((1, 3, 1)), horizon=1)
    falcon = FALCON(space, oracles.OfflineFiniteRewards(tables, horizon=1), dynamics, 40.0)
    fit = oracles.OfflineFiniteRewards(tables, horizon=1)
    for t in range(15):
        action, reward = [int(rng.integers(3))], [rng.random()]
        falcon.update(Trajectory(context="c", states=[0, 0], actions=action, rewards=reward))
        if t < 8:
            fit.update("c", [0], action, reward)
    expected = closed_form(fit.predict("c")[0], 40.0)
    np.testing.assert_allclose(falcon.policy("c")[0, 0], expected, rtol=1e-12)


# Learning.


@pytest.mark.parametrize("kind", RULES)
def test_regret_per_episode_falls(kind, seed):
    world, episodes = ContextualBandit(seed=seed), 1500
    oracle = {FALCON: oracles.OfflineFiniteRewards, FastCB: oracles.LogLossRewards}.get(kind, oracles.FiniteRewards)
    agent = kind(world.space, *learners(world, oracle))
    regret = simulate(world, IID(world.contexts), agent, episodes, seed=seed).regret
    assert regret[episodes // 2 :].mean() < 0.25 * regret[:30].mean()
    assert regret[-100:].mean() < 0.02


def test_log_loss_rewards_have_logarithmic_regret_in_log_loss(rng):
    """Whatever the rewards, fractional ones included: at most log N above the best function."""
    functions = rng.uniform(0.02, 0.98, (16, 2, 3))
    for choose in (
        lambda forecast: float(forecast < 0.5),
        lambda forecast: rng.random(),
        lambda forecast: float(rng.random() < functions[3, 1, 2]),
        lambda forecast: 1.0 - forecast,
    ):
        oracle, own, best = oracles.LogLossRewards(lambda context: functions, horizon=1), 0.0, np.zeros(16)
        for _ in range(300):
            state, action = int(rng.integers(2)), int(rng.integers(3))
            forecast = oracle.predict("c")[state, action]
            reward = choose(forecast)
            own -= reward * math.log(forecast) + (1.0 - reward) * math.log(1.0 - forecast)
            said = functions[:, state, action]
            best -= reward * np.log(said) + (1.0 - reward) * np.log(1.0 - said)
            oracle.update("c", [state], [action], [reward])
        assert own - best.min() <= math.log(16) + 1e-9


def test_frozen_log_loss_rewards_pay_the_horizon(rng):
    """H steps by one forecast: at most H·log N, against an adversary who knows it."""
    functions, horizon = rng.uniform(0.02, 0.98, (16, 1, 1)), 8
    oracle, own, best = oracles.LogLossRewards(lambda context: functions, horizon=horizon), 0.0, np.zeros(16)
    for _ in range(200):
        forecast = oracle.predict("c")[0, 0]
        reward = float(forecast < 0.5)
        own -= horizon * math.log(forecast if reward else 1.0 - forecast)
        best -= horizon * np.log(functions[:, 0, 0] if reward else 1.0 - functions[:, 0, 0])
        oracle.update("c", [0] * horizon, [0] * horizon, [reward] * horizon)
    assert own - best.min() <= horizon * math.log(16)


# What is refused.


@pytest.mark.parametrize("kind", RULES)
def test_more_steps_than_one_are_refused(kind):
    space = Space(states=1, actions=2, horizon=2)
    known = oracles.KnownRewards(np.zeros((1, 2)), horizon=2), oracles.KnownDynamics(np.ones((1, 2, 1)), horizon=2)
    with pytest.raises(ValueError, match="`space` must have horizon 1 for a bandit, got 2"):
        kind(space, *known)


@pytest.mark.parametrize("gamma", [0.0, -1.0, math.nan, math.inf, "much"])
@pytest.mark.parametrize("kind", RULES)
def test_a_gamma_that_is_no_positive_number_is_refused(kind, gamma):
    with pytest.raises(ValueError, match="`gamma` must be a positive"):
        knowing(kind, [[0.1, 0.2]], gamma)
    with pytest.raises(ValueError, match=r"`gamma\(t\)` must be a positive"):
        knowing(kind, [[0.1, 0.2]], lambda t: gamma).policy("c")


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e300])
def test_extreme_gaps_leave_distributions(scale, rng):
    gaps = scale * rng.random((5, 6))
    gaps[np.arange(5), rng.integers(6, size=5)] = 0.0
    p = square_cb(gaps)
    assert (p >= 0.0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)


def test_greedy_is_the_limit(rng):
    rewards = rng.random((2, 4))
    greedy = knowing(lambda space, r, d, _: Greedy(space, r, d), rewards, None).policy("c")[0]
    for kind in RULES:
        np.testing.assert_allclose(probabilities(kind, rewards, 1e12), greedy, atol=1e-9)
