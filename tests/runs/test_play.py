"""The user's loop: what is played is learned and logged, other programs can read it, and bad input does no harm."""

import importlib.util
from pathlib import Path

import gymnasium
import numpy as np
import pandas
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple

import omg_cmdp as omg
from omg_cmdp.environments import from_gymnasium, gymnasium_space
from omg_cmdp.logs import importance_sampling, read_frame
from omg_cmdp.oracles import CountDynamics, CountRewards, LinearRewards

HORIZON = 6


class Corridor(gymnasium.Env):
    """Cells 0..2; action 1 goes on with the probability in the context, and pays 5 at the end, where it terminates.

    Every step costs 1. `fault` is what goes wrong at step 2 of an episode, if anything.
    """

    metadata = {"render_modes": []}  # noqa: RUF012
    observation_space, action_space = Discrete(3), Discrete(2)

    def __init__(self):
        self.fault = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._chance = np.atleast_1d(options["context"])[0]
        self._cell, self._step = 0, 0
        return self._cell, {"context": options["context"]}

    def step(self, action):
        self._step += 1
        self._cell += int(action == 1 and self.np_random.random() < self._chance)
        over = self._cell == 3
        faulty = self.fault if self._step == 3 else None
        reward = {"reward": 7.0, "nan": np.nan, "vector": np.array([1.0, 2.0])}.get(faulty, 4.0 if over else -1.0)
        cell = 9 if faulty == "observation" else min(self._cell, 2)
        return cell, reward, over and faulty is None, faulty == "truncated", {}


class Anything(omg.Agent):
    """Does anything admissible, and learns nothing."""

    def __init__(self, space, reward_range=(0.0, 1.0)):
        self.space, self.reward_range = space, reward_range

    def policy(self, context):
        shares = self.space.admissible / self.space.admissible.sum(axis=1, keepdims=True)
        return np.repeat(shares[None], self.space.horizon, axis=0)

    def update(self, trajectory):
        pass


def features(context):
    return [context[0], 1.0 - context[0]]


def make_agent(env=None, kind=omg.agents.Greedy, **options):
    space = gymnasium_space(env or Corridor(), horizon=HORIZON)
    sizes = {"states": space.states, "actions": space.actions, "horizon": HORIZON}
    rewards = LinearRewards(**sizes, dimension=2, features=features)
    return kind(space, rewards, CountDynamics(**sizes), **{"reward_range": (-1.0, 4.0)} | options)


def same(one, other):
    return all(np.array_equal(one[name], other[name]) for name in one) and one.keys() == other.keys()


CONTEXTS = [np.array([0.9, 0.5]), np.array([0.3, 0.5]), np.array([0.6, 0.1])] * 4


def test_every_episode_is_played_learned_and_logged(seed):
    agent = make_agent(kind=omg.OMG)
    log = omg.play(Corridor(), agent, CONTEXTS, seed=seed)
    assert len(log) == agent.episodes_seen == len(CONTEXTS)
    twin = make_agent(kind=omg.OMG)
    for played, context in zip(log.episodes, CONTEXTS, strict=True):
        path, policy = played, twin.policy(context)
        np.testing.assert_array_equal(path.context, context)
        steps = np.arange(played.length)
        decided = policy[steps, path.states[: played.length], path.actions[: played.length]]
        np.testing.assert_array_equal(played.propensities[: played.length], decided)
        twin.update(path)
    assert same(agent.state(), twin.state())


def test_a_terminated_episode_waits_in_the_last_state_and_earns_nothing():
    sure = [np.array([1.0, 0.0])] * 5
    agent = make_agent()
    log = omg.play(Corridor(), agent, sure * 4)
    played = next(played for played in log.episodes if played.length < HORIZON)
    path, rest = played, slice(played.length, None)
    assert path.rewards[played.length - 1] == 4.0
    assert (path.states[played.length :] == 3).all()
    assert (path.rewards[rest] == 0.0).all()
    assert (path.actions[rest] == 0).all()
    assert (played.propensities[rest] == 1.0).all()
    assert path.rewards.sum() == 4.0 - (played.length - 1)


def test_one_seed_one_log_in_one_go_or_in_two():
    whole, parts = make_agent(kind=omg.OMG), make_agent(kind=omg.OMG)
    log = omg.play(Corridor(), whole, CONTEXTS, seed=3)
    first = omg.play(Corridor(), parts, CONTEXTS[:5], seed=3)
    again = omg.play(Corridor(), parts, CONTEXTS[5:], seed=3, log=first)
    assert again is first
    pandas.testing.assert_frame_equal(first.table(), log.table())
    assert same(whole.state(), parts.state())
    assert not log.table().equals(omg.play(Corridor(), make_agent(kind=omg.OMG), CONTEXTS, seed=4).table())


