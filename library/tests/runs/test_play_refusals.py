"""What `play` refuses, and that it does no harm: what came before is learned and logged, and play goes on."""

import gymnasium
import numpy as np
import pandas
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple

import omg_cmdp as omg
from library.tests.runs.corridor import CONTEXTS, HORIZON, Anything, Corridor, make_agent, same
from omg_cmdp.environments import from_gymnasium, gymnasium_space
from omg_cmdp.oracles import CountDynamics, LinearRewards


@pytest.mark.parametrize("fault", ["reward", "nan", "vector", "observation"])
@pytest.mark.parametrize("form", ["log", "file"])
def test_a_bad_episode_is_refused_and_the_agent_goes_on(fault, form, tmp_path):
    """Everything before it is learned and logged, nothing of it, and the next call carries on as if it had not been."""
    env, agent, clean = Corridor(), make_agent(kind=omg.OMG), make_agent(kind=omg.OMG)
    contexts = [np.array([0.5, 0.5])] * 4
    expected = omg.play(Corridor(), clean, contexts, seed=1)
    log = omg.Log(agent.space, reward_range=agent.reward_range)
    omg.play(env, agent, contexts[:2], seed=1, log=log)
    before, env.fault = agent.state(), fault
    advice = {
        "reward": r"in the declared range \[-1, 4\], got 7.0 at step 2: make the agent with a wider `reward_range`",
        "nan": "got nan at step 2",
        "vector": r"rewards that are numbers, got array\(\[1., 2.\]\) at step 2: wrap it with .*TransformReward",
        "observation": "`env` must return observations of its space",
    }
    path = tmp_path / "log.jsonl"
    with pytest.raises(ValueError, match=advice[fault]):
        omg.play(env, agent, contexts[2:], seed=1, log=log if form == "log" else path)
    assert same(agent.state(), before)
    assert len(log) == 2
    if form == "file":
        assert path.read_text() == ""  # the file has what was learned
    env.fault = None
    omg.play(env, agent, contexts[2:], seed=1, log=log)
    pandas.testing.assert_frame_equal(log.table(), expected.table())
    assert same(agent.state(), clean.state())


def test_an_episode_that_the_agent_refuses_is_not_logged():
    class Refusing(Anything):
        def update(self, trajectory):
            raise ValueError("`trajectory` must be another one")

    agent = Refusing(gymnasium_space(Corridor(), horizon=HORIZON), reward_range=(-1.0, 4.0))
    log = omg.Log(agent.space, reward_range=agent.reward_range)
    with pytest.raises(ValueError, match="another one"):
        omg.play(Corridor(), agent, CONTEXTS, log=log)
    assert len(log) == 0


def test_an_episode_that_earns_more_than_it_can_is_neither_learned_nor_logged():
    """Six steps cost 6, three steps to the end earn 2: between them there is the range that is declared."""
    log = omg.Log(make_agent().space, reward_range=(-1.0, 4.0))
    agent = make_agent(kind=omg.OMG, return_range=(-6.0, 0.0))
    with pytest.raises(ValueError, match=r"`return_range` must hold .* got \[-6, 0\] and an episode that earned [12]"):
        omg.play(Corridor(), agent, [np.array([0.9, 0.5])] * 100, log=log)
    assert agent.episodes_seen == len(log) < 100
    assert (log.returns <= 0.0).all()
    omg.play(Corridor(), agent, [np.array([0.0, 0.5])] * 2, log=log)
    assert agent.episodes_seen == len(log)


@pytest.mark.parametrize("context", [np.array([0.5]), np.array([0.5, 0.5, 0.5]), 0.5, "dusty", [[0.5], [0.1, 0.2]]])
def test_a_context_of_a_new_shape_is_refused_and_the_agent_goes_on(context):
    env, agent = Corridor(), make_agent(kind=omg.OMG)
    log = omg.play(env, agent, CONTEXTS[:2])
    before = agent.state()
    with pytest.raises(ValueError, match=r"`contexts` must all be numbers of shape \(2,\).*describe each by the same"):
        omg.play(env, agent, [context], log=log)
    assert same(agent.state(), before)
    assert len(omg.play(env, agent, CONTEXTS[2:4], log=log)) == 4


def test_the_first_context_of_a_world_is_of_the_kind_of_its_contexts():
    world = from_gymnasium(Corridor, CONTEXTS[:3], horizon=HORIZON, reward_range=(-1.0, 4.0))
    agent = make_agent(kind=omg.OMG)
    with pytest.raises(ValueError, match=r"`contexts` must all be numbers of shape \(2,\)"):
        omg.play(world, agent, [np.array([0.5, 0.5, 0.5])])
    assert agent.episodes_seen == 0
    assert len(omg.play(world, agent, CONTEXTS)) == len(CONTEXTS)


def test_a_first_episode_that_is_refused_leaves_an_empty_log(tmp_path):
    env, agent = Corridor(), make_agent()
    env.fault = "nan"
    with pytest.raises(ValueError, match="got nan at step 2"):
        omg.play(env, agent, CONTEXTS, log=tmp_path / "log.jsonl")
    assert (tmp_path / "log.jsonl").read_text() == ""


