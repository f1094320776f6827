"""Keys and erasure: nothing of a person in the database, and nothing left of somebody who was erased."""

import contextlib
import json
import shutil
import sqlite3

import pytest
from typer.testing import CliRunner

from omg_trial import verify
from omg_trial.cli import app
from omg_trial.contract import Refusal
from omg_trial.desk import Desk
from omg_trial.export import decisions
from omg_trial.keys.ring import KeyFileError
from omg_trial.log.database import Database
from omg_trial.replay import replay
from omg_trial.tokens import Tokens
from trial.tests.trials import TEXT, Clock, Trialist, digest, trial

LEARNS = "[learning]\nafter_episodes = 3\n"
NAMES = TEXT.replace('"alone", "with others"', '"hermitage", "phalanstery"')


def called(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def bytes_of(path):
    return b"".join(each.read_bytes() for each in sorted(path.parent.glob(f"{path.name}*")))


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A trial of four people that has learned models, with a snapshot in the middle."""
    folder = tmp_path_factory.mktemp("played")
    with contextlib.closing(Database(folder / "trial.db")) as store:
        at = Desk(trial(LEARNS), store, clock=Clock())
        Trialist(at, seed=0, people=4, overlapping=2).play(8)
        at.snapshot()
        Trialist(at, seed=1, people=4, overlapping=2).play(6)
    return folder


@pytest.fixture
def path(played, tmp_path):
    for name in ("trial.db", "trial.keys"):
        shutil.copy(played / name, tmp_path / name)
    return tmp_path / "trial.db"


@contextlib.contextmanager
def begun(path, extra=LEARNS, **options):
    with contextlib.closing(Database(path, **options)) as store:
        yield Desk(trial(extra), store, clock=Clock())


def test_nothing_of_a_person_is_in_the_database(tmp_path):
    """Names, contexts, keys that an app has chosen, answers, snapshots: of every call that names a person."""
    path, who = tmp_path / "trial.db", "anna.karenina"
    with contextlib.closing(Database(path)) as store:
        at = Desk(trial(text=NAMES), store, clock=Clock())
        day = {"consent_from": "2026-10-17", "consent_to": "2027-03-19", "zone": "America/Anchorage"}
        at.call("enrol", {"person": who, "arm": None, "end": None, **day}, f"enrol-{who}")
        opening = {"person": who, "context": {"age": 73.25, "lives": "hermitage"}}
        told = at.call("open", {**opening, "occasion": "first"}, f"open-{who}")
        episode = json.loads(told.text)["episode"]
        at.call("decide", {"episode": episode, "step": 0, "state": "took it"}, f"decide-{who}")
        at.call("pause", {"person": who, "cause": "on holiday"}, f"pause-{who}")
        at.call("resume", {"person": who, "cause": "back"}, f"resume-{who}")
        at.snapshot()
        assert at.call("open", {**opening, "occasion": "first"}, f"open-{who}") == told
        at.call("withdraw", {"person": who}, f"withdraw-{who}")
        secret = store.keys.secret
    found = bytes_of(path)
    for text in (who, "73.25", "Anchorage", "2026-10-17", "2027-03-19", secret):
        assert text.encode() not in found, text
    assert found.count(b"hermitage") == TEXT.count("alone")  # in the trial file, which event 1 holds
    with contextlib.closing(sqlite3.connect(path.with_suffix(".keys"))) as keys:
        assert secret.encode() in dict(keys.execute("SELECT name, key FROM keys")).values()
    assert path.with_suffix(".keys").stat().st_mode & 0o077 == 0


def test_the_key_file_of_another_trial_and_one_that_was_changed_are_refused(path, tmp_path):
    keys = path.with_suffix(".keys")
    whole = keys.read_bytes()
    other = tmp_path / "other"
    other.mkdir()
    with contextlib.closing(Database(other / "trial.db")) as store:
        Desk(trial(LEARNS), store, clock=Clock())
    keys.write_bytes((other / "trial.keys").read_bytes())
    with pytest.raises(KeyFileError, match="is of another trial"), begun(path):
        pass
    keys.unlink()
    with pytest.raises(KeyFileError, match="there is no key file"), begun(path):
        pass
    assert not keys.exists()
    for statement in (
        "UPDATE keys SET key = zeroblob(32) WHERE name LIKE '~%'",
        "UPDATE keys SET key = CAST('x' || substr(CAST(key AS TEXT), 2) AS BLOB) WHERE name = 'secret'",
    ):
        keys.write_bytes(whole)
        with contextlib.closing(sqlite3.connect(keys)) as file, file:
            file.execute(statement)
        with pytest.raises(KeyFileError, match=r"damaged|another trial"), begun(path):
            pass
    keys.write_bytes(whole)
    with contextlib.closing(sqlite3.connect(keys)) as file, file:  # as an older copy would be
        file.execute("DELETE FROM keys WHERE name LIKE '~%' OR name = 'snapshot'")
    with pytest.raises(KeyFileError, match="give its newest copy"), begun(path):
        pass
    keys.write_bytes(whole)
    with pytest.raises(ValueError, match="has the keys of another trial"), begun(tmp_path / "new.db", keys=keys):
        pass


def test_an_erased_person_is_gone_and_all_else_is_there_to_the_bit(path, tmp_path):
    with begun(path) as at:
        before = decisions(at.trial, at.store.read())
        before_keys = path.with_suffix(".keys").read_bytes()
        alias, key = at.store.keys.alias("p1"), at.store.keys._keys[at.store.keys.alias("p1")]
        opening = {"person": "p1", "context": {"age": 40, "lives": "alone"}, "occasion": "retried"}
        told = at.call("open", opening, "open-1")
        assert at.call("open", opening, "open-1") == told
        at.call("erase", {"person": "p1", "cause": "asked to be forgotten"}, "erase-1")
        assert at.store.snapshot() is None
        with pytest.raises(Refusal, match="was erased") as refused:
            at.call("open", opening, "open-1")
        assert refused.value.status == 410
        with pytest.raises(Refusal, match="has withdrawn"):
            at.call("open", {"person": "p1", "context": {"age": 40}})
        with pytest.raises(Refusal, match="was erased"):
            at.call("erase", {"person": "p1", "cause": "asked twice"})
        assert at.call("erase", {"person": "p1", "cause": "asked to be forgotten"}, "erase-1").text
        assert at.learning_due()
        at.call("learn", {})
        at.learn_here()
        live = digest(at.state)
    assert key not in bytes_of(path.with_suffix(".keys")) + bytes_of(path)
    with begun(path) as at:  # folded anew, without the key
        assert at.state.erased == {alias}
        assert digest(at.state) == live
        assert "p1" not in at.state.of_person.keys() | at.state.people.keys() | at.state.withdrawn
        after = decisions(at.trial, at.store.read(), withdrawn=True)
        rest = before[before["person"] != "p1"].reset_index(drop=True)
        assert after.equals(rest)
        assert len(rest) < len(before)
        found = replay(at.trial, at.store.read())
        assert found.differences == []
        assert found.gone["policies"] > 0
        assert any(name.startswith("the model of version") for name in found.gone)
        assert found.known  # the last model was learned without them
        keys = verify.read_keys(str(at.store.keys.path))
        assert verify.verify([event.row for event in at.store.read()], keys=keys).problems == []
        at.snapshot()
    done = called("replay", path)
    assert done.exit_code == 0, done.output
    assert "Equal to the log" not in done.output
    assert "All else is equal to the log, bit for bit." in done.output
    assert called("export", path, "--out", tmp_path / "table.csv").exit_code == 0
    assert "1 who were erased" in (tmp_path / "table.md").read_text()
    path.with_suffix(".keys").write_bytes(before_keys)  # from a backup of the keys
    with contextlib.closing(Database(path, writing=False)) as store:
        assert store.keys.holds(alias)
        assert decisions(trial(LEARNS), store.read(), withdrawn=True).equals(rest)
    assert called("export", path, "--out", tmp_path / "table.csv").exit_code == 0
    assert "1 who were erased" in (tmp_path / "table.md").read_text()
    # The key is destroyed again at the next start.
    with begun(path) as at:
        assert not at.store.keys.holds(alias)


def test_the_command_erases_once_and_not_beside_a_service(path):
    with begun(path):
        assert "the trial is served" in called("erase", path, "p2", "--cause", "asked").output
    assert "say it without the person's name" in called("erase", path, "p2", "--cause", "P2 asked").output
    tokens = Tokens(path.with_suffix(".tokens"))
    phone, other = tokens.add("phone", "phone of p2", person="p2"), tokens.add("phone", "phone of p1", person="p1")
    done = called("erase", path, "p2", "--cause", "asked on p23, as in p2_b")  # other words
    assert done.exit_code == 0, done.output
    assert "was erased by event" in done.output
    assert (tokens.find(phone), tokens.find(other).role) == (None, "phone")
    assert "p2" not in tokens.path.read_text()
    tokens.path.unlink()
    assert "There is no token file here" in called("erase", path, "p3", "--cause", "asked").output
    assert called("erase", path, "p2", "--cause", "asked").exit_code == 2
    assert called("erase", path, "nobody", "--cause", "asked").exit_code == 2


def test_withdrawn_people_are_not_in_the_default_export(path):
    with begun(path) as at:
        at.call("withdraw", {"person": "p1"})
        table = decisions(at.trial, at.store.read())
        assert "p1" not in set(table["person"])
        assert "p1" in set(decisions(at.trial, at.store.read(), withdrawn=True)["person"])


def test_an_older_copy_of_the_log_does_not_bring_an_erased_person_back(path, tmp_path):
    """A disk is lost after an erasure, and the copy is older than that: the trial goes on, without the person."""
    copy = tmp_path / "copy.db"
    assert called("backup", path, copy).exit_code == 0
    with begun(path) as at:
        gone = max(at.state.people)
        at.call("erase", {"person": gone, "cause": "asked for it"})
        alias = at.store.keys.alias(gone)
    shutil.copy(path.with_suffix(".keys"), copy.with_suffix(".keys"))
    for drill in (called("upgrade", copy), called("replay", copy)):
        assert drill.exit_code == 0, drill.output
    with begun(copy) as at:
        assert at.state.erased == {alias}
        assert not {gone, alias} & {*at.state.people, *at.state.withdrawn}
        with pytest.raises(Refusal, match="withdrawn"):
            at.call("open", {"person": gone, "context": {"age": 40}})
        Trialist(at, seed=2, people=3).play(4)
        assert gone not in set(decisions(at.trial, at.store.read())["person"])
        before = at.state.number
    with begun(copy) as at:
        assert [event.kind for event in at.store.read(before)] == ["started"]
    with contextlib.closing(Database(copy, writing=False)) as store:
        assert replay(trial(LEARNS), store.read()).differences == []


def test_who_came_and_was_erased_after_the_copy_is_refused_as_everybody_who_was_erased(path, tmp_path):
    copy = tmp_path / "copy.db"
    assert called("backup", path, copy).exit_code == 0
    with begun(path) as at:
        at.call("enrol", {"person": "anna"})
        at.call("erase", {"person": "anna", "cause": "asked for it"})
    shutil.copy(path.with_suffix(".keys"), copy.with_suffix(".keys"))
    with begun(copy) as at:
        for call in ("open", "enrol"):
            about = {"context": {"age": 40}} if call == "open" else {}
            with pytest.raises(Refusal, match="the person was erased") as refused:
                at.call(call, {"person": "anna", **about})
            assert refused.value.status == 410


def test_an_erasure_that_was_interrupted_is_finished_by_the_same_command(path):
    """The process ended between the erasure and the file of tokens, which names the person."""
    tokens = Tokens(path.with_suffix(".tokens"))
    tokens.add("phone", "of p1", person="p1")
    with begun(path) as at:
        at.call("erase", {"person": "p1", "cause": "asked for it"})
    assert "the person was erased" in called("erase", path, "p1", "--cause", "asked for it").output
    assert tokens.all() == []