def test_actions_are_drawn_with_their_propensities():
    """E[1(a)/p(a)] = 1 for every action: the mean of inverse propensities of the first action."""
    agent = Anything(gymnasium_space(Corridor(), horizon=HORIZON), reward_range=(-1.0, 4.0))
    log = omg.play(Corridor(), agent, [np.array([0.5, 0.5])] * 400)
    weights = [(p.actions[0] == 1) / p.propensities[0] for p in log.episodes]
    assert np.mean(weights) == pytest.approx(1.0, abs=5.0 / np.sqrt(400))


@pytest.mark.parametrize("fault", ["reward", "nan", "vector", "truncated", "observation"])
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
        "truncated": "for 6 steps or terminate, got one truncated after 3: make agent and space for horizon 3",
        "observation": "`env` must return observations of its space",
    }
    path = tmp_path / "log.csv"
    with pytest.raises(ValueError, match=advice[fault]):
        omg.play(env, agent, contexts[2:], seed=1, log=log if form == "log" else path)
    assert same(agent.state(), before)
    assert len(log) == 2
    if form == "file":
        assert len(pandas.read_csv(path)) == 0  # the file has what was learned
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


@pytest.mark.parametrize("form", ["csv", "parquet", "npz", "vw"])
def test_a_first_episode_that_is_refused_leaves_an_empty_log(form, tmp_path):
    env, agent = Corridor(), make_agent()
    env.fault = "truncated"
    with pytest.raises(ValueError, match="got one truncated"):
        omg.play(env, agent, CONTEXTS, log=tmp_path / f"log.{form}")
    assert (tmp_path / f"log.{form}").exists()


@pytest.mark.parametrize("form", ["csv", "npz"])
def test_what_was_learned_before_an_interruption_is_written(form, tmp_path):
    def until_interrupted():
        yield from CONTEXTS[:5]
        raise KeyboardInterrupt

    agent, path = make_agent(), tmp_path / f"log.{form}"
    with pytest.raises(KeyboardInterrupt):
        omg.play(Corridor(), agent, until_interrupted(), log=path)
    assert agent.episodes_seen == 5
    if form == "csv":
        assert pandas.read_csv(path)["episode"].nunique() == 5


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
    with pytest.raises(ValueError, match=r"`env` must have discrete observations.*Discretised.*TransformObservation"):
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
    missing, taken = tmp_path / "missing" / "log.csv", tmp_path / "log.csv"
    taken.write_text("what was logged before")
    for wrong, message in (
        ("log.txt", "ends in .csv"),
        (missing, "a folder that exists"),
        (taken, "a new file"),
        (omg.Log(small.space), "`log` must be of the agent's"),
    ):
        with pytest.raises(ValueError, match=message):
            omg.play(Corridor(), agent, CONTEXTS, log=wrong)
    with pytest.raises(OSError, match="too long"):  # stands for a folder that others own, and a full disk
        omg.play(Corridor(), agent, CONTEXTS, log=tmp_path / f"{'x' * 300}.csv")
    with pytest.raises(ValueError, match=r"`env` must be a gymnasium\.Env"):
        omg.play("Corridor", agent, CONTEXTS)
    with pytest.raises(ValueError, match="`agent` must be an Agent"):
        omg.play(Corridor(), "agent", CONTEXTS)
    with pytest.raises(ValueError, match="`path` must end in"):
        omg.Log(agent.space).write(tmp_path / "log.json")
    assert agent.episodes_seen == 0


@pytest.fixture(scope="module")
def logged():
    agent = Anything(gymnasium_space(Corridor(), horizon=HORIZON), reward_range=(-1.0, 4.0))
    return omg.play(Corridor(), agent, CONTEXTS * 10)


