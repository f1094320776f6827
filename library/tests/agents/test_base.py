"""Both oracles answer before either learns, whether the agent was asked about the context or not."""

import numpy as np
import pytest

from library.tests.agents.catalogue import KINDS, OWN_STATISTICS, SPACES, build
from omg_cmdp import Space, Trajectory, oracles
from omg_cmdp.agents import Agent, Greedy
from omg_cmdp.oracles import DynamicsOracle

SPACE = Space(states=2, actions=2, horizon=3)


class Moody(DynamicsOracle):
    """Answers the contexts it is told to, and counts how often it is asked."""

    def __init__(self):
        self.refuses, self.asked = set(), 0

    def predict(self, context):
        self.asked += 1
        if context in self.refuses:
            raise ValueError("`context` must be another one")
        return np.full((2, 2, 2), 0.5)

    def update(self, context, states, actions, next_states):
        self.refuses.add(context)

    def uncertainty(self, context):
        return np.zeros((2, 2))

    def regret_bound(self, episodes, horizon):
        return np.inf

    def state(self):
        return {"refuses": np.array(sorted(self.refuses), dtype=np.str_)}

    def load_state(self, state):
        self.refuses = set(state["refuses"].tolist())


def episode(context):
    return Trajectory(context=context, states=[0, 1, 0, 1], actions=[0, 1, 0], rewards=[0.0, 1.0, 1.0])


@pytest.fixture
def agent():
    return Greedy(SPACE, oracles.CountRewards(states=2, actions=2, horizon=3), Moody())


def assert_refused(agent, context):
    before = agent.reward_oracle.predict(context)
    with pytest.raises(ValueError, match="`context` must be another one"):
        agent.update(episode(context))
    np.testing.assert_array_equal(agent.reward_oracle.predict(context), before)


@pytest.mark.parametrize("asked", [None, "other"])
def test_a_context_that_one_oracle_refuses_teaches_neither(asked, agent):
    agent.dynamics_oracle.refuses.add("c")
    if asked:
        agent.decide(asked)
    assert_refused(agent, "c")


def test_what_was_answered_before_the_last_update_is_asked_again(agent):
    agent.decide("c")
    agent.update(episode("c"))
    assert_refused(agent, "c")


def test_what_was_answered_before_restoring_is_asked_again(agent, tmp_path):
    agent.update(episode("c"))
    agent.save(tmp_path / "agent")
    fresh = Greedy(SPACE, oracles.CountRewards(states=2, actions=2, horizon=3), Moody())
    fresh.decide("c")
    fresh.restore(tmp_path / "agent")
    assert_refused(fresh, "c")


def test_an_answer_that_is_fresh_is_not_asked_for_again(agent):
    agent.decide("c")
    agent.update(episode("c"))
    assert agent.dynamics_oracle.asked == 1


def test_an_agent_without_a_model_has_no_best_policy():
    class Still(Agent):
        def policy(self, context):
            return np.tile([1.0, 0.0], (3, 2, 1))

        def update(self, trajectory):
            pass

    with pytest.raises(NotImplementedError, match="Still has no model"):
        Still().best_policy("c")


@pytest.mark.parametrize("kind", [*KINDS, *OWN_STATISTICS])
def test_an_episode_that_begins_where_none_starts_is_refused(kind):
    """Its states would count as unreachable, and be played uniformly for ever."""
    space = SPACES["spread start"]
    agent = OWN_STATISTICS[kind][1](space) if kind in OWN_STATISTICS else build(kind, space="spread start")[1]
    for first in (0, 2):
        agent.update(Trajectory(context="a", states=[first, 1, 1, 1, 1], actions=[0] * 4, rewards=[0.5] * 4))
    before = {name: array.tobytes() for name, array in agent.state().items()}
    elsewhere = Trajectory(context="a", states=[1, 0], actions=[0], rewards=[0.5])
    for refuses in (agent.update, lambda episode: episode.check(space), agent.update_rewards):
        with pytest.raises(ValueError, match=r"`states` must begin .* got state 1, .* pass start=1, or .* to `Space`"):
            refuses(elsewhere)
    assert {name: array.tobytes() for name, array in agent.state().items()} == before
