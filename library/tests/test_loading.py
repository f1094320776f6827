"""An agent is loaded from its file alone: in another process, with what no file can hold, and never from a bad file."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from library.tests.agents import catalogue as of_agents
from library.tests.agents.models import an_episode
from library.tests.oracles import catalogue as of_oracles
from omg_cmdp import OMG, Agent, RewardOracle, Space, load, oracles
from omg_cmdp.agents import Greedy, Power, Uniform
from omg_cmdp.contexts import context_from_json, context_to_json
from omg_cmdp.oracles import RefittedRewards
from omg_cmdp.persistence import AGENT_FILE, read_arrays, write_arrays
from omg_cmdp.recipes.files import PREFIX, pack_recipe
from omg_cmdp.recipes.recipe import Missing, Recipe, holes, kept

SIZE = {"states": 2, "actions": 2, "horizon": 3}
RECORDS = [{"age": 20, "ward": "a"}, {"age": 50, "ward": "b"}, {"age": None, "ward": "a"}]
MAP = oracles.FeatureMap.fit(RECORDS, crosses=[("age", "ward")])


def course(agent, contexts):
    """Return a digest of what the agent plays, and of all that it has learned after some more episodes."""
    whole, rng = hashlib.sha256(), np.random.default_rng(1)
    for context in contexts:
        policy = agent.policy(context)
        whole.update(policy.tobytes())
        low, high = agent.reward_range
        narrow = (0.0, 0.0) if agent.return_range else (low, high)  # zero rewards are within every range of returns
        agent.update(an_episode(rng, agent.space, context, policy, *narrow))
    for name, array in sorted(agent.state().items()):
        whole.update(name.encode() + array.dtype.str.encode() + array.tobytes())
    return whole.hexdigest()


def in_another_process(folder):
    """Load all agents of a folder, and print what becomes of them."""
    found = {}
    for file in sorted(pathlib.Path(folder).glob("*.npz")):
        contexts = context_from_json(file.with_suffix(".json").read_text())
        found[file.stem] = course(load(file), contexts)
    print(json.dumps(found))


def each_oracle():
    """Yield (name, (contexts, greedy agent)) for every oracle of the catalogue."""
    space, horizon = Space(**of_oracles.SIZE, horizon=2), 2
    partner = {
        True: lambda: oracles.CountDynamics(**of_oracles.SIZE, horizon=horizon),
        False: lambda: oracles.CountRewards(**of_oracles.SIZE, horizon=horizon),
    }
    for name, (contexts, oracle) in of_oracles.each_oracle(horizon).items():
        if name.endswith((", proven", ", realizable")):  # a text like any other
            continue
        is_reward = isinstance(oracle, RewardOracle)
        pair = (oracle, partner[True]()) if is_reward else (partner[False](), oracle)
        yield name, (contexts, Greedy(space, *pair))


def test_every_agent_and_oracle_continues_bit_for_bit_in_another_process(tmp_path):
    few = {name: of_agents.build(name) for name in of_agents.KINDS}
    few |= {f"on {name}": of_agents.build("greedy", "counts", name) for name in of_agents.SPACES}
    few |= {"ranges": of_agents.build("greedy", reward_range=(-2, 5), return_range=(-7.0, 3.0))}
    few |= {"without oracles": (["a"], Uniform(Space(**SIZE)))}
    few |= {"records": (RECORDS, linear(MAP, MAP, dimension=MAP.dimension))}
    wanted, own = {}, []
    for number, (name, (contexts, agent)) in enumerate((few | dict(each_oracle())).items()):
        if any(holes(kept(agent))):
            own.append(name)
            continue
        course(agent, contexts)
        agent.save(tmp_path / f"{number}.npz")
        (tmp_path / f"{number}.json").write_text(context_to_json(list(contexts)))
        wanted[str(number)] = course(agent, contexts)
    assert own == ["callable", "shared linear, guarded", "step-dependent finite rewards"]  # the test's own functions
    script = "import sys; from library.tests.test_loading import in_another_process; in_another_process(sys.argv[1])"
    with_tests = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=with_tests)
    assert json.loads(ran.stdout.splitlines()[-1]) == wanted


def linear(reward_features, dynamics_features, gamma="adaptive", *, dimension=2):
    size = {**SIZE, "dimension": dimension}
    pair = (
        oracles.LinearRewards(**size, features=reward_features),
        oracles.SoftmaxDynamics(**size, features=dynamics_features),
    )
    return OMG(Space(**SIZE), *pair, gamma)


def halves(context):
    return [0.5, 0.5 * (context == "a")]


def other_halves(context):
    return [0.5 * (context == "a"), 0.5]


def test_parts_of_the_users_own_are_named_and_taken(tmp_path):
    """One name for the same function in two oracles, two for two; another function than before is refused."""
    agent = linear(halves, halves, gamma=lambda t: 10.0 * t)
    before = course(agent, ["a", "b"])
    agent.save(tmp_path / "agent")
    with pytest.raises(
        ValueError, match=r"`features` \(the function halves\), `gamma` .*load\(path, features=..., gam"
    ):
        load(tmp_path / "agent")
    with pytest.raises(ValueError, match=r"hold: `gamma` \(a function\)"):
        load(tmp_path / "agent", features=halves)
    with pytest.raises(ValueError, match="`speed` is no part of the OMG"):
        load(tmp_path / "agent", features=halves, gamma=1.0, speed=3)
    with pytest.raises(ValueError, match="`state` must come from the same `features`"):
        load(tmp_path / "agent", features=other_halves, gamma=lambda t: 10.0 * t)
    with pytest.raises(ValueError, match="`state` must come from"):
        load(tmp_path / "agent", features=halves, gamma=lambda t: 11.0 * t)
    again = load(tmp_path / "agent", features=halves, gamma=lambda t: 10.0 * t)
    assert before != course(agent, ["b", "a"]) == course(again, ["b", "a"])
    linear(halves, other_halves).save(tmp_path / "two")
    with pytest.raises(ValueError, match=r"\(path, reward_oracle__features=..., dynamics_oracle__features=...\)"):
        load(tmp_path / "two")
    with pytest.raises(ValueError, match=r"`features` is no part .* its parts are reward_oracle__features, dynamics_"):
        load(tmp_path / "two", features=halves)
    fresh = linear(halves, other_halves)
    whole = {"dynamics_oracle": fresh.dynamics_oracle, "reward_oracle__features": halves}
    assert course(load(tmp_path / "two", **whole), ["a"]) == course(linear(halves, other_halves), ["a"])


class Half(RewardOracle):
    """An oracle of the user's own."""

    def predict(self, context):
        return np.full((2, 2), 0.5)

    def uncertainty(self, context):
        return np.full((2, 2), 0.1)

    def update(self, context, states, actions, rewards):
        pass

    def regret_bound(self, episodes, horizon):
        return np.inf

    def state(self):
        return {}

    def load_state(self, state):
        pass


