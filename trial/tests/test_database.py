"""Databases: SQLite and PostgreSQL keep the same events, and one writer at a time."""

import concurrent.futures
import contextlib
import json
import os
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest
import sqlalchemy
from typer.testing import CliRunner

from omg_trial.cli import app
from omg_trial.desk import Desk
from omg_trial.log import addresses, database
from omg_trial.log.database import Database, InUseError, StoreError
from omg_trial.log.events import link
from omg_trial.replay import replay
from omg_trial.service import Service
from trial.tests.trials import Clock, Trialist, digest, person, trial


def _programs():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin")) if Path("/usr/lib/postgresql").exists() else []
    return found[-1] if found else (Path(shutil.which("initdb")).parent if shutil.which("initdb") else None)


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    """A server of its own, on a free port, with a database that is emptied for each test."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    folder = tmp_path_factory.mktemp("postgres")
    user = "postgres" if os.geteuid() == 0 else None
    if user:
        shutil.chown(folder, user)
        for parent in folder.parents:
            if parent != Path("/") and parent.stat().st_uid == os.geteuid() and str(parent) != "/tmp":
                parent.chmod(parent.stat().st_mode | 0o011)

    def run(*command, **options):
        prefix = ["runuser", "-u", user, "--"] if user else []
        return subprocess.run([*prefix, *map(str, command)], check=True, capture_output=True, cwd=folder, **options)

    data = folder / "data"
    run(programs / "initdb", "-D", data, "-A", "trust", "-U", "tester", "--no-sync")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    run(programs / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start", timeout=60)
    server = {"url": f"postgresql://tester@127.0.0.1:{port}/postgres", "run": run, "programs": programs, "data": data}
    server["options"], server["log"] = options, folder / "log"
    yield server
    run(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")


@pytest.fixture(autouse=True)
def key_file(monkeypatch, tmp_path):
    """The keys of a trial on a server must be named; here they lie in the folder of the test."""
    usual = addresses.key_path
    here = tmp_path / "server.keys"
    monkeypatch.setattr(database, "key_path", lambda file, keys: usual(file, keys) if file or keys else here)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request, tmp_path):
    if request.param == "sqlite":
        return tmp_path / "trial.db"
    server = request.getfixturevalue("postgres")
    return emptied(server)


def emptied(server):
    """Return the address of the server, without the trial of an earlier test: its keys are gone."""
    engine = sqlalchemy.create_engine(server["url"].replace("postgresql", "postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("DROP TABLE IF EXISTS events, snapshots"))
    engine.dispose()
    return server["url"]


def test_a_database_gives_back_what_it_was_given(url):
    store = Database(url)
    at = Desk(trial(), store, clock=Clock())
    Trialist(at, seed=0, overlapping=3).play(12)
    at.snapshot()
    before, number = digest(at.state), at.state.number
    store.close()
    again = Database(url, writing=False)
    found = replay(trial(), again.read())
    assert (digest(found.state), found.state.number, found.differences) == (before, number, [])
    again.close()
    store = Database(url)
    assert digest(Desk(trial(), store, clock=Clock()).state) == before
    store.close()


@pytest.mark.slow
def test_a_copy_is_restored_to_a_server_and_goes_on_there(postgres, tmp_path):
    with contextlib.closing(Database(tmp_path / "trial.db")) as store:
        at = Desk(trial(), store, clock=Clock())
        Trialist(at, seed=0, overlapping=3).play(6)
        before, head = digest(at.state), at.chain.head
    url, keys = emptied(postgres), tmp_path / "trial.keys"
    command = ["restore", str(tmp_path / "trial.db"), url, "--keys", str(keys), "--expect", head]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "Equal to the log, bit for bit." in done.output
    assert CliRunner().invoke(app, command).exit_code == 2  # there is a log already
    with contextlib.closing(Database(url, keys=keys)) as store:
        at = Desk(trial(), store, clock=Clock(), new=False)
        assert digest(at.state) == before
        Trialist(at, seed=1).play(1)
        assert replay(at.trial, store.read()).differences == []


def test_a_second_writer_is_refused_and_a_reader_is_not(url):
    first = Database(url)
    with pytest.raises(InUseError, match="in use by another process"):
        Database(url)
    Database(url, writing=False).close()
    first.close()
    Database(url).close()


def test_a_second_writer_by_a_symbolic_link_is_refused(tmp_path):
    first = Database(tmp_path / "trial.db")
    (tmp_path / "other.db").symlink_to(tmp_path / "trial.db")
    with pytest.raises(InUseError, match="in use by another process"):
        Database(tmp_path / "other.db")
    first.close()
    Database(tmp_path / "other.db").close()


def test_ten_thousand_retries_of_a_hundred_decisions_are_a_hundred_decisions(url):
    """Fifty clients ask again and again, all at once; every key has one answer, and every step one action."""
    store = Database(url)
    at = Desk(trial(), store, clock=Clock())
    episodes = [
        json.loads(at.call("open", {"person": f"p{number}", "context": person(number)}).text)["episode"]
        for number in range(25)
    ]
    service = Service(at)
    wanted = [(episode, step) for episode in episodes for step in range(4)]
    answers = {pair: set() for pair in wanted}

    def client(turn):
        for place in range(200):
            episode, step = wanted[(place * 37 + turn) % 100]
            body = {"episode": episode, "step": step, "state": "took it"}
            asked = at.prepare("decide", body, f"{episode}-{step}")
            answers[episode, step].add(service.submit(asked).result(60).text)

    threads = [threading.Thread(target=client, args=(turn,)) for turn in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    service.end()
    assert {len(found) for found in answers.values()} == {1}
    assert sum(event.kind == "decided" for event in store.read()) == 100
    store.close()


@pytest.mark.slow
def test_a_server_that_goes_away_and_comes_back(postgres):
    """Calls fail while it is gone; nothing that was acknowledged is lost, and the same key is answered once."""
    store = Database(emptied(postgres))
    at = Desk(trial(), store, clock=Clock())
    Trialist(at, seed=1).play(3)
    kept, run, control = at.state.number, postgres["run"], postgres["programs"] / "pg_ctl"
    batch = [at.prepare("open", {"person": "x", "context": person(1)}, "key")]
    run(control, "-D", postgres["data"], "-m", "immediate", "-w", "stop")
    for _ in range(2):
        with pytest.raises(StoreError):
            at.answer(batch)
    run(control, "-D", postgres["data"], "-o", postgres["options"], "-l", postgres["log"], "-w", "start", timeout=60)
    [answer] = at.answer(batch)
    assert at.answer(batch) == [answer]
    assert [event.kind for event in store.read(kept)] == ["started", "opened"]
    assert not replay(trial(), store.read()).differences
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["synchronous_commit", "fsync", "full_page_writes"])
def test_a_server_that_may_lose_what_was_acknowledged_is_refused(postgres, name):
    run, programs = postgres["run"], postgres["programs"]

    def restart(options):
        control = (programs / "pg_ctl", "-D", postgres["data"], "-l", postgres["log"], "-w")
        run(*control, "-o", options, "-m", "fast", "restart", timeout=60)

    restart(f"{postgres['options']} -c {name}=off")
    try:
        with pytest.raises(StoreError, match=f"PostgreSQL has {name} = off"):
            Database(postgres["url"])
        Database(postgres["url"], writing=False).close()
    finally:
        restart(postgres["options"])
    Database(postgres["url"]).close()


@pytest.mark.slow
def test_a_lock_that_a_pooler_does_not_hold_is_noticed_before_anything_is_kept(postgres):
    """In transaction mode the next transaction is another session, which does not hold the lock."""
    store = Database(emptied(postgres))
    at = Desk(trial(), store, clock=Clock())
    store._connection.execute(sqlalchemy.text("SELECT pg_advisory_unlock_all()"))
    store._connection.commit()
    number = at.state.number
    with pytest.raises(StoreError, match="does not hold the lock"):
        at.call("open", {"person": "pooled", "context": person(1)}, "pooled")
    assert [event.number for event in store_of(postgres).read()][-1] == number
    store.close()


def store_of(postgres):
    return Database(postgres["url"], writing=False)


@pytest.mark.parametrize("wrong", ["mysql://x/y", "://", "sqlite://"])
def test_a_url_of_another_kind_is_refused(wrong):
    with pytest.raises(ValueError, match="`url` must be a file"):
        Database(wrong)


def test_a_database_of_something_else_is_refused(tmp_path):
    (tmp_path / "text").write_text("no database, but quite a long text that is certainly not one" * 20)
    with pytest.raises(StoreError, match="cannot be opened"):
        Database(tmp_path / "text")
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path / 'other.db'}")
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE events (number INTEGER)"))
    engine.dispose()  # its pool keeps the connection open
    with pytest.raises(StoreError, match="must have a table events with the columns"):
        Database(tmp_path / "other.db")


def test_another_thread_can_open_the_database_again(tmp_path):
    """The service's thread does after a failure; a second instance is refused before and after."""
    store = Database(tmp_path / "trial.db")
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        thread.submit(store.reopen).result()
    with pytest.raises(InUseError, match="in use by another process"):
        Database(tmp_path / "trial.db")
    store.close()
    Database(tmp_path / "trial.db").close()


