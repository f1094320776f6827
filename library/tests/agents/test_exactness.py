"""With the truth for a model, what the theory promises holds per episode, and holds exactly."""

import math

import numpy as np
import pytest

from library.tests.agents.catalogue import build
from library.tests.agents.models import an_episode, inverse_gap_weighting, knowing
from library.tests.random_mdps import random_mdp
from omg_cmdp import OMG, TabularMDP, optimal_policy, policy_value
from omg_cmdp.agents import Greedy, PosteriorSampling
from omg_cmdp.agents.exploration.base import ROUNDS

ROOTS = "uncertainty weighted"
"""The rule whose roots are planned to the tolerance of the theorem."""
GAMMAS = (1e-2, 0.3, 1.0, 10.0, 123.0, 1e3, 1e4, 1e5)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_regret_of_the_truth_is_at_most_the_barriers_price(gamma, rng):
    """V* - V^π <= (n - H)/γ for the exact plan; one with γ·gap <= ε adds at most (2·√(nε) + H·√(2ε))/γ."""
    for _ in range(12):
        mdp = random_mdp(rng, states=int(rng.integers(2, 6)), actions=int(rng.integers(2, 5)), kernel="dense")
        decision = knowing(mdp, OMG, gamma, episodes=10**9).decide("c")
        n, horizon, slack = np.count_nonzero(decision.occupancy), mdp.horizon, decision.certificate
        regret = optimal_policy(mdp)[1] - policy_value(mdp, decision.policy)
        price = n - horizon + 2.0 * math.sqrt(n * slack) + slack + horizon * math.sqrt(2.0 * slack)
        assert -1e-9 <= regret <= price / gamma + 1e-9


def test_the_price_is_attained_by_a_bandit_in_the_limit(rng):
    """H = 1, A - 1 bad arms, γ·gap large: each bad arm costs gap·p = gap/(λ + γ·gap) → 1/γ."""
    mdp = TabularMDP(transitions=np.ones((1, 5, 1)), rewards=[[1.0, 0.0, 0.0, 0.0, 0.0]], horizon=1)
    regret = 1.0 - policy_value(mdp, knowing(mdp, OMG, 1e5, episodes=10**9).policy("c"))
    assert regret == pytest.approx(4.0 / 1e5, rel=1e-3)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_one_step_is_inverse_gap_weighting(gamma, rng):
    for actions in (2, 3, 7):
        rewards = rng.random((1, actions))
        mdp = TabularMDP(transitions=np.ones((1, actions, 1)), rewards=rewards, horizon=1)
        policy = knowing(mdp, OMG, gamma, episodes=10**13).policy("c")
        np.testing.assert_allclose(policy[0, 0], inverse_gap_weighting(rewards[0], gamma), atol=1e-7, rtol=0.0)


def test_one_step_from_several_states_and_among_admissible_actions(rng):
    """In state s the barrier weighs 1/γ against the start's mass: inverse gap weighting with γ·ρ(s)."""
    start, mask = np.array([0.25, 0.75]), np.array([[True, True, True], [False, True, True]])
    rewards = rng.random((2, 3))
    mdp = TabularMDP(transitions=np.full((2, 3, 2), 0.5), rewards=rewards, horizon=1, start=start, admissible=mask)
    policy = knowing(mdp, OMG, 40.0, episodes=10**13).policy("c")
    for s in range(2):
        expected = inverse_gap_weighting(rewards[s, mask[s]], 40.0 * start[s])
        np.testing.assert_allclose(policy[0, s, mask[s]], expected, atol=1e-7, rtol=0.0)
    assert policy[0, 1, 0] == 0.0


@pytest.mark.parametrize("kind", [ROOTS, "theory", "anytime", "float", "callable", "schedule, episodes"])
@pytest.mark.parametrize("oracle", ["finite", "counts", "linear and softmax"])
def test_every_plan_is_certified(kind, oracle, rng):
    contexts, agent = build(kind, oracle, "restricted")
    for t in range(1, 60):
        decision = agent.decide(contexts[t % len(contexts)])
        assert decision.certificate <= 1.0 / (16.0 * (agent.episodes or t**2))
        agent.update(an_episode(rng, agent.space, contexts[t % len(contexts)], decision.policy))


@pytest.mark.parametrize("oracle", ["finite", "counts", "linear and softmax"])
def test_the_default_falls_short_by_a_twentieth_of_what_it_pays_to_explore(oracle, rng):
    """½·Σ √(w·Q) is Σ m, the sum of the weights; or by the tolerance, or, after eight rounds, by what it says."""
    contexts, agent = build("adaptive", oracle)
    for t in range(1, 60):
        decision = agent.decide(contexts[t % len(contexts)])
        enough = 0.1 * decision.weights.sum() * (1.0 + 1e-9) + decision.gamma / (16.0 * t**2)
        assert decision.certificate <= enough or decision.iterations == ROUNDS
        agent.update(an_episode(rng, agent.space, contexts[t % len(contexts)], decision.policy))


@pytest.mark.parametrize("kind", [ROOTS, "theory", "float"])
def test_decisions_carry_the_dual_values_of_the_plan(kind):
    """V_h(s) - f̂ - P̂·V_{h+1} is the slack z of the certificate: q·z = m, nearly, wherever q > 0."""
    contexts, agent = build(kind, "finite", "restricted", episodes=10**9)
    decision = agent.decide(contexts[0])
    model, later = decision.model, np.vstack([decision.values[1:], np.zeros(agent.space.states)])
    slack = decision.values[:, :, None] - model.rewards - np.einsum("saz,hz->hsa", model.transitions, later)
    held = decision.occupancy > 0.0
    weights = np.ones_like(slack) if decision.weights is None else decision.weights
    np.testing.assert_allclose((decision.occupancy * slack)[held], (weights / decision.gamma)[held], rtol=1e-3)


@pytest.mark.parametrize("t", [10**3, 10**4, 10**5, 10**6])
@pytest.mark.parametrize("kind", [ROOTS, "float"])
def test_late_plans_are_certified_too(kind, t):
    """1/(16t²) is 6e-14 at t = 10⁶."""
    contexts, agent = build(kind)
    agent.episodes_seen = t - 1
    for context in contexts:
        assert agent.decide(context).certificate <= 1.0 / (16.0 * t**2)


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
    for agent in (knowing(mdp, Greedy), knowing(mdp, PosteriorSampling)):
        assert policy_value(mdp, agent.policy("c")) == pytest.approx(optimal_policy(mdp)[1])
