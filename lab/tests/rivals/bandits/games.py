"""What tests of bandits share: one-step agents, and rounds played in a world whose truth is known."""

from typing import NamedTuple

import numpy as np

from omg_cmdp import Episode, Space, Trajectory, oracles


def one_state(actions, states=1, **more):
    return Space(states=states, actions=actions, horizon=1, **more)


def still(space):
    """Return dynamics that are known, as they do not matter."""
    return oracles.KnownDynamics(np.full((space.states, space.actions, space.states), 1.0 / space.states), horizon=1)


def with_class(kind, tables, *more, offline=False, space=None, **named):
    """Return an agent that knows a finite class: context -> (N, S, A)."""
    shape = np.shape(next(iter(tables.values())))
    space = space or one_state(shape[2], shape[1])
    make = oracles.OfflineFiniteRewards if offline else oracles.FiniteRewards
    return kind(space, make(tables, horizon=1), still(space), *more, **named)


def taught(agent, context, action, reward, state=0):
    agent.update(Trajectory(context=context, states=[state, state], actions=[action], rewards=[reward]))


def taught_late(agent, context, action, reward, chance):
    """Teach an episode that was played with a probability that may not be that of now."""
    late = {"states": [0, 0], "actions": [action], "rewards": [reward], "propensities": [chance]}
    agent.update(Episode(context=context, **late))


class Round(NamedTuple):
    context: object
    policy: np.ndarray
    action: int
    reward: float


def rounds(agent, truth, contexts, episodes, rng):
    """Play `episodes` in the bandit `truth`, context -> (A,), and yield each round before it is learned."""
    for _ in range(episodes):
        context = contexts[int(rng.integers(len(contexts)))]
        policy = agent.policy(context)[0, 0]
        action = int(rng.choice(len(policy), p=policy / policy.sum()))
        reward = float(rng.random() < truth[context][action])
        yield Round(context, policy, action, reward)
        taught(agent, context, action, reward)
