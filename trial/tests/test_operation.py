"""Operation: newer software, other machines, copies, and what is told to whom."""

import contextlib
import io
import shutil
import sqlite3

import pytest
from typer.testing import CliRunner

from omg_trial import desk as desks
from omg_trial import replay as replays
from omg_trial.cli import app
from omg_trial.desk import Desk
from omg_trial.log.database import Database, InUseError
from omg_trial.log.events import BrokenChainError
from omg_trial.operation import copies
from omg_trial.operation.copies import Follower, SourceError, copy_log
from omg_trial.replay import replay
from omg_trial.tokens import Tokens
from omg_trial.web.server import serving
from trial.tests.trials import Clock, Trialist, desk, person, trial


@pytest.fixture
def played():
    """A trial with a model and a plan by it."""
    at = desk(store=Database(":memory:"), clock=Clock())
    at.clock.forward(seconds=1)
    Trialist(at, seed=0).play(3)
    at.call("open", {"person": "last", "context": person(1)})
    return at


def again(at):
    at.clock.forward(seconds=1)
    return Desk(at.trial, at.store, clock=at.clock)


def shifted(monkeypatch, amount):
    """Make every plan differ in one number."""
    plan = replays.make_plan

    def other(*given):
        made = plan(*given)
        policy = made.policy.copy()
        policy[-1, -1, -1] += amount
        return made._replace(policy=policy)

    monkeypatch.setattr(replays, "make_plan", other)


@pytest.mark.parametrize(("elsewhere", "off", "fine"), [(0, 0.0, 1), (0, 1e-15, 0), (1, 1e-13, 1), (1, 1e-6, 0)])
def test_a_start_plans_again_to_the_bit_or_to_what_another_processor_may_differ_by(
    played, monkeypatch, elsewhere, off, fine
):
    if elsewhere:
        monkeypatch.setattr(replays, "machine", lambda: {"processor": "another"})
        monkeypatch.setattr(desks, "machine", lambda: {"processor": "another"})
    shifted(monkeypatch, off)
    if not fine:
        number = played.state.number
        with pytest.raises(ValueError, match=r"plans in another way: a probability of episode .*`omg-trial upgrade`"):
            again(played)
        assert len(list(played.store.read())) == number
        return
    at = again(played)
    again(at)  # plans of the other machine are not held against the bits of this one
    found = replay(at.trial, at.store.read())
    assert (found.differences, found.bits) == ([], not elsewhere)
    assert found.largest == (pytest.approx(off, rel=0.1) if elsewhere else 0.0)


def test_newer_software_must_learn_the_same_model(played, monkeypatch):
    monkeypatch.setattr(desks, "provenance", lambda: {"version": "9", "commit": "new", "versions": {}})
    again(played)
    monkeypatch.setattr(replays, "model_digest", lambda _: "another")
    again(played)  # the same software is not asked again
    monkeypatch.setattr(desks, "provenance", lambda: {"version": "10", "commit": "newer", "versions": {}})
    with pytest.raises(ValueError, match=r"another model of version 3; go on with .* \(version 9, commit new\)"):
        again(played)


def test_a_person_who_has_withdrawn_is_no_reason_to_refuse(played):
    learned = played.state.version.dataset[0].person
    played.call("withdraw", {"person": learned})
    again(played)


# Copies.


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "trial.db"
    with contextlib.closing(Database(path)) as store:
        Trialist(desk(store=store), seed=0).play(3)
    return path


