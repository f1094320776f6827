"""Studies never show one thing for another: a file that is missing, changed or another one's is an error about it."""

import contextlib
import dataclasses
import io
import os
import resource
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from lab.tests.studies.examples import content, run_study
from omg_cmdp.documents import FileError
from omg_lab.cli import app
from omg_lab.studies.catalogue import KINDS, Part
from omg_lab.studies.config import read_plan
from omg_lab.studies.directory import open_study
from omg_lab.studies.engines import Serial
from omg_lab.studies.journal import schema
from omg_lab.studies.results import load
from omg_lab.studies.runner import Failed, Finished, Waiting, play
from omg_lab.studies.store import StudyStore

TINY = """
episodes = 40
seeds = 2
checkpoint = 20
[worlds.decoy]
context_count = 2
reward_class_size = 4
[agents.greedy]
[agents.uniform]
"""
FIRST, SECOND = "decoy--iid--greedy--0", "decoy--iid--greedy--1"


def called(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("made")
    run_study(TINY, directory / "study")
    (directory / "study.toml").write_text(TINY)
    return directory


@pytest.fixture
def study(made, tmp_path):
    """Return a study that may be spoilt: its folder, its files, and its command."""
    folder = tmp_path / "study"
    shutil.copytree(made / "study", folder)
    store = StudyStore(folder)
    run = ("run", made / "study.toml", "--out", folder, "--workers", 1)
    return SimpleNamespace(folder=folder, store=store, run=run)


def refused(result, *words):
    assert result.exit_code == 2, result.output
    assert all(word in result.output for word in words), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def commands(study):
    return [
        (*study.run, "--quiet"),
        ("audit", study.folder),
        ("compare", study.folder),
        ("export", study.folder),
        ("report", study.folder),
    ]


def test_two_names_for_one_file_are_refused_though_they_come_one_after_the_other(study):
    before = content(study.folder), (study.folder / "study.json").read_bytes()
    other = study.folder.with_name("other.toml")
    other.write_text(TINY.replace("[agents.greedy]", "[agents.Greedy]\nkind = 'epsilon_greedy'\nepsilon = 0.5"))
    result = called("run", other, "--out", study.folder, "--workers", 1)
    refused(result, "'Greedy' and 'greedy' would have the same file name", str(study.folder))
    assert (content(study.folder), (study.folder / "study.json").read_bytes()) == before


def test_a_log_part_that_is_missing_is_an_error_about_it(study):
    study.store.part(FIRST, 1).unlink()
    for command in commands(study):
        refused(called(*command), f"log/{FIRST}-000001.parquet", "No such file")


def test_a_number_that_was_changed_in_a_result_is_an_error_about_it(study):
    path = study.store.runs / f"{FIRST}.json"
    regret = str(study.store.result(FIRST)["regret"])
    path.write_text(path.read_text().replace(regret, "0.125"))
    for command in commands(study):
        refused(called(*command), f"runs/{FIRST}.json", "changed", "delete it")
    path.unlink()  # as the message says
    assert called(*study.run, "--quiet").exit_code == 0
    assert str(study.store.result(FIRST)["regret"]) == regret


def test_an_audit_finds_a_result_that_was_forged_with_its_digest(study):
    result = study.store.result(FIRST)
    study.store.write_result(FIRST, {**result, "regret": result["regret"] + 1e-9})
    audited = called("audit", study.folder, "--runs", FIRST)
    assert audited.exit_code == 1
    assert "NOT equal" in audited.output


def test_an_audit_finds_a_log_that_was_forged_with_its_digest(study):
    table = parquet.read_table(study.store.part(FIRST, 0))
    regret = table["regret"].to_numpy().copy()
    regret[3] += 1e-12
    parquet.write_table(
        table.set_column(table.column_names.index("regret"), "regret", [regret]), study.store.part(FIRST, 0)
    )
    refused(called("audit", study.folder), f"log/{FIRST}-000000.parquet", "changed")
    result = study.store.result(FIRST)
    digest = study.store.write_part(FIRST, 0, study.store.part(FIRST, 0).read_bytes())
    study.store.write_result(FIRST, {**result, "parts": [digest, *result["parts"][1:]]})
    audited = called("audit", study.folder, "--runs", FIRST)
    assert audited.exit_code == 1
    assert "NOT equal" in audited.output


def test_a_checkpoint_of_another_run_is_not_continued(study):
    shutil.copy(study.store.state / f"{SECOND}.npz", study.store.state / f"{FIRST}.npz")
    (study.store.runs / f"{FIRST}.json").unlink()
    result = called(*study.run)
    assert result.exit_code == 1
    assert f"state/{FIRST}.npz" in result.output
    assert "delete it, and the run is played from its beginning" in result.output
    assert "Traceback" not in result.output


def test_what_a_checkpoint_counts_must_be_there(study):
    (study.store.runs / f"{FIRST}.json").unlink()
    study.store.part(FIRST, 0).write_bytes(study.store.part(SECOND, 0).read_bytes())
    result = called(*study.run)
    assert result.exit_code == 1
    assert f"log/{FIRST}-000000.parquet: it was changed" in result.output


def test_a_result_of_another_study_is_an_error_about_it(study, tmp_path):
    """Of the same name, but with another seed of the study."""
    run_study(TINY.replace("seeds = 2", "seeds = 1\nseed = 5"), tmp_path / "other")
    shutil.copy(tmp_path / "other" / "runs" / f"{FIRST}.json", study.store.runs)
    for command in commands(study):
        refused(called(*command), f"runs/{FIRST}.json", "other settings")


def test_a_setting_that_was_changed_in_the_study_is_an_error_about_it(study):
    path = study.folder / "study.json"
    path.write_text(path.read_text().replace('"context_count": 2', '"context_count": 3'))
    for command in commands(study):
        refused(called(*command), "study.json", "changed")
    study.store.write_study({"configuration": {}})
    refused(called("report", study.folder), "study.json", "`episodes` must be given")


def test_every_run_says_what_it_was_made_with(study, monkeypatch):
    """A run that two versions have played names both."""
    (study.store.runs / f"{FIRST}.json").unlink()
    old = study.store.result(SECOND)["made_with"]
    assert len(old) == 1
    assert old[0]["versions"].keys() >= {"python", "numpy", "numba"}
    new = {**old[0], "version": "99"}
    monkeypatch.setattr("omg_lab.studies.runner.provenance", lambda: new)
    assert called(*study.run, "--quiet").exit_code == 0
    assert study.store.result(FIRST)["made_with"] == [*old, new]
    told = load(study.folder).runs.set_index("run")["made_with"]
    assert "; then omg-cmdp 99" in told[FIRST]
    assert "; then" not in told[SECOND]


def test_of_two_that_add_to_a_study_neither_undoes_the_other(study, monkeypatch):
    original, meet = StudyStore.study, threading.Barrier(2)

    def slow(self):
        found = original(self)
        with contextlib.suppress(threading.BrokenBarrierError):
            meet.wait(0.3)  # as long as both may read before either writes
        return found

    monkeypatch.setattr(StudyStore, "study", slow)
    plans = [read_plan(TINY + f"[agents.{name}]\nkind = 'uniform'\n", name="study") for name in ("a", "b")]
    threads = [threading.Thread(target=open_study, args=(plan, study.folder)) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert original(study.store)["configuration"]["agents"].keys() >= {"a", "b"}


def test_a_run_that_another_process_plays_is_waited_for(study):
    task = next(task for task in read_plan(TINY).tasks() if task.name == FIRST)
    (study.store.runs / f"{FIRST}.json").unlink()
    owner, events, waits = study.store.owned(FIRST), [], threading.Event()

    def report(event):
        events.append(event)
        if isinstance(event, Waiting):
            waits.set()

    owner.__enter__()
    player = threading.Thread(target=play, args=(task, study.store, report))
    player.start()
    assert waits.wait(10.0)
    owner.__exit__(None, None, None)
    player.join()
    assert isinstance(events[-1], Finished)
    assert not any(isinstance(event, Failed) for event in events)


def test_a_full_disk_ends_the_study_and_fails_no_run(study, monkeypatch):
    (study.store.runs / f"{FIRST}.json").unlink()
    with monkeypatch.context() as patch:

        def full(_):
            if list(study.store.runs.glob(".*")):
                raise OSError(28, "No space left on device")

        patch.setattr("os.fsync", full)
        refused(called(*study.run), f"runs/{FIRST}.json", "No space left on device", "the same command continues")
    assert study.store.result(FIRST) is None
    assert called(*study.run).exit_code == 0


def test_the_log_may_lie_on_another_file_system(tmp_path, monkeypatch):
    """Where a file cannot be moved from one folder to the next."""
    original = type(tmp_path).replace

    def within_a_folder(self, target):
        if self.parent != target.parent:
            raise OSError(18, "Invalid cross-device link")
        return original(self, target)

    monkeypatch.setattr(type(tmp_path), "replace", within_a_folder)
    assert len(run_study(TINY, tmp_path).runs) == 4


def test_settings_are_those_that_decide_the_numbers():
    plan = read_plan(TINY)

    def settings(run=0, **changes):
        return dataclasses.replace(plan, **changes).tasks()[run].settings

    assert settings(checkpoint=7) == settings()
    changes = [{"run": 1}, {"run": 2}, {"seed": 1}, {"episodes": 41}, {"propensities": True}, {"delay": 3}]
    assert len({settings(), *(settings(**change) for change in changes)}) == len(changes) + 1


def test_every_option_of_every_kind_is_part_of_the_settings():
    """A checkpoint or result of a run with another value of any of them is refused."""
    task, found = read_plan(TINY).tasks()[0], set()
    options = [(t, kind, option) for t, kinds in KINDS.items() for kind in kinds.values() for option in kind.options]
    for table, kind, option in options:
        name = {"worlds": "world", "adversaries": "adversary", "agents": "agent"}[table]
        part = Part(name="x", kind=kind.name, options={})
        for each in (part, dataclasses.replace(part, options={option: 7})):
            found.add(dataclasses.replace(task, **{name: each}).settings)
    assert len(options) > 250
    assert len(found) == len(options) + len({(table, kind.name) for table, kind, _ in options})


def test_an_engine_stops_at_an_error_about_files(study):
    plan = read_plan(TINY.replace("seeds = 2", "seeds = 3"), name="small study")
    store = open_study(plan, study.folder)
    shutil.rmtree(store.log)
    with pytest.raises(FileError, match=r"log/decoy--iid--greedy--2-000000\.parquet cannot be written"):
        Serial().run(plan.tasks()[-2:], store, lambda event: None)


def forged(study, run, place, value):
    """Change a value of a stored file, and its digest with it, as a stranger can."""
    found = study.store.study() if run is None else study.store.result(run)
    table = found
    for key in place[:-1]:
        table = table[key]
    if value is GONE:
        del table[place[-1]]
    else:
        table[place[-1]] = value
    study.store.write_study(found) if run is None else study.store.write_result(run, found)


GONE = "(gone)"
FORGED_STUDIES = [
    (("configuration",), []),
    (("configuration",), GONE),
    (("configuration", "worlds", "decoy"), True),
    (("configuration", "worlds", "decoy", "kind"), ["decoy"]),
    (("configuration", "worlds", "decoy", "digest of sources"), 3),
    (("configuration", "worlds", "decoy", "episodes"), "many"),
    (("configuration", "seeds"), "x"),
    (("configuration", "seeds"), [None]),
    (("configuration", "vary"), {}),
    (("configuration", "delay"), {"kind": {}}),
    (("configuration", "agents"), None),
    (("configuration", "episodes"), 10**30),
    (("versions",), ["numpy"]),
    (("versions", "numpy"), {}),
    (("commit",), 3),
]
FORGED_RESULTS = [
    (("status",), 3),
    (("run",), None),
    (("settings",), {}),
    (("seed",), "0"),
    (("agent",), "uniform"),
    (("episodes",), 41),
    (("regret",), "none"),
    (("seconds",), GONE),
    (("horizon",), True),
    (("parts",), "abc"),
    (("parts",), [[]]),
    (("made_with",), [3]),
    (("made_with",), [{}]),
    (("names",), []),
    (("names", "actions"), [1]),
    (("policies",), [3]),
    (("policies", 0, "policy"), [[1.0]]),
    (("policies", 0, "best", 0, 0), 99),
    (("policies", 0, "states", 0), -1),
    (("policies", 0, "sure"), "x"),
    (("policies", 0, "context"), "{"),
    (("policies", 0), GONE),
]


@pytest.mark.parametrize(("place", "value"), FORGED_STUDIES, ids=str)
def test_a_strangers_study_is_refused_in_a_line(study, place, value):
    forged(study, None, place, value)
    for command in commands(study):
        refused(called(*command), "study.json")
        assert len(called(*command).output.strip().splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("place", "value"), FORGED_RESULTS, ids=str)
def test_a_strangers_result_is_refused_in_a_line_or_shown(study, place, value):
    """Whether a number that fits was changed, an audit finds."""
    run = "decoy--iid--greedy--0"
    forged(study, run, place, value)
    for command in commands(study):
        result = called(*command)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        if place != ("policies", 0):
            refused(result, f"runs/{run}.json")
            assert len(result.output.strip().splitlines()) == 1


def part_of(rows, **columns):
    """Return a part of a log of zeros, with these columns in their place."""
    names = list(schema(trajectories=False))
    zeros = {each.name: np.zeros(rows) if str(each.type) != "string" else [""] * rows for each in names}
    table = pyarrow.table({each.name: pyarrow.array(zeros[each.name], each.type) for each in names})
    for name, column in columns.items():
        table = table.set_column(table.column_names.index(name), name, [column])
    file = io.BytesIO()
    parquet.write_table(table, file, compression="zstd")
    return file.getvalue()


def repeated(text, rows):
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * rows), pyarrow.array([text]))


