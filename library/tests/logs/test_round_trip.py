"""Logs go through files and come back equal, in every bit and type, whatever their contexts are."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest

import omg_cmdp as omg
from library.tests.runs.corridor import CONTEXTS, HORIZON, Anything, Corridor, make_agent
from omg_cmdp import Episode, Log, Space
from omg_cmdp.contexts import context_to_json
from omg_cmdp.delays import Fixed
from omg_cmdp.environments import gymnasium_space
from omg_cmdp.logs import read_export, read_log, read_table
from omg_cmdp.logs.exports import csv_cell
from omg_cmdp.runs.pending import Pending

TEXTS = (
    *("NA", "", "1", "1.0", "nan", "None", "null", "true", "a,b", 'say "no"', "two\nlines", "\r", "a\r\nb", "\t", " "),
    *("=1+1", "-0.5", "+x", "@x", "'quoted", "é", "日本", "🦉", "\x00", "[1]", "{}", "context"),
)
NUMBERS = (0, 1, -1, 2**40, 2**70, 0.0, -0.0, 0.1, -0.5, 1 / 3, 1e-300, 1e300, 5e-324, float("inf"), True, False, None)
RANGES = ((0.0, 1.0), (-1.0, 4.0), (1.0, 2.0), (-1e9, -1e-9), (0.0, 1e-12))


def pick(rng, options):
    return options[rng.integers(len(options))]


def vector(rng):
    dtype = pick(rng, ("f8", "f4", "i8", "i2", "?"))
    return np.asarray(5.0 * rng.normal(size=pick(rng, ((), (0,), (1,), (3,), (2, 2))))).astype(dtype)


def scalar(rng):
    return pick(rng, (*TEXTS, *NUMBERS))


KINDS = {
    "text": lambda rng: pick(rng, TEXTS),
    "number": lambda rng: pick(rng, NUMBERS),
    "integer": lambda rng: int(rng.integers(-3, 3)),
    "float": lambda rng: float(pick(rng, (-0.5, -0.0, 0.1, rng.normal()))),
    "boolean": lambda rng: bool(rng.integers(2)),
    "vector": vector,
    "pair": lambda rng: rng.normal(size=2),
    "tuple": lambda rng: tuple(scalar(rng) for _ in range(rng.integers(4))),
    "nested": lambda rng: (scalar(rng), (scalar(rng), [scalar(rng)])),
    "numpy": lambda rng: vector(rng).reshape(-1).sum(),
    "list": lambda rng: [scalar(rng), scalar(rng)],
    "record": lambda rng: {name: scalar(rng) for name in ("age", "ward", "a b", 1)[: rng.integers(5)]},
    "deep": lambda rng: {"place": (scalar(rng), 1), "vector": vector(rng)},
}
KINDS["anything"] = lambda rng: KINDS[pick(rng, [*KINDS][:-1])](rng)


def random_episode(rng, space, context, reward_range):
    steps = int(rng.integers(1, space.horizon + 1))
    states = rng.integers(space.states, size=steps + 1)
    rewards = [pick(rng, (*reward_range, rng.uniform(*reward_range))) for _ in range(steps)]
    if rng.random() < 0.2:
        rewards = [None if rng.random() < 0.5 else reward for reward in rewards]
    return Episode(
        context=context,
        states=states,
        actions=rng.integers(space.actions, size=steps),
        rewards=rewards,
        propensities=None if rng.random() < 0.2 else 1.0 - rng.random(steps),
        length=int(rng.integers(1, steps + 1)),
    )


def random_log(rng):
    sizes = rng.integers(1, 5, size=3).tolist()
    start = np.full(sizes[0], 1.0 / sizes[0])
    space = Space(states=sizes[0], actions=sizes[1], horizon=sizes[2], start=start)
    kind, reward_range = KINDS[pick(rng, [*KINDS])], pick(rng, RANGES)
    episodes = [random_episode(rng, space, kind(rng), reward_range) for _ in range(rng.integers(6))]
    return Log(space, episodes, reward_range=reward_range)


def facts(log):
    """Return everything that a log says, as bits and texts."""
    return [
        (
            # A scalar of numpy comes back as the number of Python that equals it.
            type(each.context.item() if isinstance(each.context, np.generic) else each.context),
            context_to_json(each.context),
            each.states.tobytes(),
            each.actions.tobytes(),
            np.where(np.isnan(each.rewards), 0.25e-310, each.rewards).tobytes(),
            None if each.propensities is None else each.propensities.tobytes(),
            each.length,
        )
        for each in log.episodes
    ]


def check_round_trip(seed, folder):
    log = random_log(np.random.default_rng(seed))
    again = read_log(log.write(folder / "log.jsonl"), log.space, reward_range=log.reward_range)
    assert facts(again) == facts(log), seed
    assert again.reward_range == log.reward_range


def test_random_logs_come_back_equal(tmp_path):
    for seed in range(100):
        check_round_trip(seed, tmp_path)


@pytest.mark.slow
def test_ten_thousand_random_logs_come_back_equal(tmp_path):
    for seed in range(1000, 11_000):
        check_round_trip(seed, tmp_path)


def test_what_no_file_can_hold_is_refused(tmp_path):
    log = Log(Space(states=1, actions=1, horizon=1), [Episode(context=b"x", states=[0, 0], actions=[0], rewards=[1.0])])
    with pytest.raises(ValueError, match="`context` must be a vector, a number, a text"):
        log.write(tmp_path / "log.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_line_that_a_crash_cut_off_is_left_out_and_a_wrong_one_is_named(tmp_path):
    log = random_log(np.random.default_rng(3))
    assert len(log) > 2
    path = log.write(tmp_path / "log.jsonl")
    whole = path.read_text()
    path.write_text(whole[:-10])
    assert facts(read_log(path, log.space, reward_range=log.reward_range)) == facts(log)[:-1]
    path.write_text(whole.replace("{", "[", 1))
    with pytest.raises(ValueError, match=r"`path` must be a log .*log\.jsonl': line 1 must hold an episode"):
        read_log(path, log.space, reward_range=log.reward_range)


def test_a_file_that_was_damaged_is_refused_or_read(tmp_path):
    """Bytes changed, lost and put in: the error names the file."""
    rng, refusals = np.random.default_rng(0), []
    for seed in range(60):
        log = random_log(rng)
        path = log.write(tmp_path / "log.jsonl")
        content = bytearray(path.read_bytes()) or bytearray(b"\n")
        place = int(rng.integers(len(content)))
        junk = pick(rng, (b"", b"\x00", b"\xff", b"[" * 5000, b"1e999", b'"', b",,,", b"\n", b"NaN", b"-1", b"9" * 30))
        content[place : place + int(rng.integers(9))] = junk
        path.write_bytes(content if seed % 5 else content[:place])
        try:
            read_log(path, log.space, reward_range=log.reward_range)
        except ValueError as error:
            refusals.append(str(error))
    assert len(refusals) > 10
    assert all(f"got {str(path)!r}: " in refusal for refusal in refusals)
    with pytest.raises(FileNotFoundError):
        read_log(tmp_path / "none.jsonl", Space(states=1, actions=1, horizon=1))


def test_wrong_files_are_refused(tmp_path):
    log = Log(Space(states=1, actions=1, horizon=1))
    with pytest.raises(ValueError, match=r"`path` must end in \.jsonl, got .*log\.npz"):
        read_log(tmp_path / "log.npz", log.space)
    with pytest.raises(ValueError, match=r"`path` must end in \.jsonl, got .*log\.csv"):
        log.write(tmp_path / "log.csv")


def test_a_column_of_yours_that_is_called_length_is_left_alone():
    steps = {"states": [0, 0, 0], "actions": [0, 0], "rewards": [0.0, 1.0], "length": 1}
    log = Log(Space(states=1, actions=1, horizon=2), [Episode(context="c", **steps)])
    table = log.table().assign(length=17.5)
    assert read_table(table, space=log.space).episodes[0].length == 2


# Whatever stops the loop, the episodes that were played are on disk.


def agent():
    return Anything(gymnasium_space(Corridor(), horizon=HORIZON), reward_range=(-1.0, 4.0))


def read(path, player):
    return read_log(path, player.space, reward_range=player.reward_range)


def test_what_was_played_is_read_back(tmp_path):
    path, player = tmp_path / "log.jsonl", agent()
    log = omg.play(Corridor(), player, CONTEXTS, log=path)
    assert facts(read(path, player)) == facts(log)
    assert list(tmp_path.iterdir()) == [path]


def test_a_process_that_dies_has_written_what_it_played(tmp_path):
    path, player = tmp_path / "log.jsonl", agent()
    program = f"""
