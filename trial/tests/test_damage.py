"""A log that is not the one that was written is not served: not from its snapshot, not for a retry, not by one byte."""

import contextlib
import json
import shutil
import sqlite3

import numpy as np
import pytest

from omg_trial.desk import Desk
from omg_trial.learning import model_digest
from omg_trial.log.database import Database, Snapshot, StoreError
from omg_trial.log.events import BrokenChainError
from omg_trial.replay import replay
from omg_trial.service import Service
from omg_trial.snapshots import pack_state, unpack_state
from omg_trial.watching.checks import findings
from omg_trial.watching.incidents import tick
from omg_trial.watching.process import Process
from omg_trial.watching.view import TrialView
from trial.tests.trials import Clock, Trialist, digest, person, trial


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A trial with a snapshot in the middle: its file, its last event, and its state."""
    path = tmp_path_factory.mktemp("played") / "trial.db"
    with contextlib.closing(Database(path)) as store:
        at = Desk(trial(), store, clock=Clock())
        player = Trialist(at, seed=0, overlapping=3)
        player.play(8)
        at.snapshot()
        kept = at.state.number
        player.play(8)
        assert kept + 20 < at.state.number
    return path, kept, at.state


@pytest.fixture
def path(played, tmp_path):
    shutil.copy(played[0].with_suffix(".keys"), tmp_path / "trial.keys")
    return shutil.copy(played[0], tmp_path / "trial.db")


def start(path):
    with contextlib.closing(Database(path)) as store:
        return Desk(trial(), store, clock=Clock()).state


def change(path, statement, *values):
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        assert file.execute(statement, values).rowcount > 0


def test_an_untouched_log_is_served(path, played):
    assert digest(start(path)) == digest(played[2])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = replace(body, 'took it', 'x') WHERE number = 1",
        "UPDATE events SET answer = 'x' WHERE number = 6",
        "UPDATE events SET time = '2030' WHERE number = 7",
        "UPDATE events SET key = 'x' WHERE number = 7",
        "UPDATE events SET request = NULL WHERE number = 7",
        "UPDATE events SET time = x'00ff' WHERE number = 7",
        "UPDATE events SET hash = hash || '0' WHERE number = 8",
        "UPDATE events SET kind = 'note' WHERE number = 9",
        "DELETE FROM events WHERE number = 4",
        "DELETE FROM events WHERE number < 10",
        "DELETE FROM events WHERE number > 5",
        "DELETE FROM events",
    ],
)
def test_a_row_before_the_snapshot_that_was_changed_is_found(path, statement):
    change(path, statement)
    with pytest.raises(BrokenChainError):
        start(path)


def test_a_snapshot_that_was_changed_is_not_believed(path, played):
    """Its digest is in the log: a state with another reward, packed as ours are, is left alone."""
    with contextlib.closing(Database(path)) as store:
        state, _ = unpack_state(trial(), store.keys.unseal_snapshot(store.snapshot().content))
        record = next(record for record in state.episodes.values() if record.outcomes)
        step = next(iter(record.outcomes))
        record.outcomes[step] = record.outcomes[step]._replace(reward=0.123)
        content = store.keys.seal_snapshot(pack_state(state, trial().agent()))
        store.keys.save()
        store.keep(Snapshot(state.number, state.hash, content))
    assert digest(start(path)) == digest(played[2])


@pytest.mark.parametrize("count", [24, pytest.param(240, marks=pytest.mark.slow)])
def test_a_single_byte_anywhere_is_refused_or_harmless(path, played, count):
    whole, draw = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for place in draw.integers(len(whole), size=count):
        damaged = bytearray(whole)
        damaged[place] ^= int(draw.integers(1, 256))
        path.write_bytes(damaged)
        try:
            assert digest(start(path)) == digest(played[2]), place
        except (BrokenChainError, StoreError):
            refused += 1
    assert refused > count / 12


@pytest.mark.parametrize("field", ["answer", "request"])
def test_a_stored_answer_is_verified_before_it_leaves(path, field):
    """A row that is changed while the service runs is not told to an app, and nothing is answered from then on."""
    with contextlib.closing(Database(path)) as store:
        at = Desk(trial(), store, clock=Clock())
        body = {"person": "new", "context": person(1)}
        told = at.call("open", body, "key")
        assert at.call("open", body, "key") == told
        change(
            path, f"UPDATE events SET {field} = replace({field}, '1', '2') WHERE key = ?", store.keys.mark("key", "key")
        )
        with pytest.raises(StoreError, match=r"event .* was changed after it was written"):
            at.call("open", body, "key")
        with pytest.raises(StoreError, match="was changed"):
            at.call("open", {**body, "person": "other"}, "another")
        assert json.loads(told.text)["episode"] == at.state.number


def test_a_call_that_was_answered_is_not_answered_again_because_its_key_was_lost(path):
    """The row is whole, but the database's index has lost the key: the file is damaged, and refused."""
    file = sqlite3.connect(path)
    root = file.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index' AND tbl_name = 'events'").fetchone()[0]
    size = file.execute("PRAGMA page_size").fetchone()[0]
    pages = file.execute("PRAGMA page_count").fetchone()[0]
    [key] = file.execute("SELECT key FROM events WHERE number = 5").fetchone()
    file.close()
    whole = bytearray(path.read_bytes())
    places = [at for at in range(len(whole)) if whole.startswith(key.encode(), at)]
    assert len(places) == 2, (root, size, pages)  # in the table, and in the index
    found = 0
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        try:
            start(path)
        except (BrokenChainError, StoreError):
            found += 1
    assert found == 2


