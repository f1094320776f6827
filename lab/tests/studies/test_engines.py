"""The same numbers to the bit on any engine, whoever dies in between."""

import contextlib
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import omg_cmdp
from lab.tests.studies.examples import content, small_plan
from omg_lab.studies.catalogue import Part
from omg_lab.studies.engines import MOST_LOSSES, Local, Ray, Serial
from omg_lab.studies.results import load
from omg_lab.studies.runner import Failed, Finished, Lost, Progress
from omg_lab.studies.store import StudyStore, UnwritableError

ROOT = Path(omg_cmdp.__file__).parents[1]


def run(engine, plan, directory, report=lambda event: None):
    store, events = StudyStore(directory), []
    store.create()
    store.write_study({"configuration": plan.configuration()})

    def note(event):
        events.append(event)
        report(event)

    engine.run(plan.tasks(), store, note)
    return events


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    directory = tmp_path_factory.mktemp("serial")
    run(Serial(), small_plan(), directory)
    return content(directory)


@pytest.mark.slow
def test_two_workers_give_what_one_gives(serial, tmp_path):
    events = run(Local(2), small_plan(), tmp_path)
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

    events = run(Local(2), small_plan(), tmp_path, kill_now_and_then)
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

    events = run(Local(1), plan, tmp_path, kill)
    assert [event.run for event in events if isinstance(event, Failed)] == ["decoy--bursts--omg--0"]
    assert sum(isinstance(event, Lost) for event in events) == MOST_LOSSES
    assert len(load(tmp_path).runs) == 3
    assert "died" in load(tmp_path).failed["error"].iloc[0]


@pytest.mark.slow
def test_a_run_that_raises_fails_alone(tmp_path):
    broken = Part(name="broken", kind="ucbvi", options={"scale": "not checked here"})
    plan = small_plan(seeds=(0,))
    events = run(Local(2), small_plan(seeds=(0,), agents=(broken, *plan.agents)), tmp_path)
    assert [event.run for event in events if isinstance(event, Failed)] == ["decoy--bursts--broken--0"]
    assert len(load(tmp_path).runs) == 4


@pytest.mark.slow
def test_an_error_about_files_of_a_worker_ends_the_engine(tmp_path):
    """No other run could be stored either; and none is recorded as failed."""

    def no_log(event):
        shutil.rmtree(tmp_path / "log", ignore_errors=True)

    with pytest.raises(UnwritableError, match=r"log/decoy--bursts--.*parquet cannot be written"):
        run(Local(1), small_plan(seeds=(0,)), tmp_path, no_log)
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
        run(Local(2), small_plan(), tmp_path, stop)
    assert children() == []
    assert dict(os.environ) == before


needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture
def nodes(tmp_path, monkeypatch):
    """Yield the address of a Ray cluster on this machine, and its two nodes as processes; the first is the head."""
    token = tmp_path / "token"
    token.write_text(secrets.token_hex(32))
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    begun = []

    def start(*arguments):
        command = [str(Path(sys.executable).with_name("ray")), "start", *arguments, "--num-cpus=1", "--block"]
        begun.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True))

    def answers():
        with contextlib.suppress(OSError), socket.create_connection(address.split(":"), timeout=1.0):
            return True
        return False

    try:
        start("--head", f"--port={address.rpartition(':')[2]}", "--include-dashboard=false")
        while not answers():
            assert begun[0].poll() is None
            time.sleep(0.5)
        start(f"--address={address}")
        yield address, begun
    finally:
        for node in reversed(begun):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGKILL)
            node.wait()


@pytest.mark.slow
@needs_ray
@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_though_a_node_dies(nodes, tmp_path):
    import ray

    address, processes = nodes
    plan = small_plan(episodes=2000, checkpoint=100)
    run(Serial(), plan, tmp_path / "serial")
    while not _two_nodes(ray, address):
        time.sleep(1.0)
    killed = []

    def kill_one_node(event):
        if isinstance(event, Progress) and not killed:
            os.killpg(processes[1].pid, signal.SIGKILL)
            killed.append(event)

    events = run(Ray(address), plan, tmp_path / "ray", kill_one_node)
    assert killed
    assert sum(isinstance(event, Finished) for event in events) == 8
    assert content(tmp_path / "ray") == content(tmp_path / "serial")


def _two_nodes(ray, address):
    ray.init(address=address, log_to_driver=False)
    alive = [node for node in ray.nodes() if node["Alive"]]
    ray.shutdown()
    return len(alive) == 2
