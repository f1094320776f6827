"""A tiny contextual MDP whose episodes can all be listed, and tables of logged episodes."""

import itertools

import numpy as np
import pandas

from omg_cmdp import Episode, Space
from omg_cmdp.logs import Log

SPACE = Space(states=2, actions=2, horizon=3, start=np.array([0.3, 0.7]))
CONTEXTS = ("mild", "severe")


def mdps(rng):
    """Return an MDP for every context."""
    return {c: SPACE.mdp(transitions=rng.dirichlet(np.ones(2), (2, 2)), rewards=rng.random((2, 2))) for c in CONTEXTS}


def policies(rng, space=SPACE):
    """Return a stochastic policy for every context."""
    shape = (space.horizon, space.states)
    return {c: rng.dirichlet(np.ones(space.actions), shape) for c in CONTEXTS}


def every_episode(mdp, behaviour, context):
    """Yield all episodes with Bernoulli rewards, their probabilities and propensities."""
    h, s, a = mdp.horizon, range(mdp.states), range(mdp.actions)
    steps = np.arange(h)
    for states in itertools.product(s, repeat=h + 1):
        for actions in itertools.product(a, repeat=h):
            before, after, taken = np.array(states[:-1]), np.array(states[1:]), np.array(actions)
            propensities, means = behaviour[steps, before, taken], mdp.rewards[before, taken]
            reached = mdp.start[states[0]] * (propensities * mdp.transitions[before, taken, after]).prod()
            for rewards in itertools.product((0.0, 1.0), repeat=h):
                probability = reached * np.where(rewards, means, 1.0 - means).prod()
                if probability > 0.0:
                    steps_taken = {"states": states, "actions": actions, "rewards": rewards}
                    episode = Episode(context=context, **steps_taken, propensities=propensities)
                    yield probability, Log(mdp.space, [episode])


def changed(episode, **fields):
    """Return the episode with some fields replaced."""
    names = ("context", "states", "actions", "rewards", "propensities")
    return Episode(**{name: getattr(episode, name) for name in names} | fields)


def frame(log, names=("age", "weight")):
    """Return a log with vectors as contexts as a table with a row for every step."""
    steps = log.space.horizon
    contexts = np.repeat(log.contexts, steps, axis=0)
    return pandas.DataFrame(
        {
            "episode": np.repeat([f"patient {i}" for i in range(len(log))], steps),
            "step": np.tile(np.arange(steps), len(log)),
            **dict(zip(names, contexts.T, strict=True)),
            "state": log.states[:, :-1].reshape(-1),
            "action": log.actions.reshape(-1),
            "reward": log.rewards.reshape(-1),
            "next_state": log.states[:, 1:].reshape(-1),
            "propensity": log.propensities.reshape(-1),
        }
    )


def random_log(rng, count=6, space=SPACE, context=None):
    """Return episodes of one context, or of vectors as contexts."""
    episodes = [
        Episode(
            context=rng.normal(size=2) if context is None else context,
            states=rng.integers(space.states, size=space.horizon + 1),
            actions=rng.integers(space.actions, size=space.horizon),
            rewards=rng.random(space.horizon),
            propensities=rng.uniform(0.1, 1.0, size=space.horizon),
        )
        for _ in range(count)
    ]
    return Log(space, episodes)


def same(log, other):
    """Whether two logs hold the same episodes in the same order."""
    return (
        all(map(np.array_equal, log.contexts, other.contexts))
        and len(log) == len(other)
        and all(np.array_equal(getattr(log, n), getattr(other, n)) for n in ("states", "actions"))
        and np.array_equal(log.rewards, other.rewards, equal_nan=True)
        and np.array_equal(log.propensities, other.propensities, equal_nan=True)
    )
