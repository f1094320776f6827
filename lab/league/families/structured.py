"""Families by structure: what is known to make learning easy or hard, one thing at a time."""

from __future__ import annotations

import numpy as np

from omg_cmdp.validation import FloatArray

from .published import garnet
from .world import TableWorld, mdp, one_hot


def small_gaps(generator: np.random.Generator) -> TableWorld:
    """Eight arms within .1 of each other; three contexts. H = 1."""
    means = 0.5 + generator.uniform(-0.05, 0.05, size=(3, 8))
    return TableWorld([mdp(np.ones((1, 8, 1)), row[None], 1) for row in means])


def rare_rewards(generator: np.random.Generator) -> TableWorld:
    """Ten arms that pay with probability below .02, and one that pays .1; two contexts. H = 1: a prior that hopes."""
    means = generator.uniform(0.0, 0.02, size=(2, 10))
    means[[0, 1], generator.permutation(10)[:2]] = 0.1
    return TableWorld([mdp(np.ones((1, 10, 1)), row[None], 1) for row in means])


def deterministic(generator: np.random.Generator) -> TableWorld:
    """Garnets whose pairs have one next state: 12 states, 4 actions, H = 10, three contexts."""
    return TableWorld(garnet(generator, states=12, actions=4, branching=1, horizon=10, contexts=3))


def dense(generator: np.random.Generator) -> TableWorld:
    """Every state may follow any pair, and every pair pays something: 6 states, 4 actions, H = 8, three contexts."""
    worlds = []
    for _ in range(3):
        transitions = generator.dirichlet(np.full(6, 0.5), size=(6, 4))
        worlds.append(mdp(transitions, generator.uniform(size=(6, 4)), 8))
    return TableWorld(worlds)


def long_episodes(generator: np.random.Generator) -> TableWorld:
    """Garnets of 5 states, 3 actions, two next states, H = 50, one context."""
    return TableWorld(garnet(generator, states=5, actions=3, branching=2, horizon=50, contexts=1))


def hidden_leaf(generator: np.random.Generator) -> TableWorld:
    """A binary tree of depth 5 in which one leaf pays .9, beside an exit at the root that pays .3; two contexts."""
    depth, states = 5, 2**6 + 1
    end = states - 1
    moves = np.full((states, 3), end)
    for node in range(1, 2**depth):
        moves[node, :2] = 2 * node, 2 * node + 1
        moves[node, 2] = end if node == 1 else 2 * node
    moves[0] = 1
    worlds = []
    for _ in range(2):
        rewards = np.zeros((states, 3))
        rewards[1, 2], rewards[2**depth + int(generator.integers(2**depth))] = 0.3, 0.9
        worlds.append(mdp(one_hot(moves, states), rewards, depth + 1, start=1))
    return TableWorld(worlds, return_range=(0.0, 1.0))


def many_contexts(generator: np.random.Generator) -> TableWorld:
    """Rewards linear in 200 vectors of 8 features; 3 states, 4 actions, H = 3, known transitions."""
    return _linear(generator, bent=0.0)


def misspecified(generator: np.random.Generator) -> TableWorld:
    """The same with a part of each reward that is quadratic in the features."""
    return _linear(generator, bent=0.3)


def _linear(generator: np.random.Generator, bent: float) -> TableWorld:
    vectors = generator.normal(size=(200, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    weights = generator.normal(size=(3, 4, 8))
    weights /= 2.0 * np.linalg.norm(weights, axis=-1, keepdims=True)
    curves = generator.normal(size=(3, 4, 8, 8))
    transitions = generator.dirichlet(np.ones(3), size=(3, 4))
    worlds = []
    for vector in vectors:
        straight, curved = 0.5 + weights @ vector, 0.5 + 0.5 * np.tanh(curves @ vector @ vector)
        worlds.append(mdp(transitions, (1.0 - bent) * straight + bent * curved, 3))
    return TableWorld(worlds, vectors=vectors)


def known_class(generator: np.random.Generator) -> TableWorld:
    """24 reward functions and 12 transitions, of which one each is true: 5 states, 3 actions, H = 5, 10 contexts."""
    return _finite(generator, outside=0.0)


def wrong_class(generator: np.random.Generator) -> TableWorld:
    """The same, but the truth is .15 outside: the class does not hold it."""
    return _finite(generator, outside=0.15)


def _finite(generator: np.random.Generator, outside: float) -> TableWorld:
    rewards = generator.beta(0.5, 0.5, size=(10, 24, 5, 3))
    transitions = generator.dirichlet(np.full(5, 0.3), size=(10, 12, 5, 3))

    def moved(table: FloatArray, other: FloatArray) -> FloatArray:
        return (1.0 - outside) * table + outside * other

    worlds = [
        mdp(moved(p[0], generator.dirichlet(np.ones(5), size=(5, 3))), moved(r[0], generator.uniform(size=(5, 3))), 5)
        for p, r in zip(transitions, rewards, strict=True)
    ]
    return TableWorld(worlds, classes=(rewards, transitions))


def twelve_labels(generator: np.random.Generator) -> TableWorld:
    """Twelve contexts that share three MDPs, which nobody says: 4 states, 3 actions, H = 6."""
    three = garnet(generator, states=4, actions=3, branching=2, horizon=6, contexts=3)
    return TableWorld([three[place % 3] for place in generator.permutation(12)])
