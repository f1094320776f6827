"""Supports: a transition outside is refused by every oracle that takes one, before anything has changed."""

import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.oracles.catalogue import SUPPORT
from library.tests.oracles.test_state import bits
from omg_cmdp import oracles
from omg_cmdp.oracles import RefittedDynamics, RefittedRewards

SIZE = {"states": 3, "actions": 2, "horizon": 3}
OUTSIDE = {"states": [1, 0, 2], "actions": [0, 0, 1], "next_states": [0, 1, 2]}  # SUPPORT excludes (0, 0, 1)


class Shares:
    """A model that can be fitted: overall frequencies, or a mean."""

    def fit(self, inputs, outcomes):
        self.mean, self.shares = outcomes.mean(), np.bincount(outcomes.astype(int)) / len(outcomes)

    def predict(self, inputs):
        return np.full(len(inputs), self.mean)

    def predict_proba(self, inputs):
        return np.tile(self.shares, (len(inputs), 1))


MAKERS = {
    "counts": lambda: oracles.CountDynamics(**SIZE, support=SUPPORT),
    "softmax": lambda: oracles.SoftmaxDynamics(**SIZE, dimension=2, support=SUPPORT),
    "basis": lambda: oracles.BasisDynamics(**SIZE, bases=2, support=SUPPORT),
    "refitted": lambda: RefittedDynamics(Shares(), **SIZE, support=SUPPORT),
    "aggregate": lambda: oracles.AggregateDynamics([oracles.CountDynamics(**SIZE), MAKERS["counts"]()], horizon=3),
    "stepwise": lambda: oracles.StepwiseDynamics(
        [oracles.CountDynamics(**SIZE | {"horizon": 1}, support=SUPPORT) for _ in range(3)]
    ),
    "copies": lambda: oracles.CopiesDynamics(MAKERS["softmax"](), delay=1),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_transition_outside_is_refused_and_nothing_changes(name):
    oracle, context = MAKERS[name](), np.array([0.4, 0.6])
    oracle.update(context, [0, 0, 2], [0, 1, 1], [2, 1, 1])
    before = bits(oracle.state())
    with pytest.raises(ValueError, match="`next_states` must lie in `support`, which excludes 1 after action 0 in sta"):
        oracle.update(context, **OUTSIDE)
    assert bits(oracle.state()) == before


@pytest.mark.parametrize("refitted", [False, True])
def test_the_other_oracle_of_an_agent_does_not_learn_it(refitted):
    rewards = RefittedRewards(Shares(), **SIZE) if refitted else oracles.CountRewards(**SIZE)
    agent = omg.agents.Greedy(omg.Space(states=3, actions=2, horizon=3), rewards, MAKERS["counts"]())
    before = bits(agent.state())
    with pytest.raises(ValueError, match="`support`"):
        agent.update(omg.Trajectory(context=[0.4, 0.6], states=[0, 1], actions=[0], rewards=[1.0]))
    assert bits(agent.state()) == before