def test_a_service_with_a_damaged_log_refuses_everything_and_is_red(path):
    with contextlib.closing(Database(path)) as store:
        at = Desk(trial(), store, clock=Clock())
        service, body = Service(at), {"person": "new", "context": person(1)}
        service.submit(at.prepare("open", body, "key")).result()
        change(path, "UPDATE events SET answer = '{}' WHERE key = ?", store.keys.mark("key", "key"))
        for key in ("key", "another"):
            with pytest.raises(StoreError, match="was changed after it was written"):
                service.submit(at.prepare("open", body, key)).result()
        view = service.submit(lambda desk: TrialView.of(desk.trial, desk.state, desk.clock(), service.process)).result()
        [store_check] = [found for found in findings(view) if found.check == "store"]
        service.end()
    assert store_check.severity == "red"
    assert "was changed after it was written" in store_check.message


# A database that comes back as another one.


def opening(number):
    return {"person": f"new-{number}", "context": person(number)}


@pytest.mark.parametrize("body", ["'{'", "replace(body, '0.', '0.0')"])
def test_a_row_that_is_changed_while_the_service_runs_is_found_by_the_checks(path, body):
    """They read the log: by a row of somebody else they neither end nor reckon."""
    store = Database(path)
    at = Desk(trial(), store, clock=Clock())
    process = Process(at.clock)
    tick(lambda task: task(at), process)
    change(path, f"UPDATE events SET body = {body} WHERE kind = 'opened' AND number < 20")
    at.call("withdraw", {"person": next(iter(at.state.people))})  # the log is read again, as if they had not been there
    for _ in range(2):
        _, found, lost = tick(lambda task: task(at), process)
    [kept] = [each for each in found if each.check == "store"]
    assert (kept.severity, lost) == ("red", True)
    assert "was changed after it was written" in kept.message
    with pytest.raises(StoreError, match="was changed after it was written"):
        at.call("learn", {})
    store.close()


