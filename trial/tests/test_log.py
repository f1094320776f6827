"""The log's own promises, besides those of the desk."""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import logging
import platform
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy

from omg_trial.log import database
from omg_trial.log import machine as machines
from omg_trial.log.addresses import parse_url
from omg_trial.log.database import DamagedLogError, Database, InUseError, Snapshot, StoreError
from omg_trial.log.events import FIRST_HASH, BrokenChainError, Chain, Event, canonical, ending, link, verified
from omg_trial.log.traces import log_discreetly, trace
from trial.tests.trials import Trialist, desk


def test_rows_are_the_same_whatever_is_read_at_a_time():
    at = desk()
    Trialist(at, seed=0).play(2)
    whole = list(at.store.rows())
    assert [row[0] for row in whole] == list(range(1, at.state.number + 1))
    for fetched in (1, 2, 7, len(whole)):
        assert list(at.store.rows(together=fetched)) == whole
        assert list(at.store.rows(3, fetched)) == whole[3:]


def test_to_forget_somebody_deletes_the_snapshot_that_has_their_context():
    store = Database(":memory:")
    store.found()
    store.keys.seal({"person": "p1", "context": "alone"})
    store.keep(Snapshot(1, FIRST_HASH, b"x"))
    assert store.forget(["#nobody"]) is False
    assert store.snapshot() is not None
    assert store.forget([store.keys.alias("p1")]) is True
    assert store.snapshot() is None
    assert store.forget([store.keys.alias("p1")]) is False


def test_a_database_that_was_closed_says_so():
    store = Database(":memory:")
    for _ in range(2):
        store.close()
        with pytest.raises(StoreError, match="the database is closed"):
            store.snapshot()


def test_a_log_is_named_by_a_file_or_a_url(tmp_path):
    file = tmp_path / "trial.db"
    made = parse_url(file)
    assert (made.drivername, made.database) == ("sqlite", str(file))
    assert parse_url(str(file)) == parse_url(f"sqlite:///{file}") == made
    assert parse_url("trial.db").database == str(Path("trial.db").absolute())
    server = parse_url("postgresql://somebody@example.org/trial")
    assert server.render_as_string() == "postgresql+psycopg://somebody@example.org/trial"


def test_a_snapshot_is_there_after_a_restart(tmp_path):
    for number in (1, 2, 1):  # after a restored backup the next one is an earlier one
        with contextlib.closing(Database(tmp_path / "trial.db")) as store:
            store.keep(Snapshot(number, FIRST_HASH, b"x"))
        with contextlib.closing(Database(tmp_path / "trial.db", writing=False)) as reader:
            assert reader.snapshot() == Snapshot(number, FIRST_HASH, b"x")


@pytest.mark.parametrize("wrong", ["text", "disk", "table"])
def test_a_database_that_cannot_be_opened_is_let_go(tmp_path, monkeypatch, wrong):
    """When somebody has put the right file back, another service can use it, while the first one is still there."""
    file = tmp_path / "trial.db"
    first = Database(file)
    first.close()
    right = file.read_bytes()
    if wrong == "text":
        file.write_bytes(b"no database, but a text that is long enough to be taken for one" * 100)
    elif wrong == "disk":

        def fails(_):
            raise OSError("the disk fails")

        monkeypatch.setattr(database, "_check", fails)
    else:
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.execute("ALTER TABLE snapshots RENAME COLUMN content TO other")
    for _ in range(2):
        with pytest.raises(StoreError, match=r"cannot be opened|must have a table"):
            first.reopen()
    with pytest.raises(StoreError, match="the database is closed"):
        first.snapshot()
    file.write_bytes(right)
    monkeypatch.undo()
    Database(file).close()


def test_a_key_file_is_that_of_one_service_from_the_moment_it_is_made(tmp_path):
    with contextlib.closing(Database(tmp_path / "one.db")) as store:
        store.found()
        assert {each.stat().st_mode & 0o777 for each in tmp_path.glob("*.lock")} == {0o600}
        with pytest.raises(InUseError, match=r"the key file .* is in use"):
            Database(tmp_path / "two.db", keys=tmp_path / "one.keys")
    Database(tmp_path / "two.db", keys=tmp_path / "one.keys").close()


