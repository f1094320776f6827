"""The log's own promises, besides those of the desk."""

import logging

import pytest

from omg_trial.log.database import Database, Snapshot
from omg_trial.log.events import FIRST_HASH, Event, canonical, verified
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


def test_what_is_no_event_is_refused():
    event = Event(1, "2026-11-02T09:00:00.000000+00:00", "founded", canonical({})).chained(FIRST_HASH)
    with pytest.raises(ValueError, match="`events`"):
        list(verified([event, 3]))


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
