"""Files of a study are whole or absent, and a process that dies releases its run."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.dataset
import pytest

from omg_cmdp.documents import FileError
from omg_lab.studies.store import FORMAT, StudyStore, UnwritableError, check_form

HOLD = """
import sys, time
from omg_lab.studies.store import StudyStore
with StudyStore(sys.argv[1]).owned("a"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def store(tmp_path):
    made = StudyStore(tmp_path)
    made.create()
    return made


def test_what_is_written_is_read(store):
    assert store.study() is None
    store.write_study({"configuration": {"name": "é"}})
    assert store.study() == {"configuration": {"name": "é"}}
    assert store.result("a--0") is None
    store.write_result("a--0", {"status": "finished", "regret": 0.1, "loss": float("nan")})
    assert store.result("a--0") == {"run": "a--0", "status": "finished", "regret": 0.1, "loss": None}
    assert store.is_finished("a--0")
    store.write_result("a--0", {"status": "failed"})
    assert not store.is_finished("a--0")
    with store.checkpoint("a--0") as found:
        assert found is None
    store.write_checkpoint("a--0", {"x": np.arange(3)})
    with store.checkpoint("a--0") as found:
        np.testing.assert_array_equal(found["x"], np.arange(3))
    assert [result["status"] for result in store.results()] == ["failed"]
    digest = store.write_part("a--0", 0, b"rows")
    assert store.read_part("a--0", 0, digest) == b"rows"


def test_a_study_of_another_format_is_refused(store):
    store.write_study({})
    written = store.directory / "study.json"
    written.write_text(written.read_text().replace(f"study {FORMAT}", "study 1"))
    with pytest.raises(FileError, match=rf"study\.json: `path` must be a study of format {FORMAT}"):
        store.study()


@pytest.mark.parametrize("content", ["", "{}", "[]", "{", "null", "[" * 10**5, '{"format": 1}', "\udcff"])
def test_json_that_is_torn_or_foreign_is_an_error_about_the_file(content, store):
    for path, read in (("study.json", store.study), ("runs/a.json", lambda: store.result("a"))):
        (store.directory / path).write_text(content, errors="surrogateescape")
        with pytest.raises(FileError, match=re.escape(path)):
            read()


def test_a_number_that_was_changed_is_an_error_about_the_file(store):
    store.write_result("a", {"status": "finished", "regret": 1.5})
    path = store.runs / "a.json"
    path.write_text(path.read_text().replace("1.5", "1.25"))
    with pytest.raises(FileError, match=r"runs/a\.json: .*changed since; delete it"):
        store.result("a")


def test_the_result_of_another_run_is_an_error_about_the_file(store):
    store.write_result("a", {"status": "finished"})
    (store.runs / "b.json").write_bytes((store.runs / "a.json").read_bytes())
    with pytest.raises(FileError, match=r"runs/b\.json: it is the result of a"):
        list(store.results())


def test_a_part_that_was_changed_or_deleted_is_an_error_about_the_file(store):
    digest = store.write_part("a", 0, b"rows")
    store.part("a", 0).write_bytes(b"rowS")
    with pytest.raises(FileError, match=r"log/a-000000\.parquet: it was changed"):
        store.read_part("a", 0, digest)
    store.part("a", 0).unlink()
    with pytest.raises(FileError, match=r"log/a-000000\.parquet cannot be read: No such file"):
        store.read_part("a", 0, digest)


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_a_write_that_fails_names_the_file_and_leaves_what_was_there(fails, store, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writes = {
        "log/a-000000.parquet": lambda: store.write_part("a", 0, b"rows"),
        "state/a.npz": lambda: store.write_checkpoint("a", {"x": np.arange(3)}),
        "runs/a.json": lambda: store.write_result("a", {"status": "finished"}),
        "study.json": lambda: store.write_study({}),
    }
    for path, write in writes.items():
        write()
        before = (store.directory / path).read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(*{"fsync": ("os.fsync", full), "replace": (Path, "replace", full)}[fails])
            with pytest.raises(UnwritableError, match=f"{path} cannot be written: No space left on device; make room"):
                write()
        assert (store.directory / path).read_bytes() == before
    assert len([path for path in store.directory.rglob("*") if path.is_file()]) == len(writes)


@pytest.mark.parametrize("place", ["a file", "a link to nowhere"])
def test_a_folder_that_cannot_be_made_is_an_error_about_it(place, tmp_path):
    if place == "a file":
        (tmp_path / "x").touch()
    else:
        (tmp_path / "x").symlink_to(tmp_path / "nowhere")
        (tmp_path / "nowhere").symlink_to(tmp_path / "x")
    with pytest.raises(UnwritableError, match=f"{tmp_path}/x/log cannot be written"):
        StudyStore(tmp_path / "x").create()


def test_the_name_of_the_folder_must_be_text(tmp_path):
    with pytest.raises(FileError, match="UTF-8"):
        StudyStore(os.fsdecode(bytes(tmp_path) + b"/\xff"))


def test_parts_of_one_run_are_not_those_of_another(store):
    for run in ("a--1", "a--11", "a--1-000000--1"):
        for number in range(3):
            store.write_part(run, number, b"")
    store.forget_after("a--1", 1)
    assert [path.name for path in store.parts("a--1")] == ["a--1-000000.parquet"]
    assert len(store.parts("a--11")) == len(store.parts("a--1-000000--1")) == 3


RUNS = ("a--1", "a--11", "a--1-000000--1")


def test_what_a_crash_left_is_swept(store, monkeypatch):
    left = []
    with monkeypatch.context() as patch:  # what is there just before a file is put in its place
        patch.setattr("os.fsync", lambda _: left.extend(path for path in store.directory.glob("*/.*")))
        for run in RUNS:
            store.write_checkpoint(run, {})
            store.write_part(run, 0, b"")
            store.write_result(run, {})
    assert len(set(left)) == 9
    for path in left:
        path.touch()
    for path in store.log.glob("[!.]*"):
        path.unlink()
    assert pyarrow.dataset.dataset(store.log).files == []  # other readers of the log do not see them
    store.forget_after("a--1", 0)
    assert set(store.directory.glob("*/.*")) == {
        path for path in left if not path.name.startswith((".a--1.", ".a--1-000000.p"))
    }
    assert len(list(store.directory.glob("*/.*"))) == 6


def test_two_writers_of_one_file_never_share_a_temporary_name(store, monkeypatch):
    """Processes in two containers may well have the same number."""
    monkeypatch.setattr("os.getpid", lambda: 7)
    seen = []
    monkeypatch.setattr("os.fsync", lambda _: seen.extend(path.name for path in store.runs.glob(".*")))
    for _ in range(20):
        store.write_result("a", {})
    assert len(set(seen)) == 20


def test_a_run_has_one_owner_until_it_dies(store):
    """Whoever else wants it waits, and says so."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(store.directory)], stdout=subprocess.PIPE, text=True)
    waited = []

    def waiting():
        waited.append(True)
        if len(waited) == 2:
            os.kill(holder.pid, signal.SIGKILL)

    try:
        assert holder.stdout.readline() == "held\n"
        with store.owned("b", waiting):
            assert not waited
        with store.owned("a", waiting):
            assert len(waited) >= 2
    finally:
        holder.kill()
        holder.communicate()


def test_results_are_json_for_any_reader(store):
    store.write_result("a", {"status": "finished", "x": float("nan")})
    json.loads((store.runs / "a.json").read_text(), parse_constant=lambda name: pytest.fail(name))


@pytest.mark.parametrize("value", [10**400, -(10**400), True, "1", None], ids=type)
def test_what_is_no_number_of_a_result_is_refused(value):
    check_form("it", {"regret": 2**60}, {"regret": (int, float)})
    with pytest.raises(ValueError, match="'regret' must be of another type"):
        check_form("it", {"regret": value}, {"regret": (int, float)})
