"""Data sets as bandits: right is 1, wrong is 0, and equal features are one context."""

import sys

import numpy as np
import pytest

from lab.tests.worlds.misspecification import distance_to_class
from omg_cmdp.adversaries import NeverTwice
from omg_lab.data import classification
from omg_lab.data.classification import DATASETS, examples
from omg_lab.worlds import Classification

pytest.importorskip("sklearn")
SIZES = {"breast_cancer": (569, 31, 2), "digits": (1797, 65, 10), "iris": (149, 5, 3), "wine": (178, 14, 3)}


@pytest.fixture(scope="module", params=DATASETS)
def world(request):
    return Classification(dataset=request.param)


def test_sizes_are_those_of_the_data(world):
    count, dimension, classes = SIZES[world.dataset]
    assert len(world.contexts) == count  # one iris is there twice
    assert {context.shape for context in world.contexts} == {(dimension,)}
    assert (world.space.states, world.space.actions, world.space.horizon) == (1, classes, 1)


def test_every_example_is_found_under_its_features_and_its_class_pays(world):
    """No two examples of these data have the same features and different classes: the optimum is 1."""
    features, classes = examples(world.dataset)
    for row, right in list(zip(features, classes, strict=True))[::7]:
        np.testing.assert_array_equal(world.mdp(row).rewards[0], np.eye(world.space.actions)[right])
        assert world.optimal_value(row) == 1.0


def test_features_are_scaled_and_have_a_constant(world):
    table = np.array(world.contexts)
    assert (table.min(), table.max()) == (0.0, 1.0)
    np.testing.assert_array_equal(table[:, -1], 1.0)
    assert np.linalg.norm(table, axis=1).max() <= np.sqrt(table.shape[1])
    assert not world.contexts[0].flags.writeable


def test_pixels_keep_their_proportions():
    from sklearn.datasets import load_digits

    np.testing.assert_array_equal(examples("digits")[0][:, :-1] * 16.0, load_digits().data)


def test_a_guess_is_right_as_often_as_there_are_classes(world):
    uniform = np.full((1, 1, world.space.actions), 1.0 / world.space.actions)
    for context in world.contexts[::50]:
        assert world.truth(context).value(uniform) == pytest.approx(1.0 / world.space.actions)


def test_equal_features_with_different_classes_pay_their_shares(monkeypatch):
    rows = np.array([[0.0, 1.0], [0.5, 1.0], [0.5, 1.0], [0.5, 1.0]])
    monkeypatch.setattr(classification, "examples", lambda dataset: (rows, np.array([1, 0, 1, 1])))
    world = Classification(reward_class_size=3)
    assert len(world.contexts) == 2
    np.testing.assert_allclose(world.mdp(rows[1]).rewards, [[1 / 3, 2 / 3]])
    assert world.optimal_value(rows[3]) == pytest.approx(2 / 3)


def test_the_truth_is_one_member_of_the_class(seed):
    world = Classification(dataset="wine", seed=seed)
    for context in world.contexts:
        functions = world.reward_functions(context)
        np.testing.assert_array_equal(functions[world.reward_index], world.mdp(context).rewards)
        np.testing.assert_array_equal(np.sort(functions, axis=-1), np.tile([0.0, 0.0, 1.0], (8, 1, 1)))
    hypotheses = np.stack([world.reward_functions(context)[:, 0].argmax(axis=1) for context in world.contexts])
    assert len(np.unique(hypotheses, axis=1).T) > 2


def test_the_dial_is_noise_in_the_labels(seed):
    """At ε the right class pays 1 - ε, and ε times the share of the numberings that agree with it."""
    world = Classification(dataset="digits", misspecification=0.3, seed=seed)
    clean = Classification(dataset="digits", seed=seed)
    for context in world.contexts[::50]:
        right = clean.mdp(context).rewards.argmax()
        agree = (clean.reward_functions(context)[:, 0].argmax(axis=1) == right).mean()
        assert world.mdp(context).rewards[0, right] == pytest.approx(0.7 + 0.3 * agree, rel=1e-12)
        assert world.mdp(context).rewards.sum() == pytest.approx(1.0, rel=1e-12)
    assert distance_to_class(clean).square == 0.0 < distance_to_class(world).square


def test_what_is_no_example_is_refused():
    world = Classification(dataset="iris")
    for context in (0, "setosa", np.zeros(5), np.zeros(4), [np.nan] * 5):
        with pytest.raises(ValueError, match="`context` must"):
            world.mdp(context)
    with pytest.raises(ValueError, match="`dataset` must be one of breast_cancer, digits, iris, wine, got 'mnist'"):
        Classification(dataset="mnist")


def test_a_stream_without_repetition_is_an_adversary(rng):
    world = Classification(dataset="iris")
    stream = NeverTwice(world.contexts)
    drawn = {stream.context(t, None, rng).tobytes() for t in range(len(world.contexts))}
    assert len(drawn) == len(world.contexts)


def test_without_the_package_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"pip install scikit-learn"):
        Classification()
