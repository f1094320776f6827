import numpy as np
import pytest

from omg_cmdp import squared_hellinger


@pytest.fixture(params=[1.0, 0.05, 50.0], ids="concentration={}".format)
def pairs(request, rng):
    """Two tables (20, 5, 7) of distributions."""
    return rng.dirichlet(np.full(7, request.param), (2, 20, 5))


def test_distance_is_the_sum_over_outcomes(pairs):
    p, q = pairs
    affinity = np.sqrt(p * q).sum(axis=-1)
    np.testing.assert_allclose(squared_hellinger(p, q), 2.0 - 2.0 * affinity, atol=1e-14)


def test_distance_lies_between_zero_and_two(pairs):
    distance = squared_hellinger(*pairs)
    assert (distance >= 0.0).all()
    assert (distance <= 2.0 + 1e-14).all()


def test_distance_is_symmetric(pairs):
    p, q = pairs
    np.testing.assert_array_equal(squared_hellinger(p, q), squared_hellinger(q, p))


def test_distance_is_zero_iff_equal(pairs):
    p, q = pairs
    assert not squared_hellinger(p, p).any()
    assert (squared_hellinger(p, q) > 0.0).all()


@pytest.mark.parametrize("disjoint", [([1.0, 0.0], [0.0, 1.0]), ([0.5, 0.5, 0, 0], [0, 0, 0.25, 0.75])])
def test_distance_is_two_iff_supports_are_disjoint(disjoint, pairs):
    assert squared_hellinger(*disjoint) == pytest.approx(2.0, abs=1e-15)
    smoothed = 0.9 * pairs + 0.1 / 7
    assert (squared_hellinger(*smoothed) < 2.0).all()


@pytest.mark.parametrize("mixing", [1.0, 1e-3, 1e-8])
def test_squared_total_variation_is_at_most_four_distances(pairs, mixing):
    p, q = pairs
    near = (1.0 - mixing) * p + mixing * q
    total_variation = np.abs(p - near).sum(axis=-1)
    assert (total_variation**2 <= 4.0 * squared_hellinger(p, near) * (1 + 1e-6) + 1e-30).all()


def test_root_is_a_metric(rng):
    p, q, r = rng.dirichlet(np.ones(4), (3, 200))
    roots = [np.sqrt(squared_hellinger(*pair)) for pair in ((p, r), (p, q), (q, r))]
    assert (roots[0] <= roots[1] + roots[2] + 1e-14).all()


@pytest.mark.parametrize("shape", [(), (3,), (4, 2), (2, 3, 4)])
def test_leading_axes_are_kept_and_each_row_stands_alone(shape, rng):
    p, q = rng.dirichlet(np.ones(5), (2, *shape))
    distance = squared_hellinger(p, q)
    assert distance.shape == shape
    for index in np.ndindex(shape):
        assert distance[index] == pytest.approx(sum((np.sqrt(p[index]) - np.sqrt(q[index])) ** 2), abs=1e-15)


def test_one_distribution_is_compared_with_many(rng):
    p, many = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5), (3, 2))
    np.testing.assert_array_equal(squared_hellinger(p, many), squared_hellinger(np.broadcast_to(p, many.shape), many))