class Mean:
    """A model of another package."""

    def fit(self, inputs, outcomes):
        self.mean = np.mean(outcomes)

    def predict(self, inputs):
        return np.full(len(inputs), self.mean)


class First(Agent):
    """An agent of the user's own."""

    space = Space(**SIZE)

    def policy(self, context):
        return np.full((3, 2, 2), 0.5)

    def update(self, trajectory):
        pass

    def state(self):
        return {"a": np.zeros(2)}

    def load_state(self, state):
        assert list(state) == ["a"]


def test_classes_of_the_users_own(tmp_path):
    one = oracles.AggregateRewards([oracles.CountRewards(**SIZE), Half()], horizon=3)
    Greedy(Space(**SIZE), one, oracles.CountDynamics(**SIZE)).save(tmp_path / "mixed")
    with pytest.raises(ValueError, match=r"`reward_oracle__oracles__1` \(of class Half\)"):
        load(tmp_path / "mixed")
    assert load(tmp_path / "mixed", reward_oracle__oracles__1=Half()).policy(None).shape == (3, 2, 2)
    shape = {**SIZE, "features": halves}
    Greedy(Space(**SIZE), RefittedRewards(Mean(), **shape), oracles.CountDynamics(**SIZE)).save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"`model` \(of class Mean\), `features` \(the function halves\)"):
        load(tmp_path / "model")
    assert load(tmp_path / "model", model=Mean(), features=halves).policy("a").shape == (3, 2, 2)
    First().save(tmp_path / "own")
    First().restore(tmp_path / "own")
    with pytest.raises(ValueError, match="of class First, which is not of this package: make it as before"):
        load(tmp_path / "own")


