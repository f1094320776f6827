"""Files that somebody has written by hand: whatever reads them says so in a sentence."""

import contextlib
import dataclasses
import json
import sqlite3
import zlib

import numpy as np
import pytest

from omg_cmdp.persistence import pack_arrays, unpack_arrays
from omg_trial import verify as verifier
from omg_trial.client.outbox import Outbox
from omg_trial.log.events import FIRST_HASH, FORMAT, BrokenChainError
from omg_trial.people.roster import read_roster
from omg_trial.replay import replay
from omg_trial.snapshots import pack_state, unpack_state
from omg_trial.tokens import Tokens
from trial.tests.trials import TEXT, Trialist, desk, trial


@pytest.fixture(scope="module")
def played():
    at = desk()
    Trialist(at, seed=0).play(2)
    return at


def forged(events, number, **fields):
    """The log with another event in the place of one, and all hashes and marks made again."""
    before = FIRST_HASH
    for event in events:
        if event.number == number:
            event = dataclasses.replace(event, **fields)
        event = dataclasses.replace(event, request=(event.request or "").rpartition(":")[0] or None)
        event = event.marked(before).chained(before)
        before = event.hash
        yield event


DEEP = "[" * 100_000
BODIES = ("{}", "[]", "null", "1", '"x"', DEEP, '{"person":"#x","sealed":1}', f'{{"format":{FORMAT},"trial":"x"}}')


@pytest.mark.parametrize("body", BODIES)
def test_an_event_that_no_service_writes_is_refused_by_replay_and_by_the_verifier(played, body):
    for kind in ("founded", "opened", "decided"):
        number = next(event.number for event in played.store.read() if event.kind == kind)
        log = list(forged(played.store.read(), number, text=body))
        with pytest.raises(
            (BrokenChainError, ValueError), match=r"event \d+ is none that|is not the trial|lacks a key"
        ):
            replay(trial(), log)
        with pytest.raises(verifier.BrokenLogError, match="is none that a service writes"):
            verifier.verify([event.row for event in log], keys={"secret": played.state.secret.encode()})


def test_a_kind_of_event_that_this_version_does_not_know_is_refused(played):
    with pytest.raises(BrokenChainError, match="event 3 is none that a service of this version writes"):
        replay(trial(), forged(played.store.read(), 3, kind="teleported"))


@pytest.mark.parametrize("field", [b"x", b"", 0])
def test_the_verifier_calls_a_field_that_is_no_text_a_change(played, field):
    rows = [(*event.row[:5], field, *event.row[6:]) for event in played.store.read()]
    with pytest.raises(verifier.BrokenLogError, match="event 1 was changed"):
        verifier.verify(rows)


@pytest.mark.parametrize(
    "line",
    [
        *(DEEP, "1", '{"role": "app"}', '{"role": "app", "hash": [], "name": "x"}'),
        *('{"role": "app", "hash": 1, "name": "x"}', '{"role": "app", "hash": "a", "name": 1}'),
        *(
            '{"role": "app", "hash": "a", "name": "x", "rate": "3"}',
            '{"role": "app", "hash": "a", "name": "x", "rate": NaN}',
        ),
        '{"role": ["app"], "hash": "a", "name": "x"}',
    ],
)
def test_a_line_that_is_no_token_is_left_out(tmp_path, line):
    tokens = Tokens(tmp_path / "tokens")
    made = tokens.add("app", "the phones")
    with tokens.path.open("a") as file:
        file.write(f"{line}\n")
    assert [each.name for each in tokens.all()] == ["the phones"]
    assert tokens.find(made).role == "app"


@pytest.mark.parametrize(
    "statement",
    [
        *("DROP TABLE calls; CREATE TABLE calls (number)", "DROP TABLE seen; CREATE TABLE seen (row, other)"),
        *("DROP TABLE episodes; CREATE TABLE episodes (episode)", "UPDATE calls SET body = CAST(x'ff' AS TEXT)"),
    ],
)
def test_a_queue_of_something_else_is_refused(tmp_path, statement):
    path = tmp_path / "queue"
    with contextlib.closing(Outbox(path)) as box:
        box.call("/v1/episodes", {"person": "p1"}, waits=True)
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.executescript(statement)
    with pytest.raises(ValueError, match="`queue` must be a file of a client"):
        Outbox(path)


@pytest.mark.parametrize("body", ["", "[1]", "3", DEEP])
def test_a_call_in_the_queue_that_is_no_object_is_refused(tmp_path, body):
    with contextlib.closing(Outbox(tmp_path / "queue")) as box:
        box.call("/v1/episodes", {"person": "p1"}, waits=True)
        with contextlib.closing(sqlite3.connect(tmp_path / "queue")) as file, file:
            file.execute("UPDATE calls SET body = ?", (body,))
        with pytest.raises(ValueError, match="a call whose body is no JSON object"):
            next(box.waiting())


@pytest.mark.parametrize("place", [10**6, 2**70])
def test_a_snapshot_that_points_beyond_its_examples_is_refused(played, place):
    arrays = unpack_arrays(pack_state(played.state, played.agent))
    saved = json.loads(zlib.decompress(arrays["state.json"].tobytes()))
    saved["versions"][0][1] = [place]
    arrays["state.json"] = np.frombuffer(zlib.compress(json.dumps(saved).encode()), dtype=np.uint8)
    with pytest.raises(ValueError, match="no snapshot of ours"):
        unpack_state(trial(), pack_arrays(arrays))


def test_a_roster_with_an_endless_cell_is_refused(tmp_path):
    (tmp_path / "people.csv").write_text("person,zone\np1," + "9" * 200_000 + "\n")
    with pytest.raises(ValueError, match=r"people.csv, line \d+: field larger than field limit"):
        read_roster(trial(), tmp_path / "people.csv")


@pytest.mark.parametrize("rule", ["low = 90, high = 20", "low = 20, high = 20", "low = 20, high = 90, median = 5"])
def test_a_column_without_a_range_is_refused_at_its_table(rule):
    with pytest.raises(ValueError, match=r"line \d+: `context\.columns\.age`.*finite `low` < `high`"):
        trial(text=TEXT.replace("low = 20, high = 90", rule))
