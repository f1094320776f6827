"""What an audit says of the oracles: their charges, their regrets, and how far their classes are from the truth."""

import math

import numpy as np
import pytest

import omg_cmdp as omg
from lab.tests.audit.lying import World
from omg_lab.audit import Audit
from omg_lab.worlds import LinearWorld, SoftmaxWorld

ORACLES = (omg.oracles.FiniteRewards, omg.oracles.FiniteDynamics)
EVERY = np.ones((3, 3), dtype=bool)


def distance(oracle, world, truths):
    """Return the distance of a class from truths, context by context."""
    found = [oracle.distances(c, np.asarray(truths[c])[None], EVERY) for c in world.contexts]
    return None if found[0] is None else float(np.max(found, axis=0).min())


@pytest.fixture
def world(seed):
    return World(seed)


def test_a_finite_class_is_as_far_as_its_nearest_function_for_all_contexts(world, rng):
    oracle = omg.oracles.FiniteRewards(world.reward_functions, horizon=3)
    truths = {c: world.reward_functions[c][2] for c in world.contexts}
    assert distance(oracle, world, truths) == 0.0
    # Each context is right about another function: no one of them is right everywhere.
    mixed = {c: world.reward_functions[c][k] for k, c in enumerate(world.contexts)}
    apart = [max(np.abs(world.reward_functions[c][k] - mixed[c]).max() for c in world.contexts) for k in range(4)]
    assert distance(oracle, world, mixed) == pytest.approx(min(apart))
    assert min(apart) > 0.0
    parts = {"contexts": world.contexts, "states": 3, "functions": 4, "horizon": 3}
    product = omg.oracles.ProductRewards(world.reward_functions.__getitem__, **parts)
    assert distance(product, world, mixed) == 0.0
    rows = {c: world.reward_functions[c][[0, 1, 2], [0, 1, 2]] for c in world.contexts}  # a function for each state
    assert distance(product, world, rows) == 0.0 < distance(oracle, world, rows)


def test_a_known_function_is_right_or_not(world):
    truths = {c: world.transition_functions[c][0] for c in world.contexts}
    assert distance(omg.oracles.KnownDynamics(truths, horizon=3), world, truths) == 0.0
    other = {c: world.transition_functions[c][1] for c in world.contexts}
    assert distance(omg.oracles.KnownDynamics(other, horizon=3), world, truths) > 0.0


def test_pairs_that_are_not_admissible_do_not_count(world):
    oracle = omg.oracles.FiniteRewards(world.reward_functions, horizon=3)
    used = EVERY.copy()
    used[1, 2] = False
    truth = world.reward_functions["a"][0].copy()
    truth[1, 2] += 0.1
    assert oracle.distances("a", truth[None], used).min() == 0.0 < oracle.distances("a", truth[None], EVERY).min()


def test_counts_hold_every_table_that_does_not_depend_on_the_step(world, rng):
    size = {"states": 3, "actions": 3, "horizon": 3}
    truths = {c: world.transition_functions[c][0] for c in world.contexts}
    of_each = omg.oracles.CountDynamics(**size, contexts=world.contexts)
    assert distance(of_each, world, truths) == 0.0
    assert distance(omg.oracles.CountDynamics(**size), world, truths) is None  # one table for all: not known
    steps = rng.dirichlet(np.ones(3), (3, 3, 3))
    assert of_each.distances("a", steps, EVERY)[0] == pytest.approx(0.5 * np.ptp(steps, axis=0).max())
    support = np.ones((3, 3, 3), dtype=bool)
    support[0, 1, 2] = False
    narrow = omg.oracles.CountDynamics(**size, contexts=world.contexts, support=support)
    assert distance(narrow, world, truths) == pytest.approx(max(truths[c][0, 1, 2] for c in world.contexts))


def verdicts(world, rewards, dynamics, episodes=10):
    audit = Audit()
    agent = omg.OMG(world.space, rewards, dynamics, 30.0, episodes=episodes)
    omg.simulate(world, omg.adversaries.IID(world.contexts), agent, episodes, observe=audit)
    return {row.name: row.verdict for row in audit.rows()}


def test_a_world_outside_of_the_class_has_the_assumption_red_and_nothing_else(seed):
    world = SoftmaxWorld(seed=seed, misspecification=0.3)
    parts = (world.reward_functions, world.transition_functions)
    found = verdicts(world, *(o(p, horizon=5) for o, p in zip(ORACLES, parts, strict=True)))
    red = {name for name, verdict in found.items() if verdict == "violated"}
    assert red
    assert red <= {"realizability, rewards", "realizability, dynamics"}


def test_classes_that_are_not_listed_are_not_proven_to_hold_the_truth(seed):
    world = LinearWorld(seed=seed)
    size = {"states": world.space.states, "actions": world.space.actions, "horizon": world.space.horizon}
    dimension = len(world.contexts[0])
    rewards = omg.oracles.LinearRewards(**size, dimension=dimension)
    found = verdicts(world, rewards, omg.oracles.SoftmaxDynamics(**size, dimension=dimension))
    assert found["realizability, rewards"] == found["realizability, dynamics"] == "not proven"
    assert found["oracle regret, rewards"] == "holds"
    assert found["oracle regret, dynamics"] == "not proven"  # no closed form of the best loss


class Loose(omg.RewardOracle):
    """An oracle of four methods, which keeps no account."""

    def predict(self, context):
        return np.full((3, 3), 0.5)

    def update(self, context, states, actions, rewards):
        pass

    def uncertainty(self, context):
        return np.full((3, 3), 0.1)

    def regret_bound(self, episodes, horizon):
        return math.inf


def test_an_oracle_without_an_account_is_not_proven_anything(world):
    found = verdicts(world, Loose(), omg.oracles.FiniteDynamics(world.transition_functions, horizon=3))
    for name in ("charge, rewards", "oracle regret, rewards", "realizability, rewards"):
        assert found[name] == "not proven"
    assert "corollary" not in found
    assert "violated" not in found.values()
