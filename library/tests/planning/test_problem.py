"""A saved problem is read back the same, and no other file is taken for one."""

import zipfile

import numpy as np
import pytest

from library.tests.planning.problems import PROBLEMS, barrier_problem
from omg_cmdp import Problem


@pytest.mark.parametrize("make", PROBLEMS)
def test_a_saved_problem_replays_bit_for_bit(make, rng, tmp_path):
    for _ in range(10):
        problem = make(rng)
        problem.save(tmp_path / "problem.npz")
        replayed, expected = Problem.load(tmp_path / "problem.npz").plan(), problem.plan()
        np.testing.assert_array_equal(replayed.policy, expected.policy)
        assert replayed.certificate == expected.certificate
    assert [file.name for file in tmp_path.iterdir()] == ["problem.npz"]


def test_a_failed_save_leaves_the_old_file(rng, tmp_path, monkeypatch):
    path = tmp_path / "problem.npz"
    barrier_problem(rng).save(path)
    before = path.read_bytes()

    def torn(file, name, content):
        file.fp.write(b"half of it")
        raise OSError("no space left")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", torn)
    with pytest.raises(OSError, match="no space left"):
        barrier_problem(rng).save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("content", [b"", b"not a problem", b"PK\x03\x04 torn"])
def test_another_file_is_refused(content, tmp_path):
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"`path` must be a planning problem of format 3"):
        Problem.load(path)


@pytest.mark.parametrize(
    "arrays",
    [
        {"x": np.ones(3)},
        {"format": "planning problem 3"},
        {"format": "planning problem 1"},
        {"format": np.ones(3)},
        {"format": "planning problem 1", "transitions": "north"},
    ],
    ids=["foreign", "newer", "incomplete", "odd format", "odd table"],
)
def test_an_archive_of_something_else_is_refused(arrays, tmp_path):
    np.savez(tmp_path / "other.npz", **arrays)
    with pytest.raises(ValueError, match=r"`path` must be a planning problem of format 3"):
        Problem.load(tmp_path / "other.npz")