def test_arguments_are_those_of_the_time_when_the_agent_was_made():
    """A generator is used up, a table is changed afterwards: what was made is what is remembered."""
    support = np.ones((2, 2, 2), dtype=bool)
    one = oracles.CountDynamics(**SIZE, contexts=(name for name in "ab"), support=support)
    support[:] = False
    arguments = kept(one).arguments
    assert arguments["contexts"] == ("a", "b")
    assert arguments["support"].all()
    assert arguments["rate"] == "guarded"  # defaults are in the file, should they change
    assert kept([Power(1.0, 0.5), len])[1] == Missing("the function len", id(len))


BAD = {
    "an unknown class": Recipe("omg_cmdp", "Nobody", {}),
    "a class of elsewhere": Recipe("subprocess", "Popen", {"args": "true"}),
    "a class that is no agent": Recipe("omg_cmdp", "Power", {"scale": 1.0, "exponent": 0.5}),
    "an agent in the place of a space": Recipe("omg_cmdp", "Uniform", {"space": Recipe("omg_cmdp", "Uniform", {})}),
    "an unknown argument": Recipe("omg_cmdp", "Uniform", {"space": kept(Space(**SIZE)), "path": "/etc/passwd"}),
    "a wrong type": Recipe("omg_cmdp", "Uniform", {"space": {"states": 1}}),
    "NaN": Recipe("omg_cmdp", "Uniform", {"space": kept(Space(**SIZE)), "reward_range": (float("nan"), 1.0)}),
    "an endless horizon": Recipe(
        "omg_cmdp", "Uniform", {"space": Recipe("omg_cmdp", "Space", {**SIZE, "horizon": 10**12})}
    ),
    "matrices that take minutes": Recipe("omg_cmdp", "BasisDynamics", {**SIZE, "bases": 10**4}),
    "a table beyond all memory": Recipe(
        "omg_cmdp",
        "Greedy",
        {
            "space": kept(Space(**SIZE)),
            "reward_oracle": kept(oracles.CountRewards(**SIZE)),
            "dynamics_oracle": Recipe("omg_cmdp", "CountDynamics", {**SIZE, "states": 10**5, "actions": 10**3}),
        },
    ),
}
TEXTS = {
    "no JSON": "{",
    "an endless list": "[" * 10**5,
    "deep": '{"list": [' * 100 + "]}" * 100,
    "a literal NaN": '{"make": ["omg_cmdp", "Power"], "with": {"scale": NaN, "exponent": 1}}',
    "an array that is not there": '{"array": 7}',
    "an array of objects": '{"dtype": "O", "shape": [1], "numbers": [1]}',
    "a huge array": '{"dtype": "f8", "shape": [1000000000000], "numbers": [1]}',
    "no object": "3",
    "a dictionary without order": '{"dict": [[{"list": []}, 1]]}',
}


def in_a_file(path, recipe):
    state = Uniform(Space(**SIZE)).state()
    write_arrays(path, {**state, **recipe}, **AGENT_FILE)
    return path


@pytest.mark.parametrize("name", BAD)
def test_a_recipe_for_something_else_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match=r"cannot make the agent in .*: "):
        load(in_a_file(tmp_path / "agent", pack_recipe(BAD[name])))


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_is_no_recipe_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match=r"must be a saved agent, got .* no recipe"):
        load(in_a_file(tmp_path / "agent", {f"{PREFIX}recipe": np.array(TEXTS[name])}))


def test_a_damaged_file_is_refused(tmp_path):
    agent = Uniform(Space(**SIZE))
    agent.save(tmp_path / "agent")
    whole = (tmp_path / "agent").read_bytes()
    for count in (0, 1, len(whole) // 2, len(whole) - 1):
        (tmp_path / "part").write_bytes(whole[:count])
        with pytest.raises(ValueError, match="`path` must be a saved agent of format 4"):
            load(tmp_path / "part")
    arrays = read_arrays(tmp_path / "agent", **AGENT_FILE)
    assert load(in_a_file(tmp_path / "same", arrays)).space.horizon == 3
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
