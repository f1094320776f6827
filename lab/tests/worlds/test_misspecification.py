"""The distance to the class, by hand: masks, products, what is impossible."""

import dataclasses
import math

import numpy as np
import pytest

from lab.tests.worlds.misspecification import distance_to_class, divergence
from omg_cmdp import Space, TabularMDP
from omg_lab.worlds import World

FUNCTIONS = {"a": [[[0.0, 0.3]], [[1.0, 0.9]]], "b": [[[0.4, 0.5]], [[0.2, 0.1]]]}
TRUTH = {"a": [[0.1, 0.3]], "b": [[0.2, 0.2]]}


@dataclasses.dataclass(kw_only=True, eq=False)
class Small(World):
    """One state, two contexts, two functions that are good in one context each."""

    admissible: list | None = None
    product: bool = False

    def _draw(self):
        self.space = Space(states=1, actions=2, horizon=1, admissible=self.admissible)
        self.contexts, self.product_class = ("a", "b"), self.product

    def reward_functions(self, context):
        return np.array(FUNCTIONS[context])

    def transition_functions(self, context):
        return np.ones((1, 1, 2, 1))

    def mdp(self, context):
        admissible = self.space.admissible
        return TabularMDP(transitions=np.ones((1, 2, 1)), rewards=TRUTH[context], horizon=1, admissible=admissible)


def test_one_function_for_all_contexts():
    first = 0.1**2 + 0.0 + 0.2**2 + 0.3**2
    assert distance_to_class(Small()).square == pytest.approx(first / 4, rel=1e-12)


def test_a_product_has_a_function_for_each():
    best = 0.1**2 + 0.0 + 0.0 + 0.1**2
    assert distance_to_class(Small(product=True)).square == pytest.approx(best / 4, rel=1e-12)


def test_inadmissible_pairs_do_not_count():
    first = 0.1**2 + 0.2**2
    assert distance_to_class(Small(admissible=[[True, False]])) == (pytest.approx(first / 2, rel=1e-12), 0.0)


def test_known_functions_are_at_no_distance():
    assert distance_to_class(Small()).log == 0.0


def test_divergence_is_that_of_coins(rng):
    p, q = rng.random(10), rng.random(10)
    by_hand = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    both = divergence(np.stack([p, 1 - p], axis=-1), np.stack([q, 1 - q], axis=-1))
    np.testing.assert_allclose(both, by_hand, rtol=0.0, atol=1e-14)


def test_divergence_where_probabilities_vanish():
    assert divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5])) == math.log(2.0)
    assert divergence(np.array([0.5, 0.5]), np.array([1.0, 0.0])) == math.inf
    assert divergence(np.array([0.0, 1.0]), np.array([0.0, 1.0])) == 0.0
