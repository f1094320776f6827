"""`policy` is pure from any thread: eight threads that ask an agent get the policies of one."""

import copy
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from library.tests.agents.catalogue import each_agent
from omg_cmdp import Space, oracles
from omg_cmdp.agents import Greedy
from omg_cmdp.checks.agents import AgentSubject

AGENTS = each_agent()
THREADS = 8


def policies_of_threads(agent, contexts, rounds):
    """Return how many of the policies that threads are given differ from those that one thread is given."""
    alone = [copy.deepcopy(agent).policy(context) for context in contexts]

    def ask(first):
        order = [(first + step) % len(contexts) for step in range(rounds)]
        return sum(not np.array_equal(agent.policy(contexts[place]), alone[place]) for place in order)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns often, so that a race is met
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            return sum(pool.map(ask, range(THREADS)))
    finally:
        sys.setswitchinterval(usual)


@pytest.mark.parametrize("rounds", [1, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", AGENTS)
def test_threads_are_given_the_policies_of_one(name, rounds):
    contexts, agent = AGENTS[name]
    assert policies_of_threads(AgentSubject(agent, contexts).train(copy.deepcopy(agent)), contexts, rounds) == 0


def test_threads_that_ask_an_agent_with_linear_rewards(rng):
    """Tables large enough that compiled code, which holds no lock, is at work in several threads at once."""
    sizes = {"states": 30, "actions": 5, "horizon": 3}
    rewards = oracles.LinearRewards(**sizes, dimension=12)
    agent = Greedy(Space(**sizes), rewards, oracles.KnownDynamics(np.full((30, 5, 30), 1.0 / 30.0), horizon=3))
    contexts = [vector / np.linalg.norm(vector) for vector in rng.normal(size=(16, 12))]
    for context in contexts:
        rewards.update(context, rng.integers(30, size=3), rng.integers(5, size=3), rng.random(3))
    assert policies_of_threads(agent, contexts, rounds=100) == 0