def test_a_database_that_comes_back_older_is_refused_for_good(path, tmp_path):
    """A failover to a replica that lags: what was acknowledged is not there, and would be decided again."""
    with contextlib.closing(Database(path)) as store:
        at = Desk(trial(), store, clock=Clock())
        at.call("open", opening(1), "one")
        older = shutil.copy(path, tmp_path / "older.db")
        told = at.call("open", opening(2), "two")
        last = at.state.number
        store.close()
        shutil.copy(older, path)
        for key, number in (("two", 2), ("three", 3), ("two", 2)):
            with pytest.raises(StoreError):
                at.call("open", opening(number), key)
        assert f"the service had written event {last}" in at.damage
        shutil.copy(older, path)
        with contextlib.closing(Database(path, writing=False)) as again:
            assert [event.answer for event in again.read() if event.answer == told.text] == []
            assert max(event.number for event in again.read()) == last - 1


def test_a_database_that_comes_back_with_events_of_somebody_else_is_refused(path, tmp_path):
    with contextlib.closing(Database(path)) as store:
        at = Desk(trial(), store, clock=Clock())
        at.call("open", opening(1), "one")
        store.close()
        with contextlib.closing(Database(path)) as other:
            Desk(trial(), other, clock=Clock()).call("open", opening(2), "two")
        for _ in range(3):
            with pytest.raises(StoreError):
                at.call("open", opening(3), "three")
        assert at.damage is not None


class Breaking(Database):
    """Its connection breaks once: before a batch is kept, or later, when nobody hears that it was."""

    breaks = ""

    def append(self, events):
        how, self.breaks = self.breaks, ""
        if how != "before":
            super().append(events)
        if how:
            self.close()
            raise StoreError("the connection broke")


@pytest.mark.parametrize("kept", [True, False])
def test_a_batch_that_was_kept_or_not_before_the_connection_broke_is_gone_on_from(path, kept):
    """Whether the last transaction was kept cannot be known before the database is back: both are fine."""

    with contextlib.closing(Breaking(path)) as store:
        at = Desk(trial(), store, clock=Clock())
        at.call("open", opening(1), "one")
        store.breaks = "later" if kept else "before"
        with pytest.raises(StoreError, match="broke"):
            at.call("open", opening(2), "two")
        told = at.call("open", opening(2), "two")
        assert at.damage is None
        assert at.call("open", opening(2), "two") == told
        assert [event.key for event in store.read() if event.kind == "opened"].count(store.keys.mark("key", "two")) == 1


def test_a_model_that_was_published_although_nobody_heard_of_it_is_decided_with(path):
    with contextlib.closing(Breaking(path)) as store:
        at = Desk(trial(), store, clock=Clock())
        before = model_digest(at.agent)
        at.call("withdraw", {"person": at.state.dataset()[0][0].person})
        at.call("learn", {})
        store.breaks = "later"
        with pytest.raises(StoreError, match="broke"):
            at.learn_here()
        assert model_digest(at.agent) == before
        assert json.loads(at.call("open", opening(1)).text)["version"] == at.state.version.number > 0
        assert model_digest(at.agent) == at.state.version.model != before
        assert replay(at.trial, store.read()).differences == []


