"""Files of a study are whole or absent, and a process that dies releases its run."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from omg_cmdp.studies import store as module
from omg_cmdp.studies.document import StudyError
from omg_cmdp.studies.store import FORMAT, BusyError, Store

HOLD = """
import sys, time
from omg_cmdp.studies.store import Store
with Store(sys.argv[1]).owned("a"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path)
    made.create()
    return made


def test_what_is_written_is_read(store):
    assert store.study() is None
    store.write_study({"configuration": {"name": "é"}})
    assert store.study() == {"configuration": {"name": "é"}}
    written = store.directory / "study.json"
    written.write_text(written.read_text().replace(f'"format": {FORMAT}', '"format": 0'))
    with pytest.raises(StudyError, match=f"must be a study of format {FORMAT}"):
        store.study()
    assert store.result("a--0") is None
    store.write_result("a--0", {"status": "finished", "regret": 0.1, "loss": float("nan")})
    assert store.result("a--0") == {"status": "finished", "regret": 0.1, "loss": None}
    assert store.is_finished("a--0")
    store.write_result("a--0", {"status": "failed"})
    assert not store.is_finished("a--0")
    assert store.checkpoint("a--0") is None
    store.write_checkpoint("a--0", {"x": np.arange(3)})
    np.testing.assert_array_equal(store.checkpoint("a--0")["x"], np.arange(3))
    assert [result["status"] for result in store.results()] == ["failed"]


def test_a_write_that_fails_leaves_what_was_there(store):
    store.write_part("a--0", 0, lambda name: Path(name).write_text("whole"))

    def half(name):
        Path(name).write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        store.write_part("a--0", 0, half)
    assert store.part("a--0", 0).read_text() == "whole"
    assert list(store.state.iterdir()) == []
    assert [path.name for path in store.log.iterdir()] == ["a--0-000000.parquet"]


def test_parts_of_one_run_are_not_those_of_another(store):
    for run in ("a--1", "a--11", "a--1-000000--1"):
        for number in range(3):
            store.write_part(run, number, lambda name: Path(name).touch())
    store.forget_after("a--1", 1)
    assert [path.name for path in store.parts("a--1")] == ["a--1-000000.parquet"]
    assert len(store.parts("a--11")) == len(store.parts("a--1-000000--1")) == 3


def test_what_a_crash_left_is_swept(store, monkeypatch):
    left = []
    with monkeypatch.context() as patch:  # what is there just before a file is put in its place
        patch.setattr("os.fsync", lambda _: left.extend(path.name for path in store.state.iterdir()))
        store.write_checkpoint("a--1", {})
        store.write_part("a--1", 0, lambda name: Path(name).touch())
        store.write_checkpoint("a--11", {})
    mine = {name for name in left if not name.startswith("a--11")} - {"a--1.npz"}
    others = set(left) - mine
    assert len(mine) == 2
    assert len(others) == 2  # its checkpoint, and what another run is writing
    for name in left:
        (store.state / name).touch()
    store.forget_after("a--1", 0)
    assert {path.name for path in store.state.iterdir()} == others | {"a--11.npz"}


def test_a_run_has_one_owner_until_it_dies(store, monkeypatch):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(store.directory)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        monkeypatch.setattr(module, "LOCK_SECONDS", 0.2)
        with pytest.raises(BusyError, match="another process"), store.owned("a"):
            pass
        with store.owned("b"):
            pass
        monkeypatch.setattr(module, "LOCK_SECONDS", 30.0)
        began = time.monotonic()
        os.kill(holder.pid, signal.SIGKILL)
        with store.owned("a"):
            assert time.monotonic() - began < 10.0
    finally:
        holder.kill()
        holder.communicate()


def test_results_are_json_for_any_reader(store):
    store.write_result("a", {"status": "finished", "x": float("nan")})
    json.loads((store.runs / "a.json").read_text(), parse_constant=lambda name: pytest.fail(name))
