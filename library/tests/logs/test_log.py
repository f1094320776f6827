"""A log holds episodes of its space, gives them as arrays and tables, and is cut by slices."""

import numpy as np
import pytest

from library.tests.logs.tables import SPACE, changed, random_log
from omg_cmdp import Log, Space, Trajectory


def test_a_log_gives_its_episodes_as_arrays(rng):
    log = random_log(rng, count=5)
    for place, episode in enumerate(log.episodes):
        for name in ("states", "actions", "rewards", "propensities"):
            np.testing.assert_array_equal(getattr(log, name)[place], getattr(episode, name))
        assert log.contexts[place] is episode.context
        assert log.returns[place] == episode.rewards.sum()


def test_an_empty_log_is_a_log():
    log = Log(SPACE)
    assert (len(log), log.contexts, log.returns.shape) == (0, [], (0,))
    assert log.actions.shape == log.rewards.shape == log.propensities.shape == (0, SPACE.horizon)
    assert len(log.table()) == 0


def test_propensities_are_known_of_all_episodes_or_of_none(rng):
    log = random_log(rng)
    log.add(changed(log.episodes[0], propensities=None))
    assert log.propensities is None
    assert log.table()["propensity"].isna().sum() == 3  # those that are known are not lost
    assert "propensity" not in log[-1:].table()
    assert log[:-1].propensities is not None


def test_what_is_not_an_episode_of_the_space_is_refused(rng):
    log, other = random_log(rng), Space(states=2, actions=2, horizon=2)
    with pytest.raises(ValueError, match="`actions` must have at most the horizon's length 2, got 3"):
        Log(other, log.episodes)
    with pytest.raises(ValueError, match=r"`rewards` must lie in \[5, 6\]"):
        Log(SPACE, log.episodes, reward_range=(5.0, 6.0))
    e = log.episodes[0]
    with pytest.raises(ValueError, match="`episode` must be an Episode, got Trajectory"):
        log.add(Trajectory(context=e.context, states=e.states, actions=e.actions, rewards=e.rewards))
    assert len(log) == 6


@pytest.mark.parametrize("bounds", [(0.0, np.inf), (1.0, 0.0), (0.0, np.nan), 1.0])
def test_no_log_has_an_impossible_range(rng, bounds):
    """With an infinite one doubly robust estimates would be nan."""
    with pytest.raises(ValueError, match="`reward_range` must be an interval"):
        Log(SPACE, random_log(rng).episodes, reward_range=bounds)


@pytest.mark.parametrize("chosen", [0, [0, 1], np.array([True, False])])
def test_only_a_slice_of_a_log_is_a_log(rng, chosen):
    with pytest.raises(TypeError, match="must be given a slice of episodes"):
        random_log(rng)[chosen]
