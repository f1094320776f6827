"""Replays and the independent verifier: they speak of what ran, of all of it, and of nothing else."""

import ast
import contextlib
import dataclasses
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from typer.testing import CliRunner

from omg_trial import learning, verify
from omg_trial import replay as replays
from omg_trial.cli import app
from omg_trial.cli.commands import show_replay
from omg_trial.decisions import ChosenPolicy, PolicySource
from omg_trial.desk import Desk
from omg_trial.log.database import Database
from omg_trial.log.events import FIRST_HASH, BrokenChainError, canonical
from omg_trial.trial_file import EXAMPLE, Trial
from trial.tests.trials import TEXT, Clock, Trialist, desk, trial

COLUMNS = """age = { low = 20, high = 90 }
lives = { labels = ["alone", "with others"] }"""
UNSORTED = TEXT.replace(COLUMNS, "\n".join(reversed(COLUMNS.splitlines())))


def called(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def played(path, text=TEXT, episodes=6, seed=0, extra=""):
    with contextlib.closing(Database(path)) as store:
        at = Desk(trial(extra, text), store, clock=Clock())
        Trialist(at, seed=seed, overlapping=2).play(episodes)
        return at


def forged(path, number, change):
    """Change an event, and chain all from there anew: as somebody would who knows how."""
    with contextlib.closing(Database(path, writing=False)) as store:
        events, before = list(store.read()), FIRST_HASH
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        for event in events:
            if event.number == number:
                event = change(event)
            event = event.chained(before)
            before = event.hash
            row = (event.kind, event.text, event.key, event.request, event.answer, event.hash, event.number)
            file.execute("UPDATE events SET kind=?, body=?, key=?, request=?, answer=?, hash=? WHERE number=?", row)


def test_what_was_not_computed_again_is_not_said_to_be(capsys):
    at = desk()
    for name in ("anna", "berta"):
        number = json.loads(at.call("open", {"person": name, "context": {"age": 50}}).text)["episode"]
        at.call("decide", {"episode": number, "step": 0, "state": "took it"})
    at.call("erase", {"person": "anna", "cause": "asked for"})
    show_replay(replays.replay(at.trial, at.store.read()))
    told = capsys.readouterr().out
    assert "1 policy, 1 decision, 0 models computed again." in told
    assert "Of 1 decision more only the draw was compared" in told
    assert "All else is equal" in told


def test_a_source_that_is_not_of_the_arm_is_a_difference():
    at = desk()
    fixed = ChosenPolicy(PolicySource.CONTROL, None, at.trial.fixed_policy())
    with mock.patch("omg_trial.handlers.episodes.choose_policy", return_value=fixed):
        at.call("open", {"person": "anna", "context": {"age": 50}})
    assert replays.replay(at.trial, at.store.read()).differences == [
        "event 3 (opened): the source control in the arm learning"
    ]


def test_an_event_of_another_copy_that_went_on_has_no_mark_here(tmp_path):
    """After a backup was restored there are two logs of one secret: whoever has both cannot mix them."""
    path, older = tmp_path / "trial.db", tmp_path / "older"
    events = []
    for reward in (0.0, 1.0):
        with contextlib.closing(Database(path)) as store:
            at = Desk(trial(), store, clock=Clock())
            if not older.exists():
                number = json.loads(at.call("open", {"person": "p1", "context": {"age": 50}}).text)["episode"]
        if not older.exists():
            shutil.copy(path, older)
        shutil.copy(older, path)
        with contextlib.closing(Database(path)) as store:
            at = Desk(trial(), store, clock=Clock())
            for step in (0, 1):
                at.call("report", {"episode": number, "step": step, "reward": reward})
            events.append(list(store.read()))
    assert [len(each) for each in events] == [6, 6]
    forged(path, 6, lambda _: events[0][5])
    done = called("verify", path)
    assert (done.exit_code, "event 6 (reported): it is not what the service has written" in done.output) == (1, True)
    done = called("replay", path)
    assert (done.exit_code, "event 6 is not what the service has written" in done.output) == (1, True)


def test_a_mark_that_does_not_name_the_event_before_is_refused():
    at, before, old = desk(), FIRST_HASH, []
    at.call("open", {"person": "p1", "context": {"age": 50}})
    for event in at.store.read():
        request = event.request.rpartition(":")[0]
        fields = (str(event.number), event.time, event.kind, event.text, event.key or "", request, event.answer or "")
        mark = at.store.keys.mark("event", *fields)
        old.append(dataclasses.replace(event, request=f"{request}:{mark}").chained(before))
        before = old[-1].hash
    with pytest.raises(BrokenChainError, match="event 1 is not what the service has written"):
        replays.replay(at.trial, old)
    keys = {"secret": at.store.keys.secret.encode()}
    assert len(verify.verify([event.row for event in old], keys=keys).problems) == len(old)


def body_with(**changes):
    def change(event):
        return dataclasses.replace(event, text=canonical({**json.loads(event.text), **changes}))

    return change


def first(path, kind):
    with contextlib.closing(Database(path, writing=False)) as store:
        return next(event for event in store.read() if event.kind == kind)


def test_a_replay_of_columns_in_any_order_is_equal(tmp_path):
    """The log has the file byte for byte: the order of the columns is the order of the features."""
    at = played(tmp_path / "trial.db", UNSORTED, episodes=12)
    assert at.state.version.number > 0
    done = called("replay", tmp_path / "trial.db")
    assert done.exit_code == 0, done.output
    assert "Equal to the log, bit for bit." in done.output


def test_the_log_holds_the_file_byte_for_byte(tmp_path):
    text = f"# Zeile eins, mit Umlauten: äöü\r\n{UNSORTED}\n# the end"
    (tmp_path / "trial.toml").write_bytes(text.encode())
    with contextlib.closing(Database(tmp_path / "trial.db")) as store:
        Desk(Trial.read(tmp_path / "trial.toml"), store)
        assert next(store.read()).body["file"].encode() == text.encode()


def test_the_order_of_columns_is_part_of_the_digest():
    assert trial(text=TEXT).digest != trial(text=UNSORTED).digest
    assert trial(text=f"# a comment\n{TEXT}").digest == trial(text=TEXT).digest
    at = desk(text=TEXT)
    with pytest.raises(ValueError, match="does not belong to the trial 'adherence' as its file is now"):
        desk(text=UNSORTED, store=at.store)


def test_a_replay_with_another_file_is_refused_and_not_called_unequal():
    with pytest.raises(ValueError, match="is not the trial of this log"):
        replays.replay(trial(text=UNSORTED), desk(text=TEXT).store.read())


@pytest.mark.parametrize("command", ["replay", "verify"])
def test_the_head_is_printed_and_can_be_expected(tmp_path, command):
    path = tmp_path / "trial.db"
    head = played(path, episodes=3).chain.head
    done = called(command, path, "--expect", head)
    assert done.exit_code == 0, done.output
    assert head in done.output
    with contextlib.closing(Database(path)) as store:
        later = Desk(trial(), store, clock=Clock()).chain.head
    assert called(command, path, "--expect", head).exit_code == 0  # the log has grown since
    assert called(command, path, "--expect", later).exit_code == 0
    for wrong in (head[:-1] + ("0" if head[-1] != "0" else "1"), "1:" + "0" * 64):
        assert called(command, path, "--expect", wrong).exit_code == 1
    for wrong in ("x", "1", "1:2", "0:" + "0" * 64, "-1:" + "0" * 64):
        assert called(command, path, "--expect", wrong).exit_code == 2


@pytest.mark.parametrize("command", ["replay", "verify"])
def test_a_tail_that_was_cut_is_noticed(tmp_path, command):
    path = tmp_path / "trial.db"
    head = played(path).chain.head
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute(f"DELETE FROM events WHERE number > {int(head.partition(':')[0]) - 3}")
    assert called(command, path).exit_code == 0  # nobody can know
    done = called(command, path, "--expect", head)
    assert done.exit_code == 1
    assert "ends with event" in done.output


@pytest.mark.parametrize("command", ["replay", "verify", "export"])
def test_a_tail_that_was_cut_before_a_snapshot_is_noticed_without_being_told(tmp_path, command):
    path = tmp_path / "trial.db"
    with contextlib.closing(Database(path)) as store:
        at = Desk(trial(), store, clock=Clock())
        Trialist(at, seed=0).play(3)
        at.snapshot()
        last = at.state.number
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute(f"DELETE FROM events WHERE number > {last - 3}")
    done = called(command, path, *(["--out", tmp_path / "table.csv"] if command == "export" else []))
    assert done.exit_code == 1, done.output
    assert "ends with event" in done.output


def test_a_plan_that_fails_in_the_replay_is_a_difference_and_no_traceback(monkeypatch):
    at = desk()
    Trialist(at, seed=0).play(3)
    monkeypatch.setattr(replays, "make_plan", lambda *_: 1 / 0)
    found = replays.replay(at.trial, at.store.read())
    assert found.differences[0] == "event 3 (opened): it cannot be computed again: ZeroDivisionError"


def test_a_log_of_an_earlier_format_is_refused(tmp_path):
    path = tmp_path / "trial.db"
    played(path)
    forged(path, 1, body_with(format=2))
    for command in ("replay", "verify"):
        done = called(command, path)
        assert done.exit_code == 2, done.output
        assert "format 2" in done.output


def test_the_verifier_needs_nothing_but_python():
    """One file, whose imports are all of the standard library: it runs alone, in a process without this package."""
    tree = ast.parse(Path(verify.__file__).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


@pytest.mark.parametrize("extra", ["", "[learning]\nreplan = 'step'\n"])
def test_the_verifier_runs_alone(tmp_path, extra):
    path = tmp_path / "trial.db"
    at = played(path, extra=extra)
    command = [sys.executable, "-I", "-S", verify.__file__, str(path), "--expect", at.chain.head]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "0 draws recomputed.\nWithout the key file, the service's marks and draws were not" in done.stdout
    command += ["--keys", str(path.with_suffix(".keys"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    decisions = sum(len(record.choices) for record in at.state.episodes.values())
    assert f"{decisions} draws" in done.stdout
    assert at.chain.head in done.stdout


def test_the_verifier_knows_labels_too(tmp_path):
    with contextlib.closing(Database(tmp_path / "trial.db")) as store:
        at = Desk(Trial.parse(EXAMPLE), store, clock=Clock())
        at.call("open", {"person": "p1", "context": "alone"})
        at.call("decide", {"episode": 3, "step": 0, "state": "took it", "action": "reminder"})
        at.call("report", {"episode": 3, "step": 0, "reward": 1})
    assert called("verify", tmp_path / "trial.db").exit_code == 0


@pytest.mark.parametrize(
    ("kind", "changes", "what"),
    [
        ("decided", {"drawn": 5}, "another action was drawn"),
        ("decided", {"probabilities": [0.2, 0.2, 0.2]}, "sum"),
        ("decided", {"probability": 0.99}, "probability"),
        ("decided", {"episode": 99}, "episode"),
        ("reported", {"reward": 0.77}, "it is not what the service has written"),
        ("closed", {"cause": "dropped out"}, "it is not what the service has written"),
        ("opened", {"person": "~somebody"}, "it is not what the service has written"),
        ("opened", {"occasion": "2026-11-02"}, "it is not what the service has written"),
    ],
)
def test_the_verifier_finds_what_was_forged_and_chained_anew(tmp_path, kind, changes, what):
    path = tmp_path / "trial.db"
    played(path)
    assert called("verify", path).exit_code == 0
    event = first(path, kind)
    forged(path, event.number, body_with(**changes))
    done = called("verify", path)
    assert done.exit_code == 1
    assert f"event {event.number} ({kind})" in done.output
    assert what in done.output


@pytest.mark.parametrize("kind", ["enrolled", "withdrawn", "stopped", "reported", "started", "learned", "incident"])
def test_no_event_can_be_forged_without_the_key_file(tmp_path, kind):
    """Whatever stands in its place: with neither key nor mark, or as an event that the service writes by itself."""
    path = tmp_path / "trial.db"
    with contextlib.closing(Database(path)) as store:
        at = Desk(trial(), store, clock=Clock())
        at.call("enrol", {"person": "anna"})
        Trialist(at, seed=0).play(3)
        at.call("learn", {})
        at.learn_here()
        at.record("incident", {"severity": "yellow", "check": "gaps", "message": "one"})
        at.call("withdraw", {"person": "anna"})
        at.call("stop", {"cause": "harm"})
    event, bare = first(path, kind), {"key": None, "request": None, "answer": None}
    forgery = canonical({"severity": "green", "check": "gaps", "message": "none"})
    unmarked = dataclasses.replace(event, **bare)
    for change in (unmarked, dataclasses.replace(unmarked, kind="incident", text=forgery)):
        forged(path, event.number, lambda _, change=change: change)
        for command in ("verify", "replay"):
            done = called(command, path)
            assert done.exit_code == 1, done.output
            assert f"event {event.number} " in done.output
            assert "is not what the service has written" in done.output
        with contextlib.closing(Database(path)) as store, pytest.raises(BrokenChainError, match="the service"):
            Desk(trial(), store, clock=Clock())


def test_a_row_that_was_changed_is_found_by_the_verifier(tmp_path):
    path = tmp_path / "trial.db"
    played(path)
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE events SET time = '2026-11-01T00:00:00.000000+00:00' WHERE number = 4")
    done = called("verify", path)
    assert done.exit_code == 1
    assert "event 4 was changed after it was written" in done.output


def test_a_model_for_which_memory_was_short_is_no_other_model(monkeypatch):
    """It was not published, and says so; whoever replays the log may have the memory."""
    at = desk("[learning]\nafter_episodes = 0\n")
    Trialist(at, seed=0).play(4)

    def fail(*_):
        raise MemoryError

    for short in (True, False):
        at.call("learn", {})
        with monkeypatch.context() as patched:
            if short:
                patched.setattr(learning.Trainer, "train", fail)
            at.learn_here()
    assert [event.body["published"] for event in at.store.read() if event.kind == "learned"] == [False, True]
    assert replays.replay(at.trial, at.store.read()).differences == []
