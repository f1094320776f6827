"""The worlds of the package, and what tests ask of several of them."""

import importlib
import inspect
import pkgutil

import numpy as np

from omg_cmdp import TabularMDP, optimal_policy
from omg_cmdp.oracles import FiniteDynamics, FiniteRewards
from omg_lab import data, worlds
from omg_lab.worlds import (
    Arms,
    CombinationLock,
    ContextualBandit,
    Corridor,
    Decoy,
    DeepSea,
    LinearWorld,
    LongDecoy,
    LowerBound,
    Maintenance,
    NoisyRoom,
    Reminders,
    RiverSwim,
    SideEffects,
    SoftmaxWorld,
    TreatmentTrial,
    World,
)


def found(room):
    """Return the worlds defined in the modules of `room`; abstract ones are bases."""
    modules = [
        importlib.import_module(f"{room.__name__}.{module.name}") for module in pkgutil.iter_modules(room.__path__)
    ]
    kinds = [kind for module in modules for kind in vars(module).values() if inspect.isclass(kind)]
    return tuple(dict.fromkeys(kind for kind in kinds if issubclass(kind, World) and not inspect.isabstract(kind)))


BUDGETED = (Maintenance, Reminders, SideEffects)
WORLDS = (*found(worlds), *BUDGETED)
FROM_DATA = found(data)  # of other sizes, and in need of other packages
FOR_TABLES = (
    Arms,
    Corridor,
    DeepSea,
    LongDecoy,
    NoisyRoom,
    RiverSwim,
    *BUDGETED,
)  # few labels, each with tables to be learned
KNOWN_REWARDS = (CombinationLock, Corridor, RiverSwim, SideEffects)
KNOWN_DYNAMICS = (Arms, ContextualBandit, Decoy, LongDecoy, LowerBound)
OWN_DIAL = (*BUDGETED, ContextualBandit, LinearWorld, RiverSwim, SoftmaxWorld, TreatmentTrial)
NOISY = {DeepSea: {"slip": 0.05}}  # options of worlds whose class excludes, without noise, all that the dial adds


def truths(world):
    return [world.truth(context).mdp for context in world.contexts]


def model(world, rewards, transitions):
    """Return an MDP of the world's space with other tables."""
    space = world.space
    return TabularMDP(
        transitions=transitions,
        rewards=rewards,
        horizon=space.horizon,
        start=space.start,
        admissible=space.admissible,
    )


def mean_model(world, context):
    """Return what a uniform prior over the class expects of `context`."""
    rewards, transitions = world.reward_functions(context), world.transition_functions(context)
    return model(world, rewards.mean(axis=0), transitions.mean(axis=0))


def uniform_policy(space):
    policy = space.admissible / space.admissible.sum(axis=1, keepdims=True)
    return np.repeat(policy[None], space.horizon, axis=0)


class Learner:
    """Both oracles of finite classes, and the best plan in what they predict: a greedy agent."""

    def __init__(self, world, rate="guarded"):
        self.world = world
        self.rewards = FiniteRewards(world.reward_functions, horizon=world.space.horizon, rate=rate)
        self.dynamics = FiniteDynamics(world.transition_functions, horizon=world.space.horizon, rate=rate)

    def policy(self, context):
        return optimal_policy(model(self.world, self.rewards.predict(context), self.dynamics.predict(context)))[0]

    def play(self, context, policy, generator):
        episode = self.world.sample(context, policy, generator)
        self.rewards.update(context, episode.states[:-1], episode.actions, episode.rewards)
        self.dynamics.update(context, episode.states[:-1], episode.actions, episode.next_states)
