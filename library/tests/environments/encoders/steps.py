"""Steps whose truth is known."""

import numpy as np

from omg_cmdp.environments import Steps


def steps(observations, next_observations, **given):
    count = len(observations)
    usual = {
        "actions": np.zeros(count, dtype=int),
        "rewards": np.zeros(count),
        "terminated": np.zeros(count, dtype=bool),
        "episodes": np.arange(count) // 10,
        "contexts": np.zeros(count, dtype=int),
    }
    return Steps(observations=observations, next_observations=next_observations, **(usual | given))


def chain(states, **given):
    """Return the steps of a walk along these states, which are their own observations."""
    walk = np.asarray(states, dtype=float)[:, None]
    return steps(walk[:-1], walk[1:], **given)


def noise(count, dimension=2, seed=0, **given):
    generator = np.random.default_rng(seed)
    return steps(*generator.normal(size=(2, count, dimension)), **given)