def called(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def rows(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM events ORDER BY number").fetchall()


def change(path, statement):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def grow(path, people):
    with contextlib.closing(Database(path)) as store:
        at = desk(store=store)
        for number in range(people):
            at.call("open", {"person": f"n{number}-{at.state.number}", "context": person(number)})


def test_a_follower_catches_up_and_keeps_what_it_has(database, tmp_path):
    folder = tmp_path / "copy"
    assert called("follow", database, folder, "--once").exit_code == 0
    grow(database, 5)
    done = called("follow", database, folder, "--once")
    assert done.exit_code == 0, done.output
    assert rows(folder / "log.db") == rows(database)
    assert called("verify", folder / "log.db", "--expect", done.output.split()[-1]).exit_code == 0
    before = rows(database)
    # The log loses its end, and goes on from there: the copy does not follow.
    change(database, "DELETE FROM events WHERE number > 20")
    for _ in range(2):
        done = called("follow", database, folder, "--once")
        assert done.exit_code == 1
        assert "has no longer the event" in done.output
        assert rows(folder / "log.db") == before
        grow(database, 12)


def test_a_follower_takes_in_no_event_that_was_changed(database, tmp_path):
    with contextlib.closing(Follower(str(database), tmp_path / "copy")) as follower:
        follower.catch_up()
        head = follower.head
        grow(database, 3)
        change(database, "UPDATE events SET answer = '{}' WHERE number = (SELECT max(number) FROM events)")
        with pytest.raises(BrokenChainError, match="was changed after it was written"):
            follower.catch_up()
        assert follower.head == head


def test_a_follower_pulls_over_http_with_the_token_of_an_analyst(tmp_path):
    tokens = Tokens(tmp_path / "tokens")
    analyst, phone = tokens.add("analyst", "follower"), tokens.add("app", "phone")
    with serving(trial(), tmp_path / "x.db", tokens.path) as address:
        with contextlib.closing(Follower(address, tmp_path / "copy", analyst)) as follower:
            assert follower.catch_up() == len(rows(tmp_path / "x.db"))
            assert follower.catch_up() == 0
        other = Follower(address, tmp_path / "copy", phone)
        with contextlib.closing(other), pytest.raises(SourceError, match="403"):
            other.catch_up()
    other = Follower(address, tmp_path / "copy", analyst)
    with contextlib.closing(other), pytest.raises(SourceError, match="cannot be read"):
        other.catch_up()
    assert rows(tmp_path / "copy/log.db") == rows(tmp_path / "x.db")


@pytest.mark.parametrize("line", ["[" * 100_000, "{}", "[1]", '[1, "t", "opened", "{}", "k", "r", "a", "h", "a ring"]'])
def test_a_service_that_gives_a_follower_something_else_is_named(tmp_path, monkeypatch, line):
    class Opener:
        open = staticmethod(lambda *_, **__: io.BytesIO(line.encode()))

    monkeypatch.setattr(copies, "no_redirects", Opener)
    wrong = pytest.raises(SourceError, match=r"the service cannot be read: (RecursionError|ValueError)")
    with contextlib.closing(Follower("http://service", tmp_path, "token")) as follower, wrong:
        follower.catch_up()


def test_a_restored_copy_is_computed_again_and_can_be_served(database, tmp_path):
    assert called("backup", database, tmp_path / "copy.db").exit_code == 0
    assert called("restore", tmp_path / "copy.db", tmp_path / "new.db").exit_code == 2
    assert not (tmp_path / "new.db").exists()  # without the keys nothing is begun
    shutil.copy(database.with_suffix(".keys"), tmp_path / "new.keys")
    done = called("restore", tmp_path / "copy.db", tmp_path / "new.db")
    assert done.exit_code == 0, done.output
    assert "Equal to the log, bit for bit.\nReady: omg-trial serve" in done.output
    assert rows(tmp_path / "new.db") == rows(database)
    with contextlib.closing(Database(tmp_path / "new.db")) as store:
        desk(store=store).call("open", {"person": "next", "context": person(1)})
    assert called("restore", tmp_path / "copy.db", tmp_path / "new.db").exit_code == 2  # nothing is overwritten
    change(tmp_path / "copy.db", "DELETE FROM events WHERE number = 9")
    assert (
        called("restore", tmp_path / "copy.db", tmp_path / "other.db", "--keys", tmp_path / "new.keys").exit_code == 1
    )
    assert not (tmp_path / "other.db").exists()


def test_a_copy_that_is_served_beside_the_trial_needs_keys_of_its_own(tmp_path):
    """A drill that writes to the trial's own keys would stop the trial, or destroy a key that it needs."""
    file, copy, keys = (tmp_path / f"trial.{ending}" for ending in ("db", "copy", "keys"))
    for new in (True, False):
        with contextlib.closing(Database(file)) as store:
            at = Desk(trial(), store, new=new)
            at.call("enrol", {"person": "anna"})
            copy.unlink(missing_ok=True)
            copy_log(str(file), copy)
            with pytest.raises(InUseError, match=r"the key file .* is in use by another process"):
                Database(copy, keys=keys)
            with contextlib.closing(Database(copy, keys=keys, writing=False)) as drill:
                assert [event.body["person"] for event in drill.read() if event.kind == "enrolled"][-1] == "anna"
            at.call("enrol", {"person": "berta"})
    Database(copy, keys=keys).close()  # nobody serves the trial


def test_an_upgrade_is_refused_if_the_software_computes_something_else(database, monkeypatch):
    done = called("upgrade", database)
    assert done.exit_code == 0, done.output
    assert "Ready: stop the service" in done.output
    shifted(monkeypatch, 1e-9)
    done = called("upgrade", database)
    assert done.exit_code == 1
    assert "another policy" in done.output
    assert "Ready" not in done.output
