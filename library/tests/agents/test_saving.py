"""Which files an agent accepts, and that a long run continues from one bit for bit."""

import numpy as np
import pytest

from library.tests.agents.catalogue import KINDS, MASK, ORACLES, SIZE, SPACES, build
from library.tests.agents.models import an_episode
from omg_cmdp import OMG, Space, Trajectory, oracles
from omg_cmdp.agents import Greedy, PosteriorSampling
from omg_cmdp.persistence import write_arrays


def bits(agent):
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in agent.state().items()}


def counting(kind=OMG, space=None, *more, size=SIZE, **named):
    oracle = oracles.CountRewards(**size), oracles.CountDynamics(**size)
    return kind(space or Space(**size), *oracle, *more, **named)


@pytest.fixture
def saved(tmp_path):
    agent = counting(OMG, None, 10.0)
    agent.update(Trajectory(context=0, states=[0, 1, 2, 0, 1], actions=[0, 1, 2, 0], rewards=[0.0, 1.0, 0.5, 1.0]))
    agent.save(tmp_path / "agent")
    return tmp_path / "agent"


OTHERS = {
    "greedy": lambda: counting(Greedy),
    "adaptive": lambda: counting(OMG),
    "callable of another rule": lambda: counting(OMG, None, "anytime"),
    "posterior sampling": lambda: counting(PosteriorSampling),
    "states": lambda: counting(OMG, None, 10.0, size={**SIZE, "states": 4}),
    "actions": lambda: counting(OMG, None, 10.0, size={**SIZE, "actions": 2}),
    "horizon": lambda: counting(OMG, None, 10.0, size={**SIZE, "horizon": 5}),
    "reward range": lambda: counting(OMG, None, 10.0, reward_range=(0.0, 2.0)),
    "oracles": lambda: OMG(SPACES["plain"], *ORACLES["known by step"][1](), 10.0),
    "admissible": lambda: counting(OMG, Space(**SIZE, admissible=MASK), 10.0),
    "start": lambda: counting(OMG, Space(**SIZE, start=2), 10.0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_saved_with_other_settings_is_refused(name, saved):
    other = OTHERS[name]()
    before = bits(other)
    with pytest.raises(ValueError, match="`state` must"):
        other.restore(saved)
    assert bits(other) == before


def test_the_seed_of_posterior_sampling_is_a_setting(tmp_path):
    (_, first), (_, second) = build("posterior sampling"), build("posterior sampling")
    second.seed = 4
    first.save(tmp_path / "agent")
    with pytest.raises(ValueError, match=r"`state` must come from .*seed 4.*got .*seed 3"):
        second.restore(tmp_path / "agent")


@pytest.mark.parametrize("version", [0, 2])
def test_another_version_is_refused(version, saved):
    agent = counting(OMG, None, 10.0)
    write_arrays(saved, agent.state(), kind="agent", version=version)
    with pytest.raises(ValueError, match="`path` must be a saved agent of format 4"):
        agent.restore(saved)


@pytest.mark.parametrize("name", ["reward/visits", "reward/loss", "dynamics/losses", "dynamics/settings"])
def test_a_spoilt_part_of_either_oracle_changes_neither(name, saved):
    """The reward oracle accepts its part before the dynamics oracle refuses: it gets the old one back."""
    good, other = counting(OMG, None, 10.0), counting(OMG, None, 10.0)
    good.restore(saved)
    assert name in good.state()
    before = bits(other)
    with pytest.raises(ValueError, match="`state` must"):
        other.load_state({**good.state(), name: np.full((7, 7), np.nan)})
    assert bits(other) == before


@pytest.mark.parametrize("name", ["episodes_seen", "reward/episodes", "dynamics/examples"])
@pytest.mark.parametrize("count", [1e300, -1, 2.5, 2.0**60, [1, 2], "three"])
def test_a_spoilt_number_of_episodes_is_refused(count, name, saved):
    good, other = counting(OMG, None, 10.0), counting(OMG, None, 10.0)
    good.restore(saved)
    before = bits(other)
    with pytest.raises(ValueError, match="`state` must"):
        other.load_state({**good.state(), name: np.array(count)})
    assert bits(other) == before


def test_a_spoilt_count_of_the_default_rule_is_refused():
    good, other = counting(OMG), counting(OMG)
    (name,) = (each for each in good.state() if each.endswith("account"))
    before = bits(other)
    with pytest.raises(ValueError, match="`state` must"):
        other.load_state({**good.state(), name: np.array([0.0, 0.0, 1e300, 0.0])})
    assert bits(other) == before


def continues_bit_for_bit(make, path, rng):
    """Save one of two agents after 20 episodes of 40: the other, restored, plays and learns the same from then on."""
    contexts, agent = make()
    restored = None
    for t in range(40):
        context = contexts[int(rng.integers(len(contexts)))]
        policy = agent.policy(context)
        episode = an_episode(rng, agent.space, context, policy)
        agent.update(episode)
        if restored is not None:
            assert restored.policy(context).tobytes() == policy.tobytes()
            restored.update(episode)
            assert bits(restored) == bits(agent)
        if t == 19:
            agent.save(path)
            restored = make()[1]
            restored.restore(path)
    assert restored.episodes_seen == 40


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_restored_in_the_middle_continues_bit_for_bit(kind, tmp_path, rng):
    continues_bit_for_bit(lambda: build(kind, space="restricted"), tmp_path / "agent", rng)


def test_a_very_wide_range_of_rewards_is_refused_or_works():
    sizes = {"states": 1, "actions": 1, "horizon": 1}
    try:
        agent = counting(Greedy, size=sizes, reward_range=(-1.5e308, 1.5e308))
    except ValueError:
        return
    agent.update(Trajectory(context=0, states=[0, 0], actions=[0], rewards=[1.5e308]))
    assert agent.reward_oracle.predict(0)[0, 0] > 0.5
