"""Posterior sampling over classes that are not finite: a policy is played as often as the posterior says it is best."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from library.tests.agents.catalogue import build
from library.tests.oracles.linear.test_linear import dense_posterior
from omg_cmdp import Space, optimal_policy, oracles, simulate
from omg_cmdp.adversaries import Sequence
from omg_cmdp.agents import Greedy, PosteriorSampling
from omg_cmdp.environments import ContextualMDP

SEEDS = 3000


def frequency(space, rewards, dynamics, context):
    """Return how often the first action is played in the first step, over seeds."""
    agents = (PosteriorSampling(space, rewards, dynamics, seed=seed) for seed in range(SEEDS))
    return np.mean([agent.policy(context)[0, 0, 0] for agent in agents])


def agree(frequency, probability):
    return abs(frequency - probability) <= 4.0 * math.sqrt(probability * (1.0 - probability) / SEEDS)


def beats(one, other):
    """Return P(X > Y) for two laws on [0, 1]."""
    return integrate.quad(lambda x: one.pdf(x) * other.cdf(x), 0.0, 1.0)[0]


BANDIT = Space(states=1, actions=2, horizon=1)
STILL = oracles.KnownDynamics(np.ones((1, 2, 1)), horizon=1)


def test_counted_rewards_are_compared_as_beta_variables():
    rewards = oracles.CountRewards(states=1, actions=2, horizon=1)
    for action, reward in ((0, 1.0), (0, 0.0), (0, 1.0), (1, 1.0)):
        rewards.update("c", [0], [action], [reward])
    expected = beats(stats.beta(3, 2), stats.beta(2, 1))
    assert 0.3 < expected < 0.5  # the arm seen less is played more
    assert agree(frequency(BANDIT, rewards, STILL, "c"), expected)


def test_linear_rewards_are_compared_as_normal_variables():
    """θ(a)·z ~ N(mᵀz, zᵀCz) for each action; a large ridge keeps both away from 0 and 1."""
    rewards = oracles.LinearRewards(states=1, actions=2, dimension=2, horizon=1, ridge=30.0, intercept=False)
    taught = {0: ([], []), 1: ([], [])}
    for context, action, reward in (([1.0, 0.0], 0, 0.7), ([0.6, 0.8], 0, 0.6), ([0.0, 1.0], 1, 0.8)):
        for _ in range(10):
            rewards.update(np.array(context), [0], [action], [reward])
            taught[action][0].append(context)
            taught[action][1].append(reward - 0.5)
    z = np.array([0.8, 0.6])
    posteriors = [dense_posterior(np.array(rows), np.array(targets), 30.0) for rows, targets in taught.values()]
    means = [z @ mean for mean, _ in posteriors]
    variance = sum(z @ covariance @ z for _, covariance in posteriors)
    expected = stats.norm.cdf((means[0] - means[1]) / math.sqrt(variance))
    assert 0.1 < expected < 0.9
    assert agree(frequency(BANDIT, rewards, STILL, z), expected)


TWO_STEPS = Space(states=2, actions=2, horizon=2)
SECOND_STATE_PAYS = oracles.KnownRewards([[0.0, 0.0], [1.0, 1.0]], horizon=2)


def test_counted_transitions_are_compared_as_dirichlet_variables():
    """The second state pays: the better action is the one that gets there more often."""
    dynamics = oracles.CountDynamics(states=2, actions=2, horizon=2)
    for actions, reached in (([0, 0], [1, 0]), ([0, 0], [0, 0]), ([1, 0], [0, 1])):
        dynamics.update("c", [0, 0], actions, reached)
    # The first action: 2 of 5 to the second state; the second: 0 of 1. KT adds a half each.
    expected = beats(stats.beta(2.5, 3.5), stats.beta(0.5, 1.5))
    assert agree(frequency(TWO_STEPS, SECOND_STATE_PAYS, dynamics, "c"), expected)


def test_softmax_transitions_are_compared_by_their_normal_logits():
    sizes = {"states": 2, "actions": 2, "dimension": 1, "horizon": 2}
    dynamics = oracles.SoftmaxDynamics(**sizes, rate="realizable", intercept=False)
    z = np.array([0.9])
    for actions, reached in (([0, 0], [1, 0]), ([0, 1], [1, 1]), ([1, 1], [1, 0])):
        dynamics.update(z, [0, 0], actions, reached)
    state = dynamics.state()
    weights, covariances = state["weights"][:4].reshape(2, 2), state["covariances"][:4].reshape(2, 2)
    logits = 0.9 * (weights[:, 1] - weights[:, 0])
    variances = 0.81 * covariances.sum(axis=1) / 2.0  # (K-1)/K of both
    expected = stats.norm.cdf((logits[0] - logits[1]) / math.sqrt(variances.sum()))
    assert 0.1 < expected < 0.9
    assert agree(frequency(TWO_STEPS, SECOND_STATE_PAYS, dynamics, z), expected)


@pytest.mark.parametrize("oracle", ["counts", "linear and softmax", "known rewards by step, counted dynamics"])
@pytest.mark.parametrize("space", ["plain", "restricted, spread start"])
def test_every_episode_has_a_draw_of_its_own(oracle, space):
    contexts, agent = build("posterior sampling", oracle, space)
    drawn = []
    for episode in range(60):
        agent.episodes_seen = episode
        drawn.append(agent.policy(contexts[0]).tobytes())
    assert len(set(drawn)) > 5
    agent.episodes_seen = 7
    assert agent.policy(contexts[0]).tobytes() == drawn[7]


class Chain(ContextualMDP):
    """Two contexts: on the one the right action leads to the paying end, on the other the left one does.

    A small certain reward in the first state distracts.
    """

    space = Space(states=4, actions=2, horizon=6)

    def mdp(self, context):
        transitions = np.zeros((4, 2, 4))
        for state in range(4):
            onward, back = (0, 1) if context == "left" else (1, 0)
            transitions[state, onward, min(state + 1, 3)] = 0.9
            transitions[state, onward, max(state - 1, 0)] += 0.1
            transitions[state, back, max(state - 1, 0)] = 1.0
        rewards = np.zeros((4, 2))
        rewards[0], rewards[3] = 0.1, 0.9
        return self.space.mdp(transitions=transitions, rewards=rewards)


def test_tables_learn_a_chain(seed):
    """Dirichlet and Beta tables, one for each context: what is played at the end is nearly optimal."""
    world, episodes, labels = Chain(), 600, ("left", "right")
    size = {"states": 4, "actions": 2, "horizon": 6, "contexts": labels}
    regrets = {}
    for kind in (PosteriorSampling, Greedy):
        agent = kind(world.space, oracles.CountRewards(**size), oracles.CountDynamics(**size))
        regrets[kind] = simulate(world, Sequence(labels), agent, episodes, seed=seed).regret
    best = np.mean([optimal_policy(world.mdp(label))[1] for label in labels])
    assert regrets[PosteriorSampling][-100:].mean() < 0.05 * best
    assert regrets[PosteriorSampling].sum() < 0.2 * best * episodes


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