def test_a_key_file_that_cannot_be_written_is_a_failure_of_the_store(tmp_path):
    store = Database(tmp_path / "one.db", keys=tmp_path / "missing" / "one.keys")
    with pytest.raises(StoreError, match="the key file cannot be written"):
        store.found()
    store.close()


def test_an_event_that_follows_none_of_the_log_is_not_kept():
    store = desk().store
    before = list(store.rows())
    event = Event(len(before) + 1, "2026-11-02T09:00:00.000000+00:00", "paused", "{}")
    for _ in range(2):
        with pytest.raises(DamagedLogError, match="it was replaced"):
            store.append([event.chained("ab" * 32)])
    store.keep(Snapshot(1, FIRST_HASH, b"x"))  # whatever is committed next
    assert list(store.rows()) == before


def test_the_keys_of_a_trial_on_a_server_must_be_named(monkeypatch):
    with contextlib.closing(Database(":memory:")) as store:
        monkeypatch.setattr(store, "_is_server", True)
        with pytest.raises(ValueError, match="name a file for the keys"):
            store.found()
        assert not store.keys.secret


def test_nothing_is_held_while_nobody_asks(tmp_path):
    """A transaction that a reader leaves open keeps a server from cleaning up, and a file from being written."""
    with contextlib.closing(Database(tmp_path / "trial.db")) as store:
        desk(store=store)
        with contextlib.closing(Database(tmp_path / "trial.db", writing=False)) as reader:
            for each in (store, reader):
                assert not each._connection.in_transaction()
                assert len(list(each.read())) == 2
                assert not each._connection.in_transaction()


def test_a_reader_waits_longer_than_a_writer(tmp_path):
    """Beside a service that writes all the time, a backup finds a gap seldom."""
    waits = []
    for writing in (True, False):
        with contextlib.closing(Database(tmp_path / "trial.db", writing=writing)) as store:
            waits.append(store._connection.exec_driver_sql("PRAGMA busy_timeout").scalar() / 1000)
    assert waits == [5, 60]


def test_a_failure_is_told_without_the_statement_that_has_the_data():
    """The text of an error of SQLAlchemy ends with the statement and its parameters, which may be about a person."""
    at = desk()
    at.store._connection.execute(sqlalchemy.text("DROP TABLE snapshots"))
    with pytest.raises(StoreError) as caught:
        at.store.keep(Snapshot(1, FIRST_HASH, b"secret"))
    assert str(caught.value) == "the database does not answer: OperationalError: no such table: snapshots"
    with pytest.raises(StoreError, match="the database is closed"):  # what has failed is not asked again
        at.store.snapshot()
    assert database._reason(OSError()) == "OSError"
    assert database._reason(OSError("no room\nfor a secret")) == "OSError: no room"


def test_an_empty_log_ends_where_it_should_if_nothing_is_expected():
    assert list(ending([])) == []
    with pytest.raises(ValueError, match="the log ends with event 0, but there was an event 1"):
        list(ending([], least=1))


def test_a_log_ends_with_the_event_that_is_expected_or_after_it():
    at = desk()
    Trialist(at, seed=0).play(1)
    events = list(at.store.read())
    for event in events:
        assert list(ending(events, least=event.number, expect=event.mark)) == events
        with pytest.raises(BrokenChainError, match=f"event {event.number} is another one"):
            list(ending(events, expect=f"{event.number}:{'ab' * 32}"))
        with pytest.raises(BrokenChainError, match="its end was cut"):
            list(ending(events[: event.number - 1], expect=event.mark))
    with pytest.raises(ValueError, match="give the head of a log"):
        list(ending(events, expect="the last"))


