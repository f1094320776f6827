"""Epoch-Greedy: how often it explores, and from what it learns."""

import numpy as np
import pytest

from lab.tests.rivals.bandits.games import taught, taught_late, with_class
from omg_lab.rivals import EpochGreedy

TABLES = {"c": np.array([[[0.9, 0.1]], [[0.2, 0.4]]])}


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_it_explores_as_often_as_the_power_two_thirds(scale):
    """(2c/3)·(m - 1)^(3/2) <= T <= m + (2c/3)·(m + 1)^(3/2) for m random episodes among T."""
    agent, uniform = with_class(EpochGreedy, TABLES, scale=scale), 0
    for t in range(1, 1501):
        policy = agent.policy("c")[0, 0]
        assert agent.explores == (policy[0] == 0.5)
        uniform += agent.explores
        taught(agent, "c", 0, 1.0)
        assert agent.explored == uniform
        assert 2.0 * scale / 3.0 * (uniform - 1) ** 1.5 <= t <= uniform + 2.0 * scale / 3.0 * (uniform + 1) ** 1.5
    assert 0.5 < uniform / (3.0 * 1500 / (2.0 * scale)) ** (2.0 / 3.0) <= 1.0 + 1e-9 or scale < 1.0


def test_it_learns_from_random_episodes_only_and_follows_them_in_the_others():
    agent = with_class(EpochGreedy, TABLES, scale=3.0)
    for _ in range(200):
        explores, model = agent.explores, agent.model("c").rewards.tolist()
        np.testing.assert_array_equal(agent.policy("c")[0, 0], [0.5, 0.5] if explores else agent.best_policy("c")[0, 0])
        taught(agent, "c", 1, 0.4)
        assert explores or agent.model("c").rewards.tolist() == model
    assert agent.reward_oracle.episodes == agent.explored < 60
    assert agent.best_policy("c")[0, 0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("late", [0, 1, 7])
def test_it_learns_from_random_episodes_only_however_late_they_come(late, rng):
    agent, waiting, random = with_class(EpochGreedy, TABLES, scale=3.0), [], 0
    for _ in range(150):
        policy = agent.policy("c")[0, 0]
        action = int(rng.choice(2, p=policy))
        waiting.append((action, policy[action]))
        if len(waiting) > late:
            action, chance = waiting.pop(0)
            taught_late(agent, "c", action, 0.4, chance)
            random += chance == 0.5
            assert agent.reward_oracle.episodes == agent.explored == random
    assert 0 < random < 100


def test_where_there_is_one_action_an_episode_is_random_if_one_is_due():
    recorded, plain = (with_class(EpochGreedy, {"c": np.ones((2, 1, 1))}, scale=3.0) for _ in range(2))
    for _ in range(50):
        taught_late(recorded, "c", 0, 0.4, chance=1.0)
        taught(plain, "c", 0, 0.4)
        assert recorded.explored == plain.explored < 20


def test_a_bad_context_is_refused_in_every_episode():
    agent = with_class(EpochGreedy, TABLES, scale=3.0)
    for _ in range(8):
        with pytest.raises(ValueError, match="`context` must be one of"):
            taught(agent, "other", 0, 1.0)
        taught(agent, "c", 0, 1.0)
    assert agent.episodes_seen == 8


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, "long"])
def test_a_scale_that_is_no_positive_number_is_refused(scale):
    with pytest.raises(ValueError, match="`scale` must be a positive"):
        with_class(EpochGreedy, TABLES, scale=scale)
