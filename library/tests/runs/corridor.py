"""A corridor to play in Gymnasium, and agents for it."""

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

import omg_cmdp as omg
from omg_cmdp.environments import gymnasium_space
from omg_cmdp.oracles import CountDynamics, LinearRewards

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
