"""A world of a user's own, with the two members it needs; and agents for it.

`python -m tests.runs.worlds FOLDER EPISODES` restores a run of every kind, plays on, and saves it.
"""

import sys
from pathlib import Path

import numpy as np

import omg_cmdp as omg
from omg_cmdp import adversaries, oracles
from omg_cmdp.agents import Greedy, PosteriorSampling
from omg_cmdp.persistence import read_state

STATES, ACTIONS, HORIZON, DIMENSION = 3, 2, 3, 2
SIZE = {"states": STATES, "actions": ACTIONS, "horizon": HORIZON}
LABELS = ("a", 2, ("b", 0.1))
VECTORS = tuple(np.array(v) for v in ([1.0, 0.0], [0.6, 0.8], [0.1, -0.3]))


class Own(omg.ContextualMDP):
    """Random tables for each label or vector."""

    def __init__(self, contexts=LABELS, admissible=None, seed=0):
        rng = np.random.default_rng(seed)
        self.space = omg.Space(**SIZE, start=[0.7, 0.3, 0.0], admissible=admissible)
        self.keys = [str(c) for c in contexts]
        self.rewards = rng.random((len(contexts), HORIZON, STATES, ACTIONS))
        self.kernels = rng.dirichlet(np.ones(STATES), (len(contexts), STATES, ACTIONS))

    def mdp(self, context):
        i, space = self.keys.index(str(context)), self.space
        return omg.TabularMDP(
            transitions=self.kernels[i],
            rewards=self.rewards[i],
            horizon=HORIZON,
            start=space.start,
            admissible=space.admissible,
        )


def finite(world):
    """Return finite classes with the truth in them."""
    rng = np.random.default_rng(1)
    rewards = {c: np.stack([world.mdp(c).rewards, *rng.random((4, HORIZON, STATES, ACTIONS))]) for c in LABELS}
    kernels = {c: np.stack([world.mdp(c).transitions, *rng.dirichlet(np.ones(3), (4, 3, 2))]) for c in LABELS}
    return oracles.FiniteRewards(rewards, horizon=HORIZON), oracles.FiniteDynamics(kernels, horizon=HORIZON)


def counts(_):
    return oracles.CountRewards(**SIZE, contexts=LABELS), oracles.CountDynamics(**SIZE)


def stepwise(_):
    rewards = [oracles.CountRewards(states=STATES, actions=ACTIONS, horizon=1) for _ in range(HORIZON)]
    experts = [oracles.CountDynamics(**SIZE), oracles.CountDynamics(**SIZE, contexts=LABELS)]
    return oracles.StepwiseRewards(rewards), oracles.AggregateDynamics(experts, horizon=HORIZON)


def vectors(_):
    sizes = {**SIZE, "dimension": DIMENSION}
    return oracles.LinearRewards(**sizes), oracles.SoftmaxDynamics(**sizes)


AGENTS = {
    "adaptive, finite": (LABELS, finite, omg.OMG),
    "fixed, counts": (LABELS, counts, lambda *parts: omg.OMG(*parts, 30.0)),
    "adaptive, stepwise": (LABELS, stepwise, omg.OMG),
    "adaptive, linear": (VECTORS, vectors, omg.OMG),
    "anytime, linear": (VECTORS, vectors, lambda *parts: omg.OMG(*parts, "anytime")),
    "greedy, linear": (VECTORS, vectors, Greedy),
    "posterior sampling, finite": (LABELS, finite, lambda *parts: PosteriorSampling(*parts, seed=5)),
}


class Walk(adversaries.Adversary):
    """Goes on to the next context, or stays, in each episode; remembers where it is."""

    settings = ("contexts",)

    def __init__(self, contexts):
        self.contexts, self.place = tuple(contexts), 0

    def context(self, episode, view, generator):
        self.place += int(generator.integers(2))
        return self.contexts[self.place % len(self.contexts)]

    def state(self):
        return {"place": np.array(self.place)}

    def load_state(self, state):
        self.place = int(read_state(state)["place"])


def make_run(kind, seed=0, *, walk=False, **more):
    """Return a run of an agent by name, in a world made anew."""
    contexts, make_oracles, make_agent = AGENTS[kind]
    world = Own(contexts)
    adversary = Walk(contexts) if walk else adversaries.IID(contexts)
    return omg.Run(world, adversary, make_agent(world.space, *make_oracles(world)), seed=seed, **more)


if __name__ == "__main__":
    for name in AGENTS:
        run = make_run(name, walk=True)
        run.restore(Path(sys.argv[1]) / name)
        run.advance(int(sys.argv[2]))
        run.save(Path(sys.argv[1]) / f"{name}, continued")
