"""A world of random MDPs behind labels, and agents that answer from a table."""

import dataclasses
from typing import Any

import numpy as np

from library.tests.random_mdps import random_mdp, random_mdps, random_policy
from omg_cmdp.environments.base import ContextualMDP

LABELS = ["a", "b", "c", "d", "e", "f"]


class Tabled(ContextualMDP):
    """One MDP for each label."""

    def __init__(self, mdps):
        self.mdps = mdps
        self.space = next(iter(mdps.values())).space

    def mdp(self, context):
        return self.mdps[context]


@dataclasses.dataclass
class TabledView:
    """An agent with a policy for each label; notes for what it is asked."""

    environment: Any
    policies: dict
    asked: list = dataclasses.field(default_factory=list)

    def policy(self, context):
        self.asked.append(context)
        return self.policies[context]


def random_world(rng, labels=LABELS, **fixed):
    sizes = {"states": 4, "actions": 3, "horizon": 5} | fixed
    space = random_mdp(rng, **sizes).space
    mdps = random_mdps(rng, len(labels), **{**sizes, "masked": False})
    tables = ({"transitions": mdp.transitions, "rewards": mdp.rewards} for mdp in mdps)
    return Tabled({label: space.mdp(**each) for label, each in zip(labels, tables, strict=True)})


def random_view(rng, world):
    return TabledView(world, {label: random_policy(rng, mdp) for label, mdp in world.mdps.items()})


def shown(adversary, episodes, *, view=None, seed=0):
    """Return the contexts of a run."""
    generator = np.random.default_rng(seed)
    return [adversary.context(t, view, generator) for t in range(episodes)]


def interrupted(adversary, other, episodes, at, *, view=None, seed=0):
    """Return the contexts of a run in which `other` takes the place of `adversary` before episode `at`."""
    generator = np.random.default_rng(seed)
    first = [adversary.context(t, view, generator) for t in range(at)]
    other.load_state(adversary.state())
    return first + [other.context(t, view, generator) for t in range(at, episodes)]
