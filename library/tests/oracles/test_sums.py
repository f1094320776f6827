"""The sum of products that finite classes use, against one in exact arithmetic."""

import math

import numpy as np
import pytest

from omg_cmdp.jit import compiled
from omg_cmdp.oracles.compiled.sums import LANES, dot


@compiled
def sum_of_products(x, y):
    return dot(x, y)


@pytest.mark.parametrize("size", [0, 1, LANES - 1, LANES, LANES + 1, 5 * LANES + 3, 1000])
def test_every_product_counts_once(size, rng):
    x, y = rng.standard_normal((2, size))
    bound = (size + 1) * 2.0**-53 * float(np.abs(x * y).sum())
    assert abs(sum_of_products(x, y) - math.fsum(x * y)) <= bound
    for i in range(0, size, 7):
        assert sum_of_products(np.eye(size)[i], y) == y[i]
