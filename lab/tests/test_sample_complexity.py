"""Sample complexity of a ledger: against the definition, and on agents of which it is known."""

import math

import numpy as np
import pytest

import omg_cmdp as omg
import omg_lab
from library.tests.agents.models import learning
from omg_cmdp.agents import Greedy, Informed, Uniform
from omg_cmdp.runs.ledger import Row
from omg_lab.worlds import SoftmaxWorld


def a_ledger(losses, unknown=None):
    ledger = omg.Ledger()
    for lost, missed in zip(losses, losses if unknown is None else unknown, strict=True):
        row = dict.fromkeys(Row._fields, 0.0) | {"regret": lost, "best_policy_regret": missed}
        ledger.add("c", Row(**row))
    return ledger


def by_definition(losses, epsilon, window):
    """The least n such that every window after the first n episodes, and there is one, loses at most ε on average."""
    last = len(losses) - window
    for n in range(last + 1):
        if all(np.mean(losses[start : start + window]) <= epsilon for start in range(n, last + 1)):
            return n
    return math.inf


@pytest.mark.parametrize("window", [1, 3, 10])
def test_the_definition(window, rng):
    for _ in range(20):
        losses = rng.random(40) * np.linspace(1.0, rng.random(), 40)
        unknown = rng.random(40)
        for epsilon in (0.2, 0.4, 0.6):
            found = omg_lab.sample_complexity(a_ledger(losses, unknown), epsilon, window=window)
            assert found.mistakes == sum(loss > epsilon for loss in losses)
            assert found.played == by_definition(losses, epsilon, window)
            assert found.output == by_definition(unknown, epsilon, window)


def test_exploration_that_ends_is_counted_whatever_the_length_of_the_run():
    for rest in (100, 1000):
        found = omg_lab.sample_complexity(a_ledger([0.8] * 30 + [0.0] * rest), 0.1, window=10)
        assert found == (30, 29.0, 29.0)  # nine losses of nothing and one of .8 are .08 on average


def test_agents_at_the_ends_of_the_scale(seed):
    world = SoftmaxWorld(seed=seed)
    informed, uniform = Informed(world.space, world.mdp), Uniform(world.space)
    found = [
        omg_lab.sample_complexity(omg.simulate(world, omg.adversaries.IID(world.contexts), agent, 60), 0.1)
        for agent in (informed, uniform)
    ]
    assert found[0] == (0, 0.0, 0.0)
    assert found[1].played == math.inf
    assert found[1].mistakes == 60


def test_the_output_may_be_good_while_exploring(seed):
    """ε-greedy plays badly by design; what it would put out is the greedy policy."""
    world = SoftmaxWorld(seed=seed)
    explorer = learning(world, omg.agents.EpsilonGreedy, 0.9)
    ledger = omg.simulate(world, omg.adversaries.IID(world.contexts), explorer, 200)
    found = omg_lab.sample_complexity(ledger, 0.2)
    assert found.output < math.inf
    assert found.played == math.inf


def test_an_agent_without_a_model_has_no_output():
    class Silent(omg.Agent):
        def __init__(self, agent):
            self.space, self._agent = agent.space, agent

        def policy(self, context):
            return self._agent.policy(context)

        def update(self, trajectory):
            self._agent.update(trajectory)

    world = SoftmaxWorld()
    ledger = omg.simulate(world, omg.adversaries.IID(world.contexts), Silent(learning(world, Greedy)), 60)
    assert math.isnan(omg_lab.sample_complexity(ledger, 0.2).output)


def test_a_window_longer_than_the_run_is_refused():
    with pytest.raises(ValueError, match="`window` must be at most the 3 episodes of the ledger, got 50"):
        omg_lab.sample_complexity(a_ledger([0.0] * 3), 0.1)