@contextlib.contextmanager
def limited_memory(more):
    """Let this process have no more than this many bytes beyond what it has; reading beyond it is a MemoryError."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


BOMBS = {
    "many equal rows": lambda: part_of(400_000),
    "one long text": lambda: part_of(300, context=repeated("x" * 10_000_000, 300)),
    "other columns": lambda: part_of(3, regret=pyarrow.array(["x"] * 3)),
    "no log": lambda: b"PAR1 and more PAR1",
    "nothing": lambda: b"",
}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory cannot be limited here")
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_strangers_log_is_refused_before_it_is_unpacked(study, bomb):
    content = BOMBS[bomb]()
    assert len(content) < 200_000
    result = study.store.result(FIRST)
    digest = study.store.write_part(FIRST, 0, content)
    study.store.write_result(FIRST, {**result, "parts": [digest, *result["parts"][1:]]})
    with limited_memory(2**30):
        for command in (("export", study.folder), ("report", study.folder)):
            refused(called(*command), f"log/{FIRST}-000000.parquet", "restore it")


@pytest.mark.parametrize("place", ["study.json", f"runs/{FIRST}.json", f"log/{FIRST}-000000.parquet"])
@pytest.mark.parametrize("what", ["a pipe", "a device", "a folder", "a sparse file"])
def test_what_is_no_file_is_not_read(study, place, what):
    """A pipe would be waited for, and /dev/zero has no end."""
    path = study.folder / place
    path.unlink()
    if what == "a pipe":
        os.mkfifo(path)
    elif what == "a device":
        path.symlink_to("/dev/zero")
    elif what == "a folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(2**40)
    refused(called("export", study.folder), place)
