"""Which copy learns what, and packages that are imported with the first use of their adapters."""

import subprocess
import sys

import numpy as np
import pytest

from omg_cmdp.oracles import adapters
from omg_cmdp.oracles.adapters.ensemble import lessons
from tests.oracles.adapters.catalogue import KINDS, MAKERS


@pytest.mark.parametrize("members", [2, 4, 5, 8])
@pytest.mark.parametrize("period", [1, 4, 5, 8, 21, 64])
def test_every_copy_misses_its_share_of_every_step(members, period):
    """Of the examples at a step, or with one of several contexts in turn; i mod M would fail where M divides them."""
    missed = ~lessons(0, 1000 * period, members).reshape(members, 1000, period)
    assert (missed.sum(axis=0) == 1).all()
    assert np.abs(missed.mean(axis=1) * members - 1.0).max() < 0.5


def test_lessons_do_not_depend_on_how_episodes_cut_them():
    whole = lessons(0, 60, 4)
    np.testing.assert_array_equal(np.concatenate([lessons(7 * t, 7, 4) for t in range(8)], axis=1), whole[:, :56])
    # After one example all copies but one have learned something, after two all have.
    for members in range(2, 50):
        assert lessons(0, 1, members).any(axis=1).sum() == members - 1
        assert lessons(0, 2, members).any(axis=1).all()


def test_a_single_copy_learns_everything():
    assert lessons(5, 3, 1).tolist() == [[True, True, True]]


def test_every_adapter_is_in_the_catalogue():
    assert sorted(adapters.__all__) == sorted(f"{package.title()}{kind}" for package in MAKERS for kind in KINDS)


def test_importing_the_adapters_imports_no_foreign_package():
    """A fresh interpreter: each package waits for the first use of its adapters."""
    script = "import sys, omg_cmdp.oracles.adapters; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "omg_cmdp.oracles.adapters" in loaded
    assert {"sklearn", "river", "torch"}.isdisjoint(loaded)
    with pytest.raises(AttributeError, match="Nothing"):
        adapters.Nothing  # noqa: B018


@pytest.mark.parametrize("package", MAKERS)
def test_a_missing_package_is_named_with_the_command_that_installs_it(package, monkeypatch):
    for module in [name for name in sys.modules if name.startswith("omg_cmdp.oracles.adapters.")]:
        monkeypatch.delitem(sys.modules, module)
    for module in ("", ".base", ".compose"):
        monkeypatch.setitem(sys.modules, f"{package}{module}", None)
    with pytest.raises(ImportError, match=rf"pip install 'omg-cmdp\[{package}\]'"):
        getattr(adapters, f"{package.title()}Rewards")
