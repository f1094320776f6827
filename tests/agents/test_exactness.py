"""With the truth for a model, what the theory promises holds per episode, and holds exactly."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from omg_cmdp import OMG, Space, TabularMDP, Trajectory, optimal_policy, oracles, policy_value
from omg_cmdp.agents import Greedy, PosteriorSampling
from tests.agents.catalogue import build
from tests.random_mdps import random_mdp

GAMMAS = (1e-2, 0.3, 1.0, 10.0, 123.0, 1e3, 1e4, 1e5)


def knowing(mdp, gamma, episodes=None):
    """Return an agent whose model is `mdp`."""
    rewards = oracles.KnownRewards(mdp.rewards, horizon=mdp.horizon)
    dynamics = oracles.KnownDynamics(filled(mdp), horizon=mdp.horizon)
    return OMG(mdp.space, rewards, dynamics, gamma, episodes=episodes)


def filled(mdp):
    """Return the transitions with a row of probabilities where an action is inadmissible."""
    return np.where(mdp.admissible[:, :, None], mdp.transitions, np.eye(1, mdp.states)[0])


def inverse_gap_weighting(rewards, gamma):
    """Return p_a = 1/(λ + γ·gap_a), Σ p = 1."""
    gaps = gamma * (rewards.max() - rewards)
    root = brentq(lambda x: (1.0 / (x + gaps)).sum() - 1.0, 1e-9, len(gaps) + 1e-9, xtol=1e-15, rtol=1e-15)
    return 1.0 / (root + gaps)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_regret_of_the_truth_is_at_most_the_barriers_price(gamma, rng):
    """V* - V^π <= (n - H)/γ for the exact plan; one with γ·gap <= ε adds at most (2·√(nε) + H·√(2ε))/γ."""
    for _ in range(12):
        mdp = random_mdp(rng, states=int(rng.integers(2, 6)), actions=int(rng.integers(2, 5)), kernel="dense")
        decision = knowing(mdp, gamma, episodes=10**9).decide("c")
        n, horizon, slack = np.count_nonzero(decision.occupancy), mdp.horizon, decision.certificate
        regret = optimal_policy(mdp)[1] - policy_value(mdp, decision.policy)
        price = n - horizon + 2.0 * math.sqrt(n * slack) + slack + horizon * math.sqrt(2.0 * slack)
        assert -1e-9 <= regret <= price / gamma + 1e-9


def test_the_price_is_attained_by_a_bandit_in_the_limit(rng):
    """H = 1, A - 1 bad arms, γ·gap large: each bad arm costs gap·p = gap/(λ + γ·gap) → 1/γ."""
    mdp = TabularMDP(transitions=np.ones((1, 5, 1)), rewards=[[1.0, 0.0, 0.0, 0.0, 0.0]], horizon=1)
    regret = 1.0 - policy_value(mdp, knowing(mdp, 1e5, episodes=10**9).policy("c"))
    assert regret == pytest.approx(4.0 / 1e5, rel=1e-3)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_one_step_is_inverse_gap_weighting(gamma, rng):
    for actions in (2, 3, 7):
        rewards = rng.random((1, actions))
        mdp = TabularMDP(transitions=np.ones((1, actions, 1)), rewards=rewards, horizon=1)
        policy = knowing(mdp, gamma, episodes=10**13).policy("c")
        np.testing.assert_allclose(policy[0, 0], inverse_gap_weighting(rewards[0], gamma), atol=1e-7, rtol=0.0)


def test_one_step_from_several_states_and_among_admissible_actions(rng):
    """In state s the barrier weighs 1/γ against the start's mass: inverse gap weighting with γ·ρ(s)."""
    start, mask = np.array([0.25, 0.75]), np.array([[True, True, True], [False, True, True]])
    rewards = rng.random((2, 3))
    mdp = TabularMDP(transitions=np.full((2, 3, 2), 0.5), rewards=rewards, horizon=1, start=start, admissible=mask)
    policy = knowing(mdp, 40.0, episodes=10**13).policy("c")
    for s in range(2):
        expected = inverse_gap_weighting(rewards[s, mask[s]], 40.0 * start[s])
        np.testing.assert_allclose(policy[0, s, mask[s]], expected, atol=1e-7, rtol=0.0)
    assert policy[0, 1, 0] == 0.0


