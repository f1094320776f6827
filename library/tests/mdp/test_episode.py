"""An episode is checked when it is made, cannot be changed, and is checked against a space."""

import copy
import math
import pickle

import numpy as np
import pytest

from omg_cmdp import Episode, Space, Trajectory

GOOD = {"context": "c", "states": [0, 1, 2], "actions": [1, 0], "rewards": [0.0, 1.0]}
SPACE = Space(states=3, actions=2, horizon=2, admissible=[[True, True], [True, True], [False, True]])


def make(**changes):
    return Trajectory(**{**GOOD, **changes})


def test_fields():
    path = make()
    assert path.context == "c"
    assert path.states.tolist() == [0, 1, 2]
    assert path.next_states.tolist() == [1, 2]
    assert path.actions.tolist() == [1, 0]
    assert path.rewards.tolist() == [0.0, 1.0]
    assert path.states.dtype == path.actions.dtype == np.int64
    assert path.rewards.dtype == np.float64
    path.check(SPACE)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint64])
def test_any_integers_will_do(kind):
    path = make(states=np.array(GOOD["states"], kind), actions=np.array(GOOD["actions"], kind), rewards=[0, True])
    assert path.states.dtype == np.int64
    path.check(SPACE)


def test_nothing_refers_to_the_input():
    states, actions, rewards = np.array([0, 1, 2]), np.array([1, 0]), np.array([0.0, 1.0])
    path = make(states=states, actions=actions, rewards=rewards)
    for array in (states, actions, rewards):
        array[...] = 7
    assert (path.states.tolist(), path.actions.tolist(), path.rewards.tolist()) == ([0, 1, 2], [1, 0], [0.0, 1.0])
    for array in (states, actions, rewards):
        assert array.flags.writeable


def test_a_vector_context_is_not_shared_with_the_caller():
    context = np.array([1.0, 0.0])
    path = make(context=context)
    context[0] = 0.5
    assert path.context.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("name", ["states", "actions", "rewards"])
def test_arrays_are_read_only(name):
    for path in (make(), copy.copy(make())):
        with pytest.raises(ValueError, match="read-only"):
            getattr(path, name)[0] = 1
    with pytest.raises(AttributeError):
        setattr(make(), name, [0])


@pytest.mark.parametrize("name", ["states", "actions", "rewards"])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda path: pickle.loads(pickle.dumps(path))])
def test_copies_are_read_only_too(name, again):
    path = again(make())
    np.testing.assert_array_equal(getattr(path, name), getattr(make(), name))
    with pytest.raises(ValueError, match="read-only"):
        getattr(path, name)[0] = 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": [0, 1]}, r"`states`, `actions` and `rewards` must have shapes .* got \(2,\), \(2,\) and \(2,\)"),
        ({"actions": [0]}, "`states`, `actions` and `rewards` must have shapes"),
        ({"rewards": [0.0]}, "`states`, `actions` and `rewards` must have shapes"),
        ({"rewards": [[0.0], [1.0]]}, "`states`, `actions` and `rewards` must have shapes"),
        ({"states": [0], "actions": np.zeros(0, int), "rewards": []}, "must have shapes"),
        ({"states": [[0, 1, 2]]}, r"`states` must be a vector of integers, got int64 of shape \(1, 3\)"),
        ({"states": [0.0, 1.0, 2.0]}, "`states` must be a vector of integers, got dtype float64"),
        ({"states": [0, [1], 2]}, "`states` must be a vector of integers"),
        ({"states": [False, True, True]}, "`states` must be a vector of integers, got dtype bool"),
        ({"actions": ["left", "right"]}, "`actions` must be a vector of integers"),
        ({"actions": None}, "`actions` must be a vector of integers"),
        ({"actions": [0, 2**70]}, "`actions` must be a vector of integers"),
        ({"rewards": ["a", "b"]}, "`rewards` must be an array of real numbers, got list"),
        ({"rewards": [[0.0], 1.0]}, "`rewards` must be an array of real numbers, got list"),
        ({"rewards": [0.0, math.nan]}, "`rewards` must be finite"),
        ({"rewards": [0.0, math.inf]}, "`rewards` must be finite"),
    ],
)
def test_what_is_refused_when_it_is_made(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"states": [0, 1, 2, 0], "actions": [1, 0, 1], "rewards": [0.0] * 3},
            "`actions` must have at most the horizon's.*2.*3",
        ),
        ({"states": [0, 1, 3]}, r"`states` must lie in 0\.\.2, got 3"),
        ({"states": [-1, 1, 2]}, r"`states` must lie in 0\.\.2, got -1"),
        ({"actions": [0, 2]}, r"`actions` must lie in 0\.\.1, got 2"),
        ({"actions": [-1, 0]}, r"`actions` must lie in 0\.\.1, got -1"),
        ({"rewards": [0.5, 1.25]}, r"`rewards` must lie in \[0, 1\], got 1.25"),
        ({"rewards": [-0.5, 0.25]}, r"`rewards` must lie in \[0, 1\], got -0.5"),
        ({"states": [2, 1, 0], "actions": [1, 0]}, "`states` must begin where the space starts, got state 2, of prob"),
        ({"states": [0, 2, 0], "actions": [0, 0]}, "`actions` must be admissible, got action 0 in state 2 at step 1"),
    ],
)
def test_what_is_refused_in_a_space(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes).check(SPACE)


