"""The commands of a trial: what is typed, what is printed, the exit codes."""

import contextlib
import io
import logging
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from omg_trial import verify
from omg_trial.cli import app
from omg_trial.desk import Desk
from omg_trial.log.database import Database
from omg_trial.log.traces import DiscreetFormatter
from omg_trial.rehearsal.reactions import random_context
from omg_trial.rehearsal.report import describe_rehearsal, rehearse
from omg_trial.tokens import Tokens
from omg_trial.trial_file.explain import explain_trial
from omg_trial.trial_file.sections import TrialFile
from omg_trial.trial_file.trial import Trial
from trial.tests.trials import TEXT, Trialist, desk, trial

RULES = TEXT.replace("[context.columns]", "most_per_week = { call = 1 }\n[context.columns]") + (
    '[window]\nbegin = "22:00"\nend = "06:00"\noutside = "nothing"\n[learning]\nreplan = "step"\nmissing_reward = 0.0\n'
)


def called(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "trial.toml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def database(file):
    store = Database(file.with_suffix(".db"))
    Trialist(Desk(Trial.read(file), store), seed=0).play(4)
    store.close()
    return file.with_suffix(".db")


def test_check_explains_and_rehearses(file):
    done = called("check", file, "--people", 3)
    assert done.exit_code == 0, done.output
    told = (
        "took it, missed it",
        "exploration.floor = 0.1. The least probability",
        "reminder 0.3",
        "6 episodes, 24 decisions",
    )
    for part in told:
        assert part in done.output


def test_a_rehearsal_keeps_what_the_file_promises():
    played = rehearse(trial(text=RULES), people=4)
    choices = [each for record in played.desk.state.episodes.values() for each in record.choices.values()]
    assert len(choices) == 2 * 4 * 4
    assert np.mean([each.action == 2 for each in choices]) <= 2 / 8  # two weeks, one call in each
    assert played.desk.state.version.number >= 2
    told = describe_rehearsal(played)
    assert any(re.match("[1-9][0-9]* decisions? w.* made or changed by: most per week", line) for line in told)
    assert all(line.endswith(".") for line in [*explain_trial(trial(text=RULES)), *told])


def test_shares_have_a_decimal_and_one_thing_is_not_plural():
    played = rehearse(trial(), people=1)
    state = played.desk.state
    record = next(iter(state.episodes.values()))
    made = [record.choices[step]._replace(action=action) for step, action in enumerate((0, 2, 2))]
    record.choices = dict(enumerate([*made[:2], made[2]._replace(rules=("x",))]))
    state.episodes, state.versions = {record.number: record}, state.versions[:2]
    text = "\n".join(describe_rehearsal(played))
    assert "nothing 33.3%, reminder 0%, call 66.7%" in text
    assert "1 model was published" in text
    assert "1 decision was made or changed by: x." in text


def test_a_rehearsal_publishes_what_waits_for_a_hand():
    played = rehearse(trial('[learning]\npublish = "by hand"\n'), people=2)
    assert played.desk.state.waiting is None
    assert played.desk.state.version.number == played.desk.state.latest >= 1


def test_every_key_of_a_file_is_explained():
    told = explain_trial(trial(text=RULES))
    for section in TrialFile.model_fields.keys() - {"watch", "alerts", "budgets"}:
        assert any(each.startswith(f"{section}.") for each in told)
    assert not any("None" in each for each in told)
    assert any(each.startswith("actions.paused = none. Taken without a draw") for each in told)
    assert any(each.startswith("actions.most_per_week = call 1. A guard:") for each in told)
    assert any(each.startswith("context.columns.age.high = ") for each in told)
    assert told[-2] == "An app needs a network for every decision, because rules may change it."
    assert told[-1] == '`offline` has no effect beside [window], `replan = "step"`, weekly limits without `allowances`.'


def test_random_contexts_are_allowed(rng):
    at = desk()
    for number in range(5):
        at.call("open", {"person": f"p{number}", "context": random_context(at.trial, rng)})


def test_a_token_is_printed_once_and_kept_as_a_hash(file):
    done = called("token", file, "analyst", "the statistician")
    assert done.exit_code == 0, done.output
    token = done.output.strip()
    assert Tokens(file.with_suffix(".tokens")).find(token).role == "analyst"
    assert token not in file.with_suffix(".tokens").read_text()
    assert called("token", file, "king", "me").exit_code == 2


def test_a_replay_is_equal_beside_a_service_that_writes(database):
    with_writer = Database(database)
    done = called("replay", database)
    with_writer.close()
    assert done.exit_code == 0, done.output
    assert "Equal to the log, bit for bit." in done.output
    assert "lost against the best policy" in done.output


def test_one_policy_is_not_policies(file):
    store = Database(file.with_suffix(".db"))
    Desk(Trial.read(file), store).call("open", {"person": "p1", "context": {"age": 30}})
    store.close()
    assert (
        "3 events: 1 policy, 0 decisions, 0 models computed again." in called("replay", file.with_suffix(".db")).output
    )


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET body = replace(body, '\"step\":0', '\"step\":1') WHERE kind = 'decided'",
        "DELETE FROM events WHERE number = 4",
        "UPDATE events SET time = '2026-11-01T00:00:00.000000+00:00' WHERE number = 3",
    ],
)
def test_a_log_that_was_changed_is_found_out(database, change):
    with sqlite3.connect(database) as connection:
        connection.execute(change)
    connection.close()
    done = called("replay", database)
    assert done.exit_code == 1
    assert "NOT the log that was written: event" in done.output


