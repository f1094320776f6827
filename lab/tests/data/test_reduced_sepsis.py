"""ICU-Sepsis in small: the published flow between groups, and everything else as at full size."""

import importlib.metadata
import itertools

import numpy as np
import pytest

from lab.tests.worlds.catalogue import truths, uniform_policy
from lab.tests.worlds.misspecification import distance_to_class
from omg_cmdp import occupancy_measure
from omg_lab.data.icu_sepsis import DEATH, SURVIVAL, tables
from omg_lab.data.reduced_sepsis import doses, groups, reduced, visits
from omg_lab.worlds import ReducedSepsis

try:
    importlib.metadata.distribution("icu-sepsis")
except importlib.metadata.PackageNotFoundError:
    pytest.skip("icu-sepsis is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def full():
    return tables()


@pytest.fixture(scope="module")
def small(full):
    return reduced(full)


@pytest.fixture(scope="module")
def world():
    return ReducedSepsis()


def test_groups_are_even_and_in_order_of_severity(full, small):
    found = groups(full)
    sizes = np.bincount(found[:DEATH])
    assert len(sizes) == 30
    assert sizes.max() - sizes.min() <= 2
    assert found[DEATH:].tolist() == [30, 31, 32]
    bands = [full.sofa[:DEATH][found[:DEATH] // 5 == band] for band in range(6)]
    assert all(low.max() <= high.min() for low, high in itertools.pairwise(bands))
    lactate = small.centres[:DEATH, 30].reshape(6, 5)
    assert (np.diff(lactate, axis=1) > 0.0).all()


def test_doses_are_little_or_much():
    np.testing.assert_array_equal(doses(25).reshape(5, 5)[:, [0, 1, 4]], [[0, 1, 1]] * 2 + [[2, 3, 3]] * 3)


def test_the_flow_between_groups_is_the_published_one(full, small):
    """Under uniform actions at full size: as many steps lead from group to group as the small tables say."""
    found, met = groups(full), visits(full)
    weights = met[:, None] * full.admissible / full.admissible.sum(axis=1, keepdims=True)
    flow = np.zeros((33, 33))
    np.add.at(flow, (found[:, None], found), np.einsum("sa,sat->st", weights, full.transitions))
    mass = np.zeros((33, 4))
    for action, dose in enumerate(doses(25)):
        np.add.at(mass[:, dose], found, weights[:, action])
    np.testing.assert_allclose(np.einsum("ga,gah->gh", mass, small.transitions), flow, atol=1e-9)
    np.testing.assert_array_equal(small.admissible, mass > 0.0)


def test_tables_are_distributions_and_the_outcomes_are_final(small):
    np.testing.assert_allclose(small.transitions.sum(axis=-1), 1.0, atol=1e-12)
    np.testing.assert_allclose(small.transitions[DEATH:, 0, -1], 1.0)
    assert small.start.sum() == pytest.approx(1.0)
    assert small.start[DEATH:].sum() == 0.0
    assert small.admissible.any(axis=1).all()


def test_without_a_tilt_it_is_the_published_flow(small):
    world = ReducedSepsis(context_count=1, tilt=1e-13, outcome_tilt=1e-13, transition_class_size=1)
    mdp, admissible = world.mdp(world.contexts[0]), world.space.admissible
    np.testing.assert_allclose(mdp.transitions[admissible], small.transitions[admissible], atol=1e-12)


def test_a_value_is_the_probability_to_survive(world, rng):
    for context in world.contexts:
        truth = world.truth(context)
        policy, value = truth.best
        assert 0.0 < value < 1.0
        assert value == pytest.approx(occupancy_measure(truth.mdp, policy)[:, SURVIVAL].sum(), abs=1e-9)
        assert world.sample(context, policy, rng).rewards.sum() <= world.return_range[1]


def test_treatments_matter_and_patients_differ(world):
    best = [world.truth(context).best[0] for context in world.contexts]
    lost = np.array([[world.truth(context).regret(policy) for policy in best] for context in world.contexts])
    assert lost.max() > 0.01
    assert all(world.truth(context).regret(uniform_policy(world.space)) > 0.01 for context in world.contexts)


def test_the_truth_is_one_member_of_the_class_until_the_dial_moves_it(world):
    admissible = world.space.admissible
    for context, mdp in zip(world.contexts, truths(world), strict=True):
        kernels = world.transition_functions(context)
        assert len(kernels) == 8
        np.testing.assert_array_equal(kernels[world.transition_index][admissible], mdp.transitions[admissible])
        assert not ((kernels > 0.0) & ~world.support).any()
    moved = [distance_to_class(ReducedSepsis(misspecification=dial)).log for dial in (0.0, 0.2, 0.6)]
    assert moved[0] == 0.0
    assert 0.0 < moved[1] < moved[2] < np.inf


def test_the_number_of_cores_does_not_change_a_bit(world):
    import threadpoolctl

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        other = ReducedSepsis()
    for ours, theirs in zip(truths(world), truths(other), strict=True):
        np.testing.assert_array_equal(ours.transitions, theirs.transitions)
