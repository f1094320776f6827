"""Ranges of rewards where episodes end, are cut off, or come from an agent with a range of its own."""

import gymnasium
import numpy as np
import pandas
import pytest
from gymnasium.spaces import Discrete

import omg_cmdp as omg
from library.tests.logs.tables import SPACE, random_log
from library.tests.runs.corridor import Anything
from omg_cmdp.logs import doubly_robust, importance_sampling, read_table
from omg_cmdp.oracles import CountDynamics, CountRewards

SIZES = {"states": 2, "actions": 1, "horizon": 3}


def one_step(rewards, terminated=True):
    """Return a table of episodes that last one step of three, in state 0."""
    count = len(rewards)
    columns = {"episode": range(count), "step": 0, "context": "c", "state": 0, "action": 0, "next_state": 0}
    return pandas.DataFrame({**columns, "reward": rewards, "propensity": 1.0, "terminated": terminated})


def test_ended_episodes_need_a_range_that_holds_what_they_earn():
    """Rewards of 1 and 2, then nothing: 1.5."""
    space, table = omg.Space(**SIZES), one_step([1.0, 2.0] * 50)
    with pytest.raises(ValueError, match=r"`reward_range` must hold 0, what ended episodes earn, got \(1\.0, 2\.0\)"):
        read_table(table, space=space, reward_range=(1.0, 2.0))
    log = read_table(table, space=space, reward_range=(0.0, 2.0))
    assert importance_sampling(log, lambda context: np.ones((3, 2, 1))).value == pytest.approx(1.5, abs=1e-9)


def test_an_episode_that_ends_with_the_horizon_earns_nothing_more():
    space = omg.Space(states=2, actions=1, horizon=1)
    log = read_table(one_step([1.0, 2.0] * 50), space=space, reward_range=(1.0, 2.0))
    assert importance_sampling(log, lambda context: np.ones((1, 2, 1))).value == pytest.approx(1.5, abs=1e-9)
    # Nor does one that was cut off: nothing is said of what follows.
    cut = read_table(one_step([1.0, 2.0] * 50, terminated=False), space=omg.Space(**SIZES), reward_range=(1.0, 2.0))
    assert cut.steps.tolist() == [1] * 100


def test_a_model_is_of_the_log_s_range(rng):
    """An agent tells its model in [0, 1], whatever that stands for."""
    log = random_log(rng, 40)
    wide = omg.Log(SPACE, log.episodes, reward_range=(-1.0, 3.0))
    sizes = {"states": 2, "actions": 2, "horizon": 3}
    oracles = CountRewards(**sizes), CountDynamics(**sizes)
    agent = omg.logs.warm_start(omg.agents.Greedy(SPACE, *oracles, reward_range=(-1.0, 3.0)), wide)
    policy = np.full((3, 2, 2), 0.5)
    right = doubly_robust(wide, lambda context: policy, agent.model)
    assert right.value == pytest.approx(log.returns.mean(), abs=0.6)
    with pytest.raises(ValueError, match=r"`model` is of rewards in \(-1\.0, 3\.0\), .* of \(0\.0, 1\.0\)"):
        doubly_robust(log, lambda context: policy, agent.model)


def test_a_world_has_two_ranges_and_a_log_is_of_either():
    lake = omg.environments.from_gymnasium("CliffWalking-v1", [False, True], arguments="is_slippery", horizon=3)
    policy = np.full((3, *lake.space.admissible.shape), 0.25)
    policy[:, -1] = [1.0, 0.0, 0.0, 0.0]
    sampled = omg.Log(lake.space, [lake.sample(False, policy, np.random.default_rng(0))])
    played = omg.play(lake, Anything(lake.space, lake.reward_range), [False])
    values = [doubly_robust(log, lambda context: policy, lake.mdp).value for log in (sampled, played)]
    assert values[1] == pytest.approx(lake.original_value(values[0]), abs=1e-9)
    other = omg.Log(lake.space, sampled.episodes, reward_range=(-2.0, 2.0))
    with pytest.raises(ValueError, match="`model` is of rewards in"):
        doubly_robust(other, lambda context: policy, lake.mdp)


class Errand(gymnasium.Env):
    """Every step costs 1 for ten steps, unless the context lets it be cut off after the first."""

    metadata = {"render_modes": []}  # noqa: RUF012
    observation_space, action_space = Discrete(1), Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.patient = options["context"]
        return 0, {"context": options["context"]}

    def step(self, action):
        return 0, -1.0, False, bool(action) and self.np_random.random() < 0.5, {}


def test_an_episode_that_was_cut_off_is_not_cheap(rng):
    """A mean over returns would take what was not seen for nothing."""
    world = omg.environments.from_gymnasium(Errand, ["a", "b"], horizon=10, reward_range=(-1.0, 0.0))
    agent = omg.agents.Uniform(world.space, reward_range=(-1.0, 0.0))
    log = omg.play(world, agent, ["a", "b"] * 10)
    assert log.steps.min() < 10
    stay = np.zeros((10, 2, 2))
    stay[..., 0] = 1.0
    with pytest.raises(
        ValueError, match=r"`log` must hold whole episodes .*`log\.whole\(\)`.* got \d of 10 rewards in episode \d+"
    ):
        omg.shortfall(world, log, {"stay": lambda context: stay})
    patient = omg.play(world, Stay(agent), ["a", "b"] * 10)
    table = omg.shortfall(world, patient, {"stay": lambda context: stay}, rollouts=4)
    assert table["shortfall"].abs().max() == 0.0


class Stay(omg.Agent):
    """Never does what may be cut off."""

    def __init__(self, other):
        self.space, self.reward_range = other.space, other.reward_range

    def policy(self, context):
        return np.eye(2)[np.zeros((10, 2), dtype=int)]

    def update(self, trajectory):
        pass
