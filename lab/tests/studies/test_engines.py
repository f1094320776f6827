"""The same numbers to the bit on any engine, whoever dies in between."""

import os
import shutil
import signal
from pathlib import Path

import pytest

import omg_cmdp
from lab.tests.studies.examples import content, small_plan
from omg_lab.studies.catalogue import Part
from omg_lab.studies.engines import MOST_LOSSES, play_here, play_in_workers
from omg_lab.studies.results import load
from omg_lab.studies.runner import Failed, Finished, Lost, Progress
from omg_lab.studies.store import StudyStore, UnwritableError

ROOT = Path(omg_cmdp.__file__).parents[1]


def run(workers, plan, directory, report=lambda event: None):
    store, events = StudyStore(directory), []
    store.create()
    store.write_study({"configuration": plan.configuration()})

    def note(event):
        events.append(event)
        report(event)

    if workers:
        play_in_workers(plan.tasks(), store, note, workers)
    else:
        play_here(plan.tasks(), store, note)
    return events


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    directory = tmp_path_factory.mktemp("serial")
    run(0, small_plan(), directory)
    return content(directory)


@pytest.mark.slow
def test_two_workers_give_what_one_gives(serial, tmp_path):
    events = run(2, small_plan(), tmp_path)
    assert content(tmp_path) == serial
    assert sum(isinstance(event, Finished) for event in events) == 8
    assert {event.run for event in events if isinstance(event, Progress)} == {
        task.name for task in small_plan().tasks()
    }


def children():
    """Return the ids of the processes that this one has started by the pool."""
    import multiprocessing

    return [child.pid for child in multiprocessing.active_children()]


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(serial, tmp_path):
    killed = []

    def kill_now_and_then(event):
        if isinstance(event, Progress) and event.episode and len(killed) < 3:
            killed.append(children()[0])
            os.kill(killed[-1], signal.SIGKILL)

    events = run(2, small_plan(), tmp_path, kill_now_and_then)
    assert len(killed) == 3
    assert any(isinstance(event, Lost) for event in events)
    assert content(tmp_path) == serial


@pytest.mark.slow
def test_a_run_that_always_kills_its_worker_fails_alone(tmp_path):
    plan = small_plan(seeds=(0,))

    def kill(event):
        if isinstance(event, Progress) and "--omg--" in event.run and event.episode == 0:
            for child in children():
                os.kill(child, signal.SIGKILL)

    events = run(1, plan, tmp_path, kill)
    assert [event.run for event in events if isinstance(event, Failed)] == ["decoy--sorted--omg--0"]
    assert sum(isinstance(event, Lost) for event in events) == MOST_LOSSES
    assert len(load(tmp_path).runs) == 3
    assert "died" in load(tmp_path).failed["error"].iloc[0]


@pytest.mark.slow
def test_a_run_that_raises_fails_alone(tmp_path):
    broken = Part(name="broken", kind="ucbvi", options={"scale": "not checked here"})
    plan = small_plan(seeds=(0,))
    events = run(2, small_plan(seeds=(0,), agents=(broken, *plan.agents)), tmp_path)
    assert [event.run for event in events if isinstance(event, Failed)] == ["decoy--sorted--broken--0"]
    assert len(load(tmp_path).runs) == 4


@pytest.mark.slow
def test_an_error_about_files_of_a_worker_ends_the_engine(tmp_path):
    """No other run could be stored either; and none is recorded as failed."""

    def no_log(event):
        shutil.rmtree(tmp_path / "log", ignore_errors=True)

    with pytest.raises(UnwritableError, match=r"log/decoy--sorted--.*parquet cannot be written"):
        run(1, small_plan(seeds=(0,)), tmp_path, no_log)
    assert list((tmp_path / "runs").iterdir()) == []
    assert children() == []


@pytest.mark.slow
def test_no_worker_outlives_the_engine(tmp_path):
    class Enough(BaseException):
        pass

    def stop(event):
        if isinstance(event, Progress) and event.episode:
            raise Enough

    before = dict(os.environ)
    with pytest.raises(Enough):
        run(2, small_plan(), tmp_path, stop)
    assert children() == []
    assert dict(os.environ) == before