def test_a_full_disk_loses_nothing(tmp_path):
    """Calls fail while it is full; what was acknowledged stays, and the same keys are answered once there is room."""
    store = Database(tmp_path / "trial.db")
    at = Desk(trial(), store, clock=Clock())
    pages = store._connection.exec_driver_sql("PRAGMA page_count").scalar()
    store._connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 10}")
    calls = [at.prepare("open", {"person": f"p{n}", "context": person(n)}, f"key-{n}") for n in range(60)]
    told = {}

    def ask_all():
        for asked in calls:
            told[asked.key] = at.answer([asked])[0].text

    with pytest.raises(StoreError, match="full"):
        ask_all()
    assert told
    failed = [calls[len(told)]]
    again = at.answer(failed)[0].text
    kept = {event.key: event.answer for event in store.read() if event.key}
    assert kept == {store.keys.mark("key", key): text for key, text in {**told, failed[0].key: again}.items()}
    assert not replay(trial(), store.read()).differences
    store.close()


@pytest.mark.parametrize("url", [":memory:", "trial.db"])
def test_a_reader_in_another_thread_does_not_take_back_what_is_being_written(tmp_path, monkeypatch, url):
    store, reading, written = Database(tmp_path / url if url != ":memory:" else url), threading.Event(), []
    at = Desk(trial(), store, clock=Clock())

    def slow(before, row):  # between the rows and their commit
        reading.set()
        written.append(reader.is_alive() and not reader.join(0.3))
        return link(before, row)

    reader = threading.Thread(target=lambda: reading.wait() and list(store.read()))
    monkeypatch.setattr(database, "link", slow)
    reader.start()
    at.call("open", {"person": "p1", "context": person(1)})
    reader.join()
    assert written
    assert [event.kind for event in store.read()] == ["founded", "started", "opened"]
    store.close()
