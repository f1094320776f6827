"""Studies never show one thing for another: a file that is missing, changed or another one's is an error about it."""

import contextlib
import dataclasses
import shutil
import threading
from types import SimpleNamespace

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from lab.tests.studies.examples import content, run_study
from omg_cmdp.documents import FileError
from omg_lab.cli import app
from omg_lab.studies.config import read_plan
from omg_lab.studies.directory import open_study
from omg_lab.studies.engines import Serial
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
        ("export", study.folder, "--to", "csv"),
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


def test_an_engine_stops_at_an_error_about_files(study):
    plan = read_plan(TINY.replace("seeds = 2", "seeds = 3"), name="small study")
    store = open_study(plan, study.folder)
    shutil.rmtree(store.log)
    with pytest.raises(FileError, match=r"log/decoy--iid--greedy--2-000000\.parquet cannot be written"):
        Serial().run(plan.tasks()[-2:], store, lambda event: None)