def test_the_last_state_has_no_action():
    make(states=[0, 1, 2], actions=[0, 0]).check(SPACE)


def test_large_unsigned_states_do_not_wrap_into_range():
    with pytest.raises(ValueError, match="`states` must"):
        make(states=np.array([0, 1, 2**64 - 1], dtype=np.uint64)).check(SPACE)


@pytest.mark.parametrize(("reward", "fine"), [(-2.0, True), (5.0, True), (-2.5, False), (5.5, False)])
def test_another_range_of_rewards(reward, fine):
    path = make(rewards=[0.0, reward])
    if fine:
        path.check(SPACE, (-2.0, 5.0))
    else:
        with pytest.raises(ValueError, match=r"`rewards` must lie in \[-2, 5\]"):
            path.check(SPACE, (-2.0, 5.0))


def test_an_episode_is_a_trajectory_with_propensities():
    episode = Episode(**GOOD, propensities=[0.5, 1.0], length=1)
    assert isinstance(episode, Trajectory)
    assert (episode.propensities.tolist(), episode.length) == ([0.5, 1.0], 1)
    again = pickle.loads(pickle.dumps(episode))
    assert (again.propensities.tolist(), again.length) == ([0.5, 1.0], 1)
    assert not again.propensities.flags.writeable
    unknown = Episode(**GOOD)
    assert (unknown.propensities, unknown.length) == (None, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"propensities": [0.5, 0.0]}, r"`propensities` must lie in \(0, 1\], got 0.0 at step 1"),
        ({"propensities": [-0.1, 0.5]}, r"`propensities` must lie in \(0, 1\], got -0.1 at step 0"),
        ({"propensities": [0.5, 1.1]}, r"`propensities` must lie in \(0, 1\], got 1.1"),
        ({"propensities": [0.5, math.nan]}, r"`propensities` must lie in \(0, 1\], got nan"),
        ({"propensities": [0.5]}, r"`propensities` must have shape \(2,\), got \(1,\)"),
        ({"length": 3}, "`length` must be at most the number of actions 2, got 3"),
        ({"length": 0}, "`length` must be an integer of at least 1, got 0"),
    ],
)
def test_impossible_propensities_and_lengths_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Episode(**GOOD, **changes)


def test_the_first_steps_of_an_episode_are_what_was_seen_of_it():
    episode = Episode(**GOOD, propensities=[0.5, 1.0])
    seen = episode.first(1)
    assert (seen.states.tolist(), seen.actions.tolist()) == (GOOD["states"][:2], GOOD["actions"][:1])
    assert (seen.propensities.tolist(), seen.length, len(seen.rewards)) == ([0.5], 1, 1)
    assert episode.first(2) is episode.first(99) is episode


def test_a_last_state_that_nobody_knows_is_none():
    episode = Episode(context="c", states=[0, 1, None], actions=[0, 2], rewards=[0.0, 1.0])
    assert (episode.states.tolist(), episode.end_known, episode.next_states.tolist()) == ([0, 1], False, [1])
    assert copy.deepcopy(episode).states.tolist() == [0, 1]
    assert not copy.deepcopy(episode).end_known
    assert episode.first(1).end_known
    with pytest.raises(ValueError, match="`states` must be a vector of integers"):
        make(states=[0, None, 1])
