"""What an audit says of the oracles: their charges, their regrets, and how far their classes are from the truth."""

import math

import numpy as np
import pytest

import omg_cmdp as omg
from lab.tests.audit.lying import SHAPE, IdleDynamics, IdleRewards, World
from omg_cmdp.mdp import Episode
from omg_cmdp.mdp.truth import Truth
from omg_cmdp.theory.rounds import Round
from omg_lab.audit import Audit
from omg_lab.audit.records import ClassRecord
from omg_lab.worlds import Decoy, LinearWorld, SoftmaxWorld

ORACLES = (omg.oracles.FiniteRewards, omg.oracles.FiniteDynamics)


def distance(oracle, world, truths, k=0, used=None):
    """Return how far an audit finds the class of an oracle from truths, context by context."""
    record, space = ClassRecord(k), omg.Space(**SHAPE, admissible=used)
    for number, c in enumerate(world.contexts, start=1):
        tables = {"rewards": world.reward_functions[c][0], "transitions": world.transition_functions[c][0]}
        truth = Truth(space.mdp(**(tables | {("rewards", "transitions")[k]: truths[c]})))
        stay = Episode(context=c, states=[0] * 4, actions=[0] * 3, rewards=[0.0] * 3)
        record.meet(oracle, Round(number, truth, None, stay, None, 0.0))
    return record.distance(oracle.product_class)


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
    assert distance(omg.oracles.KnownDynamics(truths, horizon=3), world, truths, 1) == 0.0
    other = {c: world.transition_functions[c][1] for c in world.contexts}
    assert distance(omg.oracles.KnownDynamics(other, horizon=3), world, truths, 1) > 0.0


def test_pairs_that_are_not_admissible_do_not_count(world):
    oracle = omg.oracles.FiniteRewards(world.reward_functions, horizon=3)
    used = np.ones((3, 3), dtype=bool)
    used[1, 2] = False
    truths = {c: world.reward_functions[c][0].copy() for c in world.contexts}
    truths["a"][1, 2] += 0.1
    assert distance(oracle, world, truths, used=used) == 0.0 < distance(oracle, world, truths)


def test_counts_hold_every_table_that_does_not_depend_on_the_step(world, rng):
    size = {"states": 3, "actions": 3, "horizon": 3}
    truths = {c: world.transition_functions[c][0] for c in world.contexts}
    of_each = omg.oracles.CountDynamics(**size, contexts=world.contexts)
    assert distance(of_each, world, truths, 1) == 0.0
    one_for_all = omg.oracles.CountDynamics(**size)
    assert math.isnan(distance(one_for_all, world, truths, 1))  # one table for all: not known
    steps = dict.fromkeys(world.contexts, rng.dirichlet(np.ones(3), (3, 3, 3)))
    assert distance(of_each, world, steps, 1) == pytest.approx(0.5 * np.ptp(steps["a"], axis=0).max())
    support = np.ones((3, 3, 3), dtype=bool)
    support[0, 1, 2] = False
    narrow = omg.oracles.CountDynamics(**size, contexts=world.contexts, support=support)
    assert distance(narrow, world, truths, 1) == pytest.approx(max(truths[c][0, 1, 2] for c in world.contexts))


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
    assert found["oracle regret, dynamics"] == "holds"  # against any function of context, step, state and action


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


def test_the_best_loss_is_computed_again_from_the_functions_and_the_episodes(world):
    """What the library keeps while it learns, and what an audit finds in the log, are the same."""
    audit, parts = Audit(), (world.reward_functions, world.transition_functions)
    rewards, dynamics = (oracle(part, horizon=3) for oracle, part in zip(ORACLES, parts, strict=True))
    agent = omg.OMG(world.space, rewards, dynamics, 30.0, episodes=25)
    omg.simulate(world, omg.adversaries.IID(world.contexts), agent, 25, observe=audit)
    rows = {row.name: row for row in audit.rows()}
    for name, oracle in (("rewards", rewards), ("dynamics", dynamics)):
        assert rows[f"oracle regret, {name}"].left == pytest.approx(oracle.loss - oracle.best_loss())


def test_the_best_function_of_all_loses_no_more_than_that_of_any_class(world):
    size = {"states": 3, "actions": 3, "horizon": 3, "contexts": world.contexts}
    rewards, dynamics = omg.oracles.CountRewards(**size), omg.oracles.CountDynamics(**size)
    audit, agent = Audit(), omg.OMG(world.space, rewards, dynamics, 30.0, episodes=25)
    omg.simulate(world, omg.adversaries.IID(world.contexts), agent, 25, observe=audit)
    rows = {row.name: row for row in audit.rows()}
    for name, oracle in (("rewards", rewards), ("dynamics", dynamics)):
        row = rows[f"oracle regret, {name}"]
        assert oracle.loss - oracle.best_loss() <= row.left <= row.right
        assert row.verdict == rows[f"realizability, {name}"].verdict == "holds"


def test_nothing_is_shown_by_an_oracle_that_praises_itself():
    """It never learns, says that its loss is the best, its bound 1 and its class at no distance from the truth."""
    decoy = Decoy(states=3, actions=3)
    audit, agent = Audit(), omg.OMG(decoy.space, IdleRewards(), IdleDynamics(), "uncertainty")
    ledger = omg.simulate(decoy, omg.adversaries.IID(decoy.contexts), agent, 100, observe=audit)
    assert ledger.regret.mean() > 0.1  # of 4 that can be earned
    rows = {row.name: row.verdict for row in audit.rows()}
    wanted = [f"{row}, {kind}" for row in ("oracle regret", "realizability") for kind in ("rewards", "dynamics")]
    assert {rows[name] for name in [*wanted, "corollary"]} == {"not proven"}