def test_the_hash_of_an_event_is_that_of_its_canonical_text():
    texts = [("key", None), ("request", None), ('ans"wer', None)]
    for key, request, answer in itertools.product(*texts):
        row = (7, "2026-11-02T09:00:00.000000+00:00", "opened", canonical({"person": "Zoë"}), key, request, answer, "")
        said = [FIRST_HASH, *row[:3], json.loads(row[3]), *row[4:7]]
        assert link(FIRST_HASH, row) == hashlib.sha256(canonical(said).encode()).hexdigest()


def test_what_somebody_without_the_key_file_has_written_is_refused():
    at = desk()
    Trialist(at, seed=0).play(1)
    before = FIRST_HASH
    for number, event in enumerate(at.store.read()):
        forged = dataclasses.replace(event, time=event.time.replace("2026", "2027")).chained(before)
        assert forged.hash != event.hash
        with pytest.raises(BrokenChainError, match="is not what the service has written"):
            list(verified([forged], before, number))
        with pytest.raises(BrokenChainError, match="missing or out of order"):
            list(verified([event], before, number + 1))
        before = event.hash


def test_a_chain_has_the_marks_of_its_events_and_no_others():
    at = desk()
    Trialist(at, seed=0).play(8)
    chain = Chain(at.store.rows())
    assert len(chain) == at.state.number > 32
    assert chain.has(f"0:{FIRST_HASH}")
    for event in at.store.read():
        assert chain.has(event.mark)
        assert not chain.has(f"{event.number - 1}:{event.hash}")
        assert not chain.has(f"{event.number + len(chain)}:{event.hash}")


CPUINFO = """processor\t: 0
model\t\t: 85
cpu family\t: 6
model name\t: A processor: the first

processor\t: 1
model\t\t: 106
"""


@pytest.mark.parametrize(
    ("found", "told"), [(CPUINFO, "A processor: the first 6 85"), ("processor : 0\n\nno more", "by its kind")]
)
def test_a_machine_is_known_by_its_processor_and_by_what_code_is_compiled_for(monkeypatch, found, told):
    """By its name, family and model, as one name may be that of two generations; else as Python knows it."""
    kind = platform.machine()
    monkeypatch.setattr(machines.Path, "read_text", lambda path, **_: {Path("/proc/cpuinfo"): found}[path])
    monkeypatch.setattr(platform, "processor", lambda: "by its kind")
    for name, compiled in (("", "this processor"), ("generic", "generic")):
        monkeypatch.setenv("NUMBA_CPU_NAME", name)
        described = machines.machine.__wrapped__()
        assert (described["processor"], described["compiled for"]) == (f"{kind} {told}", compiled)


def test_a_machine_without_a_list_of_processors_is_one(monkeypatch):
    def missing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(machines.Path, "read_text", missing)
    monkeypatch.setattr(platform, "processor", lambda: "by its kind")
    assert machines.machine.__wrapped__()["processor"] == f"{platform.machine()} by its kind"


def test_what_is_no_event_is_refused():
    event = Event(1, "2026-11-02T09:00:00.000000+00:00", "founded", canonical({})).chained(FIRST_HASH)
    with pytest.raises(ValueError, match="`events`"):
        list(verified([event, 3]))
    with pytest.raises(ValueError, match="`events` must be an Iterable, got int"):
        list(verified(3))


def test_a_trace_names_the_place_and_not_what_was_said():
    try:
        raise KeyError("a secret")
    except KeyError as error:
        told = trace(error)
    assert told.startswith("KeyError (test_log.py:")
    assert told.endswith(" in test_a_trace_names_the_place_and_not_what_was_said)")
    assert "secret" not in told


def test_the_discreet_log_takes_the_place_of_any_other(monkeypatch):
    before = logging.Handler()
    root = logging.Logger("root")
    root.addHandler(before)
    monkeypatch.setattr(logging, "root", root)
    log_discreetly()
    [handler] = root.handlers
    assert handler is not before
    record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "it failed", (), (KeyError, KeyError("a secret"), None))
    assert handler.format(record).endswith("ERROR it failed\n(KeyError)")
    assert handler.formatter.formatException((None, None, None)) == ""  # nothing was raised
