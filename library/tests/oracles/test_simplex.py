"""The nearest point of the simplex, against the conditions of a projection."""

import numpy as np

from omg_cmdp.oracles.simplex import nearest_on_simplex


def test_the_nearest_point_makes_no_acute_angle_with_any_other(rng):
    """⟨x - p, v - p⟩ <= 0 for all corners v: p is the projection of x; and a point inside stays."""
    for states in (1, 2, 5):
        points = rng.normal(scale=2.0, size=(50, states))
        found = nearest_on_simplex(points)
        assert found.min() >= 0.0
        np.testing.assert_allclose(found.sum(axis=-1), 1.0, atol=1e-12)
        angles = np.einsum("ns,nvs->nv", points - found, np.eye(states) - found[:, None])
        assert angles.max() <= 1e-9
        np.testing.assert_allclose(nearest_on_simplex(found), found, atol=1e-12)