def test_half_of_a_batch_is_damage(path):
    """A transaction is kept as a whole or not: whatever has kept a part of it keeps no promises."""

    class Halving(Database):
        halves = False

        def append(self, events):
            super().append(events[: len(events) // 2] if self.halves else events)
            if self.halves:
                self.close()
                raise StoreError("the connection broke")

    with contextlib.closing(Halving(path)) as store:
        at = Desk(trial(), store, clock=Clock())
        store.halves = True
        with pytest.raises(StoreError, match="broke"):
            at.answer([at.prepare("open", opening(number)) for number in range(2)])
        refused_from_now_on(at, "perhaps a replica lags, or somebody else writes to it")


def test_a_call_that_was_acknowledged_is_answered_again_while_the_disk_is_full(path):
    """Its answer is there, and needs no room; what is new waits until there is some."""

    class Full(Database):
        full = False

        def append(self, events):
            if self.full:
                self.close()
                raise StoreError("the disk is full")
            super().append(events)

    with contextlib.closing(Full(path)) as store:
        at = Desk(trial(), store, clock=Clock())
        told = at.call("open", opening(1), "one")
        store.full = True
        for _ in range(2):
            with pytest.raises(StoreError, match="full"):
                at.call("open", opening(2), "two")
            assert at.call("open", opening(1), "one") == told
        store.full = False
        at.call("open", opening(2), "two")
        last = [event.kind for event in store.read()][-3:]
    assert last == ["opened", "started", "opened"]


def test_a_model_that_was_learned_while_the_store_was_gone_is_learned_again(path):
    with contextlib.closing(Database(path)) as store:
        at = Desk(trial(), store, clock=Clock())
        at.call("learn", {})
        task = at.state.learning
        lesson = at.trainer.learn(task)
        at.lost = True
        at.answer([])
        at.publish_model(task, lesson)
        assert at.state.learning is None
        assert at.learning_due()
        at.call("learn", {})
        at.learn_here()
        assert replay(at.trial, store.read()).differences == []


# A file that is replaced while the service runs.


def put_over(file, content, how):
    """As `cp` does, into the same file, or `mv`, by a new one."""
    target = file if how == "cp" else file.with_name("moved")
    with target.open("r+b" if how == "cp" else "wb") as opened:
        opened.write(content)
        opened.truncate()
    target.replace(file)


def refused_from_now_on(at, message):
    for key, number in (("three", 3), ("two", 2), ("three", 3)):
        with pytest.raises(StoreError, match=message):
            at.call("open", opening(number), key)
    assert message in at.damage


def test_an_older_database_that_is_copied_over_the_running_one_is_refused(path):
    with contextlib.closing(Database(path)) as store:
        at = Desk(trial(), store, clock=Clock())
        older = path.read_bytes()
        at.call("open", opening(2), "two")
        last = at.state.number
        put_over(path, older, "cp")
        refused_from_now_on(at, f"event {last}, which was written, is not in the database")
        assert max(event.number for event in store.read()) == last - 1


@pytest.mark.parametrize("how", ["cp", "mv"])
@pytest.mark.parametrize("which", ["of the start", "older", "with an erased key", "another trial's", "empty"])
def test_another_key_file_in_the_place_of_the_running_one_is_refused(path, tmp_path, which, how):
    keys, other = path.with_suffix(".keys"), tmp_path / "other"
    other.mkdir()
    with contextlib.closing(Database(path)) as store, contextlib.closing(Database(other / "trial.db")) as foreign:
        at = Desk(trial(), store, clock=Clock())
        contents = {"of the start": keys.read_bytes(), "empty": b""}
        at.call("open", opening(1), "one")
        contents["older"] = contents["with an erased key"] = keys.read_bytes()
        Desk(trial(), foreign, clock=Clock())
        contents["another trial's"] = (other / "trial.keys").read_bytes()
        if which == "with an erased key":
            at.call("erase", {"person": "new-1", "cause": "asked for"})
        else:
            at.call("enrol", {"person": "kept"})
        put_over(keys, contents[which], how)
        refused_from_now_on(at, "is not the one that was written")
        assert keys.read_bytes() == contents[which]


def test_a_key_that_was_kept_although_nobody_heard_of_it_is_no_damage(path, monkeypatch):
    """A write that fails may have been kept or not: the file with either is ours."""

    class Broken(sqlite3.Connection):
        def __exit__(self, *error):
            super().__exit__(*error)
            raise sqlite3.OperationalError("disk I/O error")

    connect = sqlite3.connect
    with contextlib.closing(Database(path)) as store:
        at = Desk(trial(), store, clock=Clock())
        for call in (lambda: at.call("open", opening(1), "one"), at.snapshot, at.snapshot):
            with monkeypatch.context() as patch:
                patch.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, **more, factory=Broken))
                patch.setattr(store, "reopen", lambda: None)
                with pytest.raises(StoreError, match="disk I/O error"):
                    call()
        at.call("open", opening(1), "one")
        at.snapshot()
        assert at.damage is None
    start(path)