@pytest.mark.parametrize("kind", ["adaptive", "theory", "anytime", "float", "callable", "fixed object, episodes"])
@pytest.mark.parametrize("oracle", ["finite", "counts", "linear and softmax"])
def test_every_plan_is_certified(kind, oracle, rng):
    contexts, agent = build(kind, oracle, "restricted")
    for t in range(1, 60):
        decision = agent.decide(contexts[t % len(contexts)])
        assert decision.certificate <= 1.0 / (16.0 * (agent.episodes or t**2))
        agent.update(an_episode(rng, agent.space, contexts[t % len(contexts)], decision.policy))


@pytest.mark.parametrize("t", [10**3, 10**4, 10**5, 10**6])
@pytest.mark.parametrize("kind", ["adaptive", "float"])
def test_late_plans_are_certified_too(kind, t):
    """1/(16t²) is 6e-14 at t = 10⁶."""
    contexts, agent = build(kind)
    agent.episodes_seen = t - 1
    for context in contexts:
        assert agent.decide(context).certificate <= 1.0 / (16.0 * t**2)


def an_episode(rng, space, context, policy, low=0.0, high=1.0):
    """Return an episode with actions from `policy`, and rewards and next states from nowhere in particular."""
    states, actions = [int(rng.choice(space.states, p=space.start))], []
    for h in range(space.horizon):
        actions.append(int(rng.choice(space.actions, p=policy[h, states[-1]] / policy[h, states[-1]].sum())))
        states.append(int(rng.integers(space.states)))
    rewards = low + (high - low) * rng.random(space.horizon)
    return Trajectory(context=context, states=states, actions=actions, rewards=rewards)


@pytest.mark.parametrize("kind", ["adaptive", "anytime", "float", "greedy"])
@pytest.mark.parametrize("oracle", ["finite", "counts", "linear and softmax"])
def test_the_range_of_rewards_is_a_matter_of_units(kind, oracle, seed):
    """Rewards -2 + 7r in the range (-2, 5) teach what r teaches in (0, 1)."""
    (contexts, plain), (_, shifted) = build(kind, oracle), build(kind, oracle, reward_range=(-2, 5))
    for t in range(20):
        context = contexts[t % len(contexts)]
        np.testing.assert_allclose(shifted.policy(context), plain.policy(context), atol=1e-6)
        policy = plain.policy(context)
        for agent, low, high in ((plain, 0.0, 1.0), (shifted, -2.0, 5.0)):
            agent.update(an_episode(np.random.default_rng((seed, t)), agent.space, context, policy, low, high))


def test_greedy_plays_what_is_optimal_in_its_model(rng):
    mdp = random_mdp(rng, states=4, actions=3, horizon=5, masked=True, kernel_steps=False)
    known = oracles.KnownRewards(mdp.rewards, horizon=5), oracles.KnownDynamics(filled(mdp), horizon=5)
    for agent in (Greedy(mdp.space, *known), PosteriorSampling(mdp.space, *known)):
        assert policy_value(mdp, agent.policy("c")) == pytest.approx(optimal_policy(mdp)[1])


def test_posterior_sampling_draws_functions_as_often_as_their_weight():
    """Two equal functions before any data: each action is best in one of them."""
    space = Space(states=1, actions=2, horizon=1)
    rewards = oracles.FiniteRewards({"c": np.array([[[1.0, 0.0]], [[0.0, 1.0]]])}, horizon=1)
    dynamics = oracles.KnownDynamics(np.ones((1, 2, 1)), horizon=1)
    agents = [PosteriorSampling(space, rewards, dynamics, seed=seed) for seed in range(2000)]
    chosen = np.mean([agent.policy("c")[0, 0] for agent in agents], axis=0)
    assert abs(chosen[0] - 0.5) <= 4.0 * 0.5 / math.sqrt(2000)
    for _ in range(20):
        rewards.update("c", [0], [0], [1.0])
    assert np.mean([agent.policy("c")[0, 0, 0] for agent in agents]) == 1.0