import os, omg_cmdp as omg
from library.tests.logs.test_round_trip import agent
from library.tests.runs.corridor import CONTEXTS, Corridor

def until_killed():
    yield from CONTEXTS[:5]
    os._exit(9)

omg.play(Corridor(), agent(), until_killed(), log={str(path)!r})
"""
    root = Path(__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", program], cwd=root, check=False).returncode == 9
    assert list(tmp_path.iterdir()) == [path]
    found = read(path, player)
    assert facts(found) == facts(omg.play(Corridor(), player, CONTEXTS[:5]))


def test_a_context_that_cannot_be_written_stops_before_its_episode(tmp_path):
    player = make_agent()
    with pytest.raises(ValueError, match="`context` must be a vector"):
        omg.play(Corridor(), player, [np.array([0.5, 0.5], dtype=np.longdouble)], log=tmp_path / "log.jsonl")
    assert player.episodes_seen == 0


@pytest.mark.parametrize("label", [1, -0.5, -3, True, "1", "NA", "-x", None, ("a", 1), {"age": 1}])
def test_contexts_of_exports_survive_a_csv(label, tmp_path):
    steps = {"states": [0, 0], "actions": [0], "rewards": [1.0], "propensities": [0.5]}
    lists = {name: json.dumps(each) for name, each in steps.items()}
    pandas.DataFrame([{"context": csv_cell(context_to_json(label)), **lists}]).to_csv(tmp_path / "log.csv", index=False)
    for options in ({}, {"dtype": {"context": str}}):
        frame = pandas.read_csv(tmp_path / "log.csv", **options)
        [again] = read_export(frame, Space(states=1, actions=1, horizon=1)).contexts
        assert (type(again), again) == (type(label), label)


def test_feedback_under_way_survives_a_checkpoint():
    """Unknown rewards and all."""
    for seed in range(50):
        log = random_log(np.random.default_rng(seed))
        pending, again = (Pending(Fixed(2), np.random.default_rng(0)) for _ in range(2))
        for number, episode in enumerate(log.episodes):
            pending.add(number, episode)
        again.load_state(pending.state())
        found = Log(log.space, [episode for _, episode in again.arrived(99)], reward_range=log.reward_range)
        assert facts(found) == facts(log)
