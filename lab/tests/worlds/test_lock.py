"""The lock: the optimum opens it, and an agent that does not explore never does."""

import functools

import numpy as np
import pytest

from lab.tests.worlds.catalogue import Learner, mean_model, uniform_policy
from library.tests.agents.models import learning
from omg_cmdp import OMG, optimal_policy, policy_value, simulate
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import Greedy
from omg_lab.worlds import CombinationLock


def leaves_at_once(policy):
    return policy[0, 0, -1] == 1.0


@pytest.mark.parametrize("shape", [{}, {"states": 4}, {"states": 8, "actions": 5}, {"transition_class_size": 16}])
def test_the_optimum_opens_every_lock(seed, shape):
    world = CombinationLock(seed=seed, **shape)
    for context in world.contexts:
        policy, value = world.truth(context).best
        assert not leaves_at_once(policy)
        assert value == pytest.approx(0.95**world.positions, rel=1e-12)


def test_books_are_even(seed):
    """In every context and position each key is right in a third of the books."""
    world = CombinationLock(seed=seed, transition_class_size=30)
    for context in world.contexts:
        advance = world.transition_functions(context)[:, range(4), :-1, range(1, 5)]  # positions, books, keys
        np.testing.assert_array_equal((advance == 0.95).sum(axis=1), 10)
        np.testing.assert_array_equal((advance == 0.95).sum(axis=2), 1)


@pytest.mark.parametrize("shape", [{}, {"states": 4}, {"states": 8, "actions": 5}, {"transition_class_size": 16}])
def test_the_best_plan_in_the_mean_model_leaves_at_once(seed, shape):
    world = CombinationLock(seed=seed, **shape)
    share = -(-len(world.transition_functions(0)) // world.keys) / len(world.transition_functions(0))
    assert (world.slip + (1.0 - 2.0 * world.slip) * share) ** 2 < world.exit_reward
    for context in world.contexts:
        policy, value = optimal_policy(mean_model(world, context))
        assert leaves_at_once(policy)
        assert value == world.exit_reward


@pytest.mark.parametrize("rate", ["guarded", "proven", "realizable"])
def test_greedy_never_opens_it(seed, rng, rate):
    world = CombinationLock(seed=seed)
    agent = Learner(world, rate)
    untaught = [agent.dynamics.predict(context) for context in world.contexts]
    for episode in range(64):
        context = world.contexts[episode % len(world.contexts)]
        policy = agent.policy(context)
        regret = world.optimal_value(context) - policy_value(world.truth(context).mdp, policy)
        assert regret == pytest.approx(0.95**4 - 0.25, rel=1e-12)
        agent.play(context, policy, rng)
    for context, before in zip(world.contexts, untaught, strict=True):
        np.testing.assert_allclose(agent.dynamics.predict(context), before, rtol=0.0, atol=1e-12)


def test_who_tries_the_keys_learns_to_open_it(seed, rng):
    world = CombinationLock(seed=seed)
    agent = Learner(world)
    for episode in range(600):
        agent.play(world.contexts[episode % len(world.contexts)], uniform_policy(world.space), rng)
    for context in world.contexts:
        value = policy_value(world.truth(context).mdp, agent.policy(context))
        assert value == pytest.approx(world.optimal_value(context), rel=1e-9)


def test_rewards_are_sure(rng):
    world = CombinationLock()
    for _ in range(20):
        episode = world.sample(0, uniform_policy(world.space), rng)
        np.testing.assert_array_equal(episode.rewards, world.mdp(0).rewards[episode.states[:-1], episode.actions])


def test_greedy_never_opens_the_lock_and_omg_does(seed):
    """Greedy's regret is linear, half of it in the second half; OMG's ends."""
    world = CombinationLock(seed=seed)
    run = functools.partial(simulate, world, IID(world.contexts), episodes=400, seed=seed)
    greedy, omg = (run(agent=learning(world, kind)).regret for kind in (Greedy, OMG))
    assert greedy[200:].sum() >= 0.45 * greedy.sum() >= 0.45 * 400 * 0.5
    assert omg[200:].sum() <= 0.2 * omg.sum() <= 0.2 * 0.1 * greedy.sum()
