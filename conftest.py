"""Shared by the tests of all packages: one seed by default, many with `--seeds N`; optional packages may be missing."""

import gc
import importlib.util

import numpy as np
import pytest

import tests  # noqa: F401 (the three packages have a `tests` too; by this name these are meant, whichever comes first)

OPTIONAL = {
    "gymnasium": ("lab/omg_lab/worlds/gymnasium/environment.py",),
}
"""Modules that cannot be imported without an optional package; any other import error is an error."""

collect_ignore = [
    "lab/benchmarks",
    "lab/league",
    "trial/benchmarks",
] + [  # no doctests there, and some modules need the packages of peers
    path for package, paths in OPTIONAL.items() if importlib.util.find_spec(package) is None for path in paths
]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for garbage among what tests make only: what was imported and collected stays, and is a million objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_addoption(parser):
    parser.addoption("--seeds", type=int, default=1, metavar="N", help="run every random test with seeds 0..N-1")


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("seeds")), ids="seed={}".format)


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)
