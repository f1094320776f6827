"""Episodes that were truncated, and rewards that arrive later."""

import copy

import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.worlds import SafeArm
from omg_cmdp.agents import Greedy
from omg_cmdp.oracles import CountDynamics, CountRewards, StepwiseRewards

SIZE = {"states": 5, "actions": 3, "horizon": 5}
SPACE = omg.Space(**SIZE)


def cut(episode, steps):
    arrays = {"states": episode.states[: steps + 1], "actions": episode.actions[:steps]}
    return omg.Trajectory(context=episode.context, rewards=episode.rewards[:steps], **arrays)


def played(count, seed=0):
    world, generator = SafeArm(**SIZE), np.random.default_rng(seed)
    policy = np.full((5, 5, 3), 1.0 / 3.0)
    return [world.sample(world.contexts[0], policy, generator) for _ in range(count)]


def counting(kind=Greedy):
    return kind(SPACE, CountRewards(**SIZE), CountDynamics(**SIZE))


def same(one, other):
    ours, theirs = one.state(), other.state()
    return ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_a_drop_out_is_learned_from_as_far_as_it_was_seen():
    """Counts of truncated episodes are the counts of the steps that were seen."""
    agent, episodes = counting(), played(20)
    for number, episode in enumerate(episodes):
        agent.update(cut(episode, 1 + number % 5))
    visits = np.zeros((5, 3))
    for number, episode in enumerate(episodes):
        seen = 1 + number % 5
        np.add.at(visits, (episode.states[:seen], episode.actions[:seen]), 1.0)
    np.testing.assert_array_equal(agent.reward_oracle.forecasters.visits[0], visits)
    np.testing.assert_array_equal(agent.dynamics_oracle.forecasters.counts[0].sum(axis=-1), visits)


def test_dropping_out_at_random_does_not_bias_the_oracles():
    """Each step is lost with a probability that knows nothing of what follows: estimates stay within their noise."""
    whole, part, generator = counting(), counting(), np.random.default_rng(1)
    for episode in played(4000):
        whole.update(episode)
        part.update(cut(episode, int(generator.integers(1, 6))))
    ours, theirs = part.model(0), whole.model(0)
    visits = part.reward_oracle.forecasters.visits[0]
    rewards = np.abs(ours.rewards - theirs.rewards) * np.sqrt(visits)
    rows = np.abs(ours.transitions - theirs.transitions) * np.sqrt(visits)[:, :, None]
    assert max(rewards.max(), rows.max()) < 2.5  # of a standard deviation that is at most a half


def test_a_drop_out_teaches_more_than_leaving_it_out():
    world = SafeArm(**SIZE)
    truth = world.mdp(world.contexts[0])
    agents, generator = [counting(), counting()], np.random.default_rng(2)
    for episode in played(300):
        if (steps := int(generator.integers(1, 7))) >= 5:
            agents[0].update(episode)
        agents[1].update(cut(episode, min(steps, 5)))
    errors = [np.abs(agent.model(0).transitions - truth.transitions).sum() for agent in agents]
    assert errors[1] < errors[0]


def test_rewards_that_arrive_later_are_those_of_the_episode():
    at_once, later = counting(), counting()
    for episode in played(20):
        at_once.update(episode)
        parts = {"context": episode.context, "states": episode.states, "actions": episode.actions}
        rewards = episode.rewards.tolist()
        later.update(omg.Trajectory(**parts, rewards=[None, *rewards[1:3], None, None]))
        later.update_rewards(omg.Trajectory(**parts, rewards=[rewards[0], None, None, None, rewards[4]]))
        later.update_rewards(omg.Trajectory(**parts, rewards=[None, None, None, rewards[3], None]))
    for name in ("visits", "sums", "squares"):
        ours, theirs = (getattr(agent.reward_oracle.forecasters, name) for agent in (at_once, later))
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert same(at_once.dynamics_oracle, later.dynamics_oracle)
    assert later.episodes_seen == 20


def test_an_episode_without_any_reward_teaches_transitions_only():
    agent = counting()
    episode = played(1)[0]
    before = agent.reward_oracle.state()
    agent.update(omg.Trajectory(context=0, states=episode.states, actions=episode.actions, rewards=None))
    after = agent.reward_oracle.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert agent.dynamics_oracle.episodes == 1


def test_tables_with_steps_take_all_rewards_or_none():
    stepwise = StepwiseRewards([CountRewards(states=5, actions=3, horizon=1) for _ in range(5)])
    agent, episode = Greedy(SPACE, stepwise, CountDynamics(**SIZE)), played(1)[0]
    parts = {"context": 0, "states": episode.states, "actions": episode.actions}
    before = copy.deepcopy(agent)
    with pytest.raises(ValueError, match="`rewards` must be all known or all None"):
        agent.update(omg.Trajectory(**parts, rewards=[None, *episode.rewards.tolist()[1:]]))
    assert same(agent, before)
    agent.update(omg.Trajectory(**parts, rewards=None))
    agent.update_rewards(omg.Trajectory(**parts, rewards=episode.rewards))
    assert stepwise.episodes == 1


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"rewards": [0.0, 0.0, None, 0.0, 2.0]}, r"`rewards` must lie in \[0, 1\], got 2.0"),
        ({"rewards": [0.0, 0.0, float("nan"), 0.0, 0.0]}, "`rewards` must be finite, or None"),
    ],
)
def test_what_cannot_be_is_refused(options, match):
    agent, episode = counting(), played(1)[0]
    before = agent.state()
    with pytest.raises(ValueError, match=match):
        agent.update(omg.Trajectory(context=0, states=episode.states, actions=episode.actions, **options))
    assert all(np.array_equal(before[name], array) for name, array in agent.state().items())


def test_what_is_unknown_may_still_bring_the_return_into_its_range():
    """With a return of exactly 1, a truncated episode may have earned nothing yet, but never 2."""
    agent = Greedy(SPACE, CountRewards(**SIZE), CountDynamics(**SIZE), return_range=(1.0, 1.5))
    parts = {"context": 0, "states": [0, 1, 2, 3], "actions": [0, 0, 0]}
    agent.update(omg.Trajectory(**parts, rewards=[0.0, 0.0, 0.0]))
    agent.update(omg.Trajectory(**parts, rewards=[0.0, None, 1.0]))
    with pytest.raises(ValueError, match="`return_range` must hold what every episode earns"):
        agent.update(omg.Trajectory(**parts, rewards=[1.0, None, 1.0]))


def test_an_unknown_reward_survives_a_copy():
    path = omg.Trajectory(context=0, states=[0, 1, 2], actions=[0, 0], rewards=[0.5, None])
    np.testing.assert_array_equal(copy.deepcopy(path).rewards, path.rewards)