def test_a_log_is_written_whole_or_not_at_all(logged, tmp_path, monkeypatch):
    path = logged.write(tmp_path / "log.csv")
    before = path.read_bytes()

    def crash(table, file, **_):
        Path(file).write_text("half of")
        raise KeyboardInterrupt

    monkeypatch.setattr("pandas.DataFrame.to_csv", crash)
    with pytest.raises(KeyboardInterrupt):
        logged.write(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_log_is_cut_by_slices(logged):
    assert len(logged[:7]) == 7
    assert logged[5:].episodes[0] is logged.episodes[5]
    with pytest.raises(TypeError, match="in `episodes`"):
        list(logged)


def test_the_table_is_what_off_policy_estimates_read(logged, tmp_path):
    logged.write(tmp_path / "log.parquet")
    logged.write(tmp_path / "log.csv")
    for frame in (logged.table(), pandas.read_parquet(tmp_path / "log.parquet"), pandas.read_csv(tmp_path / "log.csv")):
        log = read_frame(frame, logged.space, context=["context_0", "context_1"], reward_range=logged.reward_range)
        assert len(log) == len(logged)
        np.testing.assert_allclose(log.rewards.sum(axis=1), logged.returns)
        np.testing.assert_allclose(log.contexts[1], CONTEXTS[1])
    uniform = Anything(logged.space).policy(None)
    estimate = importance_sampling(log, lambda context: uniform)  # of the policy that was played: the mean return
    assert estimate.value == pytest.approx(logged.returns.mean(), abs=1e-9)


def test_obp_gets_a_round_for_every_decision(logged, tmp_path):
    with np.load(logged.write(tmp_path / "log.npz")) as feedback:
        lengths = [played.length for played in logged.episodes]
        assert int(feedback["n_rounds"]) == sum(lengths) == len(feedback["action"]) == len(feedback["pscore"])
        assert int(feedback["n_actions"]) == 2
        assert feedback["context"].shape == (sum(lengths), 2 + 4 + HORIZON)
        np.testing.assert_array_equal(feedback["context"][lengths[0], :2], CONTEXTS[1])
        assert (feedback["pscore"] == 0.5).all()
        # Inverse propensities value another policy: of the first step, to go on pays -1 for sure.
        first = feedback["context"][:, 6] == 1.0
        weights = (feedback["action"] == 1) / feedback["pscore"]
        assert (weights * feedback["reward"])[first].mean() == pytest.approx(-1.0, abs=5.0 / np.sqrt(first.sum()))


def test_vowpal_wabbit_reads_and_learns_from_the_log(logged, tmp_path):
    path = logged.write(tmp_path / "log.vw")
    lines = path.read_text().splitlines()
    label, context, state, step = (part.strip() for part in lines[0].split("|"))
    action, cost, probability = label.split(":")
    played = logged.episodes[0]
    assert (int(action), float(cost), float(probability)) == (played.actions[0] + 1, 4.0 - played.rewards[0], 0.5)
    assert (context, state, step) == ("context x0:0.9 x1:0.5", "state s0", "step h0")
    if importlib.util.find_spec("vowpalwabbit") is None:
        pytest.skip("vowpalwabbit is not installed")
    from vowpalwabbit import Workspace

    learner = Workspace("--cb 2 --quiet")
    for line in lines:
        learner.learn(line)
    assert learner.predict(lines[0].partition(" ")[2]) in (1, 2)
    learner.finish()


def test_labels_and_numbers_can_be_contexts(tmp_path):
    lake = from_gymnasium("FrozenLake-v1", [0.5, 0.9], arguments="success_rate", horizon=HORIZON)
    log = omg.play(lake, Anything(lake.space), [0.5, 0.9])
    assert set(log.table()["context"]) == {0.5, 0.9}
    assert "|context x0:0.5 |" in log.write(tmp_path / "log.vw").read_text()
    named = from_gymnasium(
        "FrozenLake-v1", ["wet", "dry"], arguments=lambda c: {"success_rate": {"wet": 0.4, "dry": 1.0}[c]}, horizon=6
    )
    log = omg.play(named, Anything(named.space), ["wet", "dry", "wet"])
    assert "|context cdry |" in log.write(tmp_path / "named.vw").read_text()
    with np.load(log.write(tmp_path / "named.npz")) as feedback:
        assert feedback["context"][0, :2].tolist() == [1.0, 0.0]


def test_simulated_and_played_agents_learn_the_same_numbers():
    """Rewards as they are, with the world's range, are to an agent what rescaled rewards are."""
    cliff = from_gymnasium("CliffWalking-v1", [False, True], arguments="is_slippery", horizon=HORIZON)
    sizes = {"states": 49, "actions": 4, "horizon": HORIZON}
    played = omg.agents.Greedy(
        cliff.space, CountRewards(**sizes), CountDynamics(**sizes), reward_range=cliff.reward_range
    )
    log = omg.play(cliff, played, [False, True])
    rescaled = omg.agents.Greedy(cliff.space, CountRewards(**sizes), CountDynamics(**sizes))
    low, high = cliff.reward_range
    for path in log.episodes:
        rewards = (path.rewards - low) / (high - low)
        rescaled.update(omg.Trajectory(context=path.context, states=path.states, actions=path.actions, rewards=rewards))
    np.testing.assert_allclose(played.model(True).rewards, rescaled.model(True).rewards, atol=1e-12)
