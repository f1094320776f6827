"""Randomness in tests: one seed by default, many with `--seeds N`."""

import numpy as np
import pytest


def pytest_addoption(parser):
    parser.addoption("--seeds", type=int, default=1, metavar="N", help="run every random test with seeds 0..N-1")


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("seeds")), ids="seed={}".format)


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)