def test_a_first_context_that_the_oracles_cannot_read_is_refused_before_it_is_played():
    space = gymnasium_space(Corridor(), horizon=HORIZON)
    sizes = {"states": 4, "actions": 2, "horizon": HORIZON}
    rewards, dynamics = LinearRewards(**sizes, dimension=2, feature_norm=2.0), CountDynamics(**sizes)
    agent = omg.agents.Greedy(space, rewards, dynamics, reward_range=(-1.0, 4.0))
    with pytest.raises(ValueError, match=r"`context` must be a vector of numbers of shape \(2,\)"):
        omg.play(Corridor(), agent, [np.array([0.5, 0.5, 0.5])])
    assert agent.episodes_seen == 0
    assert len(omg.play(Corridor(), agent, CONTEXTS)) == len(CONTEXTS)


class Seen(gymnasium.ObservationWrapper):
    def __init__(self, space, element):
        super().__init__(Corridor())
        self.observation_space, self._element = space, element

    def observation(self, observation):
        return self._element


@pytest.mark.parametrize(
    ("space", "element"),
    [
        (Box(-1.0, 1.0, (2,)), np.zeros(2)),
        (Dict(state=Discrete(3)), {"state": 0}),
        (Tuple([Box(0, 1)]), (np.zeros(1),)),
    ],
)
def test_observations_that_are_not_discrete_are_refused_before_anything_is_played(space, element):
    agent = make_agent()
    before = agent.state()
    with pytest.raises(ValueError, match=r"`env` must have discrete observations.*TransformObservation"):
        omg.play(Seen(space, element), agent, CONTEXTS)
    assert same(agent.state(), before)
    assert len(omg.play(Corridor(), agent, CONTEXTS)) == len(CONTEXTS)


@pytest.mark.parametrize(
    ("space", "element", "state"),
    [
        (Discrete(4, start=3), 5, 2),
        (Discrete(4, start=3), np.uint64(5), 2),
        (MultiDiscrete([2, 3]), np.array([1, 2]), 5),
        (Tuple([Discrete(2), Discrete(3, start=1)]), (1, 2), 4),
    ],
)
def test_composed_discrete_observations_are_numbered(space, element, state):
    env = Seen(space, element)
    agent = Anything(gymnasium_space(env, horizon=HORIZON, start=state), reward_range=(-1.0, 4.0))
    log = omg.play(env, agent, CONTEXTS[:1])
    assert log.episodes[0].states[0] == state


def test_an_episode_that_begins_where_the_space_excludes_it_is_refused():
    """An agent that plans from elsewhere would never learn what to do there."""
    env = Seen(Discrete(3), 2)
    agent = Anything(gymnasium_space(env, horizon=HORIZON), reward_range=(-1.0, 4.0))
    with pytest.raises(
        ValueError, match=r"`env` must begin in a state .*, got 2: give such a `start`.*next one can be"
    ):
        omg.play(env, agent, CONTEXTS[:1])
    told = Anything(gymnasium_space(env, horizon=HORIZON, start=2), reward_range=(-1.0, 4.0))
    assert len(omg.play(env, told, CONTEXTS[:1])) == 1


def test_sizes_ranges_and_names_are_checked_before_anything_is_played(tmp_path):
    small = Anything(omg.Space(states=3, actions=2, horizon=HORIZON), reward_range=(-1.0, 4.0))
    with pytest.raises(ValueError, match=r"`agent` must be made for 3 \+ 1 states.*gymnasium_space"):
        omg.play(Corridor(), small, CONTEXTS)
    with pytest.raises(ValueError, match=r"`reward_range` must be an interval .* that contains 0"):
        omg.play(Corridor(), make_agent(reward_range=(1.0, 4.0)), CONTEXTS)
    agent = make_agent()
    missing, taken = tmp_path / "missing" / "log.jsonl", tmp_path / "log.jsonl"
    taken.write_text("what was logged before")
    for wrong, message in (
        ("log.csv", "`log` must end in .jsonl"),
        (missing, "a folder that exists"),
        (taken, "exists already; give `overwrite=True`"),
        (omg.Log(small.space), "`log` must be of the agent's"),
    ):
        with pytest.raises(ValueError, match=message):
            omg.play(Corridor(), agent, CONTEXTS, log=wrong)
    with pytest.raises(OSError, match="too long"):  # stands for a folder that others own, and a full disk
        omg.play(Corridor(), agent, CONTEXTS, log=tmp_path / f"{'x' * 300}.jsonl")
    with pytest.raises(ValueError, match=r"`env` must be a gymnasium\.Env"):
        omg.play("Corridor", agent, CONTEXTS)
    with pytest.raises(ValueError, match="`agent` must be an Agent"):
        omg.play(Corridor(), "agent", CONTEXTS)
    with pytest.raises(ValueError, match="`path` must end in"):
        omg.Log(agent.space).write(tmp_path / "log.json")
    assert agent.episodes_seen == 0
    assert taken.read_text() == "what was logged before"


def test_a_log_that_exists_is_replaced_if_that_is_asked_for(tmp_path):
    agent, file = make_agent(), tmp_path / "log.jsonl"
    omg.play(Corridor(), agent, CONTEXTS, log=file)
    before = file.read_bytes()
    with pytest.raises(ValueError, match=r"the file .* of `log` exists already; give `overwrite=True`"):
        omg.play(Corridor(), agent, CONTEXTS, log=file)
    assert file.read_bytes() == before
    omg.play(Corridor(), agent, CONTEXTS[:1], log=file, overwrite=True)
    assert len(omg.logs.read_log(file, agent.space, reward_range=agent.reward_range)) == 1