def test_a_log_without_events_is_not_verified(database, tmp_path):
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM events")
    connection.close()
    alone = [sys.executable, verify.__file__, str(database), "--keys", str(database.with_suffix(".keys"))]
    for done in (called("verify", database).output, subprocess.run(alone, capture_output=True, text=True).stdout):
        assert "NOT the log that was written: there is no event" in done
    assert called("verify", database).exit_code == 1


def test_the_verifier_reads_the_file_that_was_named(tmp_path):
    """A name with the signs of a URL is a name."""
    for name in ("a%41.db", "b?mode=rwc.db", "c#1.db"):
        with contextlib.closing(Database(tmp_path / name)) as store:
            Desk(Trial.parse(TEXT), store)
        assert verify.main([str(tmp_path / name), "--keys", str((tmp_path / name).with_suffix(".keys"))]) == 0


def test_export_writes_the_table_and_its_dictionary(database, tmp_path):
    done = called("export", database, "--out", tmp_path / "x.csv")
    assert done.exit_code == 0, done.output
    assert done.output.split() == [str(tmp_path / "x.csv"), str(tmp_path / "x.md")]
    assert "Missing option '--out'" in called("export", database).output
    assert "there is no such database" in called("export", tmp_path / "nowhere", "--out", "x.csv").output


@pytest.mark.parametrize("command", ["replay", "export"])
def test_what_is_no_database_is_refused_in_a_line(command, tmp_path):
    (tmp_path / "text.db").write_text("not a database at all " * 100)
    done = called(command, tmp_path / "text.db", *(["--out", tmp_path / "x.csv"] if command == "export" else []))
    assert done.exit_code == 2
    assert "the database cannot be opened" in done.output
    assert called("replay", tmp_path / "missing.db").exit_code == 2
    assert not (tmp_path / "missing.db").exists()


@pytest.mark.slow
def test_serve_answers_refuses_a_second_instance_and_ends_when_told(file):
    token = Tokens(file.with_suffix(".tokens")).add("app", "me")
    command = [sys.executable, "-m", "omg_trial", "serve", str(file), "--port", "0", "--new"]
    pipes = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
        "env": os.environ,
    }
    with subprocess.Popen(command, **pipes) as service:
        address = service.stdout.readline().split()[-1]
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "a"}
        body = {"person": "a-very-secret-name", "context": {"age": 40}}
        assert httpx.post(f"{address}/v1/episodes", json=body, headers=headers).status_code == 200
        assert httpx.post(f"{address}/v1/episodes", json={"person": body["person"]}, headers=headers).status_code == 422
        second = subprocess.run(command, capture_output=True, text=True, env=pipes["env"])
        service.send_signal(signal.SIGTERM)
        output, errors = service.communicate(timeout=60)
    assert second.returncode == 2
    assert "is in use by another process" in second.stderr
    assert service.returncode == 0
    assert "secret" not in output + errors
    assert called("replay", file.with_suffix(".db")).exit_code == 0
    assert file.with_suffix(".db").stat().st_mode & 0o077 == 0


