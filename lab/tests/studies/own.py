"""A user's folder for tests: a study file, and the modules and tables that it names."""

from omg_lab.studies.config import load_plan
from omg_lab.studies.directory import open_study
from omg_lab.studies.engines import play_here
from omg_lab.studies.results import load

WORLD = '''
import numpy as np
import omg_cmdp as omg
from sizes import STATES


class Ladder(omg.ContextualMDP):
    """A ladder that one climbs by the right action."""

    def __init__(self, *, horizon=3, people=4, seed=0):
        self.space = omg.Space(states=STATES, actions=2, horizon=horizon)
        draw = np.random.default_rng(seed)
        self.contexts = [{"skill": float(skill)} for skill in draw.random(people)]

    def mdp(self, context):
        up = np.zeros((STATES, 2, STATES))
        for state in range(STATES):
            for action, chance in enumerate((context["skill"], 1.0 - context["skill"])):
                up[state, action, min(state + 1, STATES - 1)] += chance
                up[state, action, 0] += 1.0 - chance
        rewards = np.repeat(np.arange(STATES)[:, None] / (STATES - 1), 2, axis=1)
        return self.space.mdp(transitions=up, rewards=rewards)


class Timid(omg.agents.EpsilonGreedy):
    """ε-greedy of somebody else."""


class Halves(omg.RewardOracle):
    """Predicts ½, or what it is told."""

    def __init__(self, *, states, actions, value=0.5):
        self.table = np.full((states, actions), value)

    def predict(self, context):
        return self.table.copy()

    def uncertainty(self, context):
        return np.full(self.table.shape, 0.01)

    def update(self, context, states, actions, rewards):
        pass

    def regret_bound(self, episodes, horizon):
        return np.inf

    def state(self):
        return {}

    def load_state(self, state):
        pass
'''

ENVIRONMENT = '''
import gymnasium
from gymnasium.spaces import Discrete


class Beans(gymnasium.Env):
    """Watered or not; some weeks end early."""

    observation_space, action_space = Discrete(3), Discrete(2)

    def __init__(self, price=0.1):
        self.price = price

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.rain, self.soil = options["context"]["rain"] if options else 0.5, 1
        return self.soil, {}

    def step(self, action):
        reward = (0.2, 1.0, 0.7)[self.soil] - self.price * action
        rained = self.np_random.random() < self.rain
        self.soil = min(max(self.soil - 1 + rained + 2 * action, 0), 2)
        return self.soil, reward, False, bool(self.np_random.random() < 0.1), {}
'''

FILES = {
    "ladder.py": WORLD,
    "sizes.py": "STATES = 3\n",
    "garden.py": ENVIRONMENT,
    "weeks.csv": "rain,bed\n0.0,a\n0.4,b\n0.9,c\n",
    "people.csv": "grip,name\n0.4,x\n0.7,y\n0.9,z\n",
}

LADDER = """
[worlds.ladder]
kind = "ladder:Ladder"
people = 3
"""
GARDEN = """
[worlds.garden]
kind = "garden:Beans"
contexts = "weeks.csv"
keywords = { price = 0.05 }
horizon = 5
reward_range = [-0.1, 1.0]
"""
LAKE = """
[worlds.lake]
kind = "gymnasium"
id = "FrozenLake-v1"
contexts = "people.csv"
arguments = { success_rate = "grip" }
keywords = { map_name = "4x4" }
horizon = 6
return_range = [0.0, 1.0]
"""
AGENTS = """
[agents.omg]
oracles = { rewards = { kind = "ladder:Halves", value = 0.4 }, dynamics = { kind = "softmax", ridge = 2.0 } }
[agents.timid]
kind = "ladder:Timid"
epsilon = 0.3
"""
HEAD = "episodes = 30\nseeds = 1\ncheckpoint = 10\npropensities = true\n"


def write(folder, *parts, head=HEAD, agents=AGENTS):
    """Write the user's files and a study of these worlds into `folder`, and return the path of the study file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    path = folder / "own.toml"
    path.write_text("".join([head, *(parts or (LADDER, GARDEN, LAKE)), agents]))
    return path


def run(path, directory):
    """Run a study file in this process, and return its results."""
    plan = load_plan(str(path))
    play_here(plan.tasks(), open_study(plan, directory), lambda event: None)
    return load(directory)
