"""Draws by inversion: the plain function and its compiled twin agree, and weight zero is never drawn."""

import numpy as np
import pytest

from omg_cmdp.mdp import compiled as kernels
from omg_cmdp.sampling import draw_index


@pytest.mark.parametrize("uniform", [0.0, 0.1, 0.5, 0.999, 1.0 - 2.0**-53])
def test_the_compiled_twin_draws_the_same(rng, uniform):
    for _ in range(200):
        weights = rng.random(rng.integers(1, 9)) * (rng.random() < 0.5) + rng.integers(0, 2, size=1) + 1e-300
        weights[rng.random(len(weights)) < 0.3] = 0.0
        weights[rng.integers(len(weights))] += rng.random()
        drawn = draw_index(weights, uniform)
        assert drawn == kernels.pick(weights, uniform)
        assert weights[drawn] > 0.0


def test_frequencies_are_those_of_the_weights(rng):
    weights = np.array([2.0, 0.0, 1.0, 5.0])
    counts = np.bincount([draw_index(weights, uniform) for uniform in (np.arange(8000) + 0.5) / 8000], minlength=4)
    np.testing.assert_array_equal(counts, 1000 * weights)