def test_the_services_own_log_names_the_kind_of_an_error_and_not_what_it_says():
    stream = io.StringIO()
    log, handler = logging.getLogger("a test"), logging.StreamHandler(stream)
    handler.setFormatter(DiscreetFormatter("%(levelname)s %(message)s"))
    log.addHandler(handler)
    try:
        raise ValueError("a secret name")
    except ValueError:
        log.exception("a call failed")
    log.removeHandler(handler)
    assert stream.getvalue() == "ERROR a call failed\n(ValueError)\n"


def test_a_port_that_is_taken_is_a_line(file):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = called("serve", file, "--new", "--port", taken.getsockname()[1])
    assert done.exit_code == 2
    assert "choose another `host` or `port`" in done.output


@pytest.mark.parametrize("wrong", ["floor = 0.4", "floor = 'low'", "flor = 0.1"])
def test_a_wrong_file_is_named_with_its_line(file, wrong):
    file.write_text(TEXT.replace("floor = 0.1", wrong))
    for command in ("check", "serve"):
        done = called(command, file)
        assert done.exit_code == 2
        assert "trial.toml, line" in done.output


def test_a_key_below_a_later_header_is_told_where_it_belongs(file):
    """TOML gives a key to the last header above it: `crosses` under [context.columns] looks like a column."""
    file.write_text(TEXT.replace("[rewards]", 'crosses = [["age", "age"]]\n[rewards]'))
    told = called("check", file).output
    assert "`context.columns.crosses`: must be a table" in told
    assert "a key of [context] belongs above [context.columns]" in told


def test_a_trial_is_founded_only_when_that_is_asked_for(file, monkeypatch):
    """A wrong path, or a volume that was not mounted, would begin the trial anew."""
    from omg_trial.web import server

    def served(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(server, "Service", served)
    database = file.with_suffix(".db")
    done = called("serve", file)
    assert done.exit_code == 2
    assert "--new" in done.output
    assert not database.exists()
    for content in (b"", None):
        database.unlink(missing_ok=True)
        database.write_bytes(content) if content is not None else Database(database).close()
        assert "--new" in called("serve", file, "--port", 0).output
    assert called("serve", file, "--port", 0, "--new").exit_code == 130  # it goes on to serve
    assert called("serve", file, "--port", 0).exit_code == 130
    done = called("serve", file, "--port", 0, "--new")
    assert done.exit_code == 2
    assert "has a trial already" in done.output


def test_a_backup_beside_a_service_that_writes_is_whole_and_verified(database, tmp_path):
    """Somebody writes all the time; each copy is a log that can be served."""
    ended, failed = threading.Event(), []

    def write():
        with contextlib.closing(Database(database)) as store:
            at, number = Desk(Trial.read(database.with_suffix(".toml")), store), 0
            while not ended.is_set():
                number += 1
                at.call("open", {"person": f"w{number}", "context": {"age": 30}})

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(4):
            done = called("backup", database, tmp_path / f"copy-{number}.db")
            if done.exit_code:
                failed.append(done.output)
            assert called("verify", tmp_path / f"copy-{number}.db", "--expect", done.output.split()[-1]).exit_code == 0
    finally:
        ended.set()
        thread.join()
    assert failed == []
    before = (tmp_path / "copy-0.db").read_bytes()
    assert called("backup", database, tmp_path / "copy-0.db").exit_code == 2
    assert (tmp_path / "copy-0.db").read_bytes() == before
    assert (tmp_path / "copy-0.db").stat().st_mode & 0o077 == 0


def test_a_backup_of_a_log_that_was_changed_is_none(database, tmp_path):
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM events WHERE number = 4")
    done = called("backup", database, tmp_path / "copy.db")
    assert done.exit_code == 1
    assert not (tmp_path / "copy.db").exists()
