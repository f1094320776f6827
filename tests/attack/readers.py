"""Mangled files and bodies before everything that reads one: a sentence of the house, and nothing changed on disk.

At effort 1, 6 000 of them. A file is mangled as bytes, and as what it is: JSON with other values, tables with other
cells, npz files and logs of which digests, hashes and marks are made again, as a stranger or an operator can.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import itertools
import json
import random
import resource
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas

import omg_cmdp as omg
from lab.tests.studies.examples import SMALL, run_study
from omg_cmdp.logs.lines import episode_record
from omg_cmdp.persistence import pack_arrays, unpack_arrays
from omg_cmdp.planning.problem import _VERSION as PROBLEM
from omg_cmdp.runs import Run
from omg_cmdp.runs.simulate import _VERSION as RUN
from omg_lab.studies.config import load_plan, read_plan
from omg_lab.studies.directory import open_study
from omg_lab.studies.engines import play_here
from omg_lab.studies.outside.folder import Folder
from omg_lab.studies.overrides import read_overrides
from omg_lab.studies.results import load
from omg_lab.studies.store import CHECKPOINT, FORMAT, digest_of
from omg_trial import verify as verifier
from omg_trial.client.outbox import Outbox
from omg_trial.contract import Refusal
from omg_trial.keys.ring import KeyRing
from omg_trial.log.database import Database, StoreError
from omg_trial.log.events import FIRST_HASH, canonical, verified
from omg_trial.people.roster import read_roster
from omg_trial.replay import replay
from omg_trial.snapshots import pack_state, unpack_state
from omg_trial.state import State
from omg_trial.tokens import Tokens
from omg_trial.trial_file.trial import Trial
from tests.attack.malformed import learners
from tests.attack.malformed.bodies import CALLS, Desks, read_answer, read_events, write_answer, write_events
from tests.attack.malformed.judge import TooLong, in_time
from tests.attack.malformed.mangled import (
    CELLS,
    forged_arrays,
    mangled_bytes,
    mangled_frame,
    mangled_json,
    mangled_lines,
    mangled_rows,
    mangled_value,
)
from tests.attack.malformed.reached import Corpus, Files, Reached
from tests.attack.outcome import Outcome
from tests.attack.study_files import mutated
from tests.upgrades.make import STUDY, new_run
from trial.tests import trials

TRIES = 6000
"""At effort 1."""
MEMORY = 2**20
"""Kilobytes that a process may grow while it reads a small file."""
DESKS = Desks()
RUN_FILE, CHECKPOINT_FILE = {"kind": "saved run", "version": RUN}, {"kind": CHECKPOINT, "version": FORMAT}
PROBLEM_FILE = {"kind": "planning problem", "version": PROBLEM}
SPACE = omg.Space(states=2, actions=3, horizon=4, start=[0.5, 0.5])
FEWEST_WORDS = 3


@dataclasses.dataclass(frozen=True)
class Reader:
    """How a file is made, mangled and read, and the errors that reading may raise."""

    name: str
    make: Callable[[Path], object]
    read: Callable[[Path], object]
    mangle: Callable[[Path, random.Random], object] | None = None
    errors: tuple[type[Exception], ...] = (ValueError, OSError)
    writes: bool = False
    """Whether it opens the file to write."""


def agent() -> omg.OMG:
    """Return an agent that has learned from a few episodes."""
    sizes = {"states": 2, "actions": 3, "horizon": 4}
    made = omg.OMG(SPACE, omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))
    for episode in episodes():
        made.update(
            omg.Trajectory(**{name: getattr(episode, name) for name in ("context", "states", "actions", "rewards")})
        )
    return made


def episodes() -> list[omg.Episode]:
    """Return a few episodes."""
    rng = np.random.default_rng(0)
    return [
        omg.Episode(
            context=["a", {"age": 3.5, "lives": "b"}][number % 2] if number < 2 else "a",
            states=rng.integers(2, size=5).tolist(),
            actions=rng.integers(3, size=4).tolist(),
            rewards=rng.random(4).tolist(),
            propensities=[0.5] * 4,
        )
        for number in range(3)
    ]


def mangled_toml(words: tuple[str, ...]) -> Callable[[Path, random.Random], object]:
    """Return a function that changes words and lines of a TOML file."""
    return lambda path, draw: path.write_text(mutated(path.read_text(), draw, words), encoding="utf-8")


WHOLE = f"""{trials.TEXT}
[states.forbidden]
"missed it" = ["call"]

[actions.most_per_week]
call = 3

[budgets.messages]
most = 2.0
costs = {{ reminder = 1, call = 3 }}

[learning]
after_episodes = 2
missing_reward = 0.0
replan = "step"
publish = "by hand"

[people]
roster = "required"
control = 0.1
arms = "given"

[window]
begin = "08:00"
end = "21:30"
outside = "nothing"

[watch]
overdue_hours = 24
least_share = 0.05

[alerts]
smtp = "mail.example.org:587"
sender = "trial@example.org"
to = ["team@example.org"]
severities = ["red"]
digest = "07:00"
"""
"""A trial with every table."""
TRIAL_WORDS = (
    *(
        "names",
        "actions",
        "states",
        "floor",
        "gamma",
        "horizon",
        "low",
        "high",
        "labels",
        "fallback",
        "rules",
        "people",
    ),
    *(
        "counts",
        "linear",
        "softmax",
        "Europe/Berlin",
        "../../etc",
        "",
        "nothing",
        "took it",
        "at_most",
        "budget",
        "end",
    ),
    *("0", "-1", "1e999", "nan", "true", "[]", "{}", "[1, [2]]", "99999999999999999999", "0.1", "1e-300", "2026-01-01"),
    *("[" * 5000, "2026-01-01T00:00:00Z", '["a", "a"]', "[watch]", "[alerts]", "[limits]", "[window]"),
)


def read_token_file(path: Path) -> None:
    """Use the tokens as the service and the command do."""
    for each in Tokens(path).all():
        assert max(each.rate or 1.0, 1.0) >= 1.0
        assert isinstance(f"{each.hash[:12]} {each.actor}", str)
        each.valid()


def make_log(path: Path) -> None:
    """Write the log of a small trial, with its keys beside it."""
    with contextlib.closing(Database(path)) as store:
        at = trials.desk(store=store)
        trials.Trialist(at, seed=0).play(3)


def read_log(path: Path) -> None:
    """Read a log as replay and the verifier do, with its keys and without."""
    with contextlib.closing(Database(path, writing=False)) as store:
        kept = store.snapshot()
        rows = list(store.rows())
        keys = verifier.read_keys(str(store.keys.path)) if store.keys.secret else None
        for known in (keys, None):
            with contextlib.suppress(verifier.BrokenLogError):
                verifier.verify(rows, None, 0 if kept is None else kept.number, known)
        founded = next(verified(store.read()), None)
        if founded is not None:
            State().apply(founded)
            replay(Trial.parse(founded.body["file"]), store.read())


def forged_log(path: Path, draw: random.Random) -> None:
    """Mangle the body, answer or time of an event, and chain all events again; half of the time with their marks."""
    with contextlib.closing(Database(path)) as store:
        before, forged, keyed = FIRST_HASH, [], draw.random() < 0.5
        events = list(store.read())
        place = draw.randrange(len(events))
        for number, event in enumerate(events):
            if number == place:
                field = draw.choice(("text", "text", "text", "answer", "time", "kind", "key"))
                old = getattr(event, field)
                new = draw.choice([each for each in CELLS if isinstance(each, str)])
                with contextlib.suppress(RecursionError, TypeError, ValueError):
                    new = canonical(json.loads(mangled_json(old, draw)))
                event = dataclasses.replace(event, **{field: new})
                if keyed:
                    event = dataclasses.replace(
                        event, request=(event.request or "").rpartition(":")[0] or None
                    ).marked()
            event = event.chained(before)
            before = event.hash
            forged.append(event.row)
        import sqlite3

        with contextlib.closing(sqlite3.connect(path)) as opened, opened:
            opened.execute("DELETE FROM events")
            opened.executemany("INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", forged)


def make_snapshot(path: Path) -> None:
    """Write what a snapshot has under its seal."""
    at = trials.desk()
    trials.Trialist(at, seed=0).play(3)
    path.write_bytes(pack_state(at.state, at.agent))


def forged_snapshot(path: Path, draw: random.Random) -> None:
    """Mangle the state within."""
    arrays = unpack_arrays(path.read_bytes())
    text = mangled_json(zlib.decompress(arrays["state.json"].tobytes()).decode(), draw)
    arrays["state.json"] = np.frombuffer(zlib.compress(text.encode("utf-8", "surrogatepass")), dtype=np.uint8)
    path.write_bytes(pack_arrays(arrays))


def make_outbox(path: Path) -> None:
    """Write the queue of a client with calls that wait, one that was refused, and an episode."""
    with contextlib.closing(Outbox(path)) as box:
        opened = json.loads(trials.desk().call("open", {"person": "p1", "context": trials.person(1)}).text)
        box.keep(opened, box.call("/v1/episodes", {"person": "p1"}, waits=True))
        box.refuse(box.call("/v1/episodes/3/close", {"cause": "x"}, waits=True), "it was refused")


def read_outbox(path: Path) -> None:
    """Read the queue as a client does that starts."""
    with contextlib.closing(Outbox(path)) as box:
        list(zip(range(3), box.waiting(), strict=False))
        box.refused()


def long_run() -> Run:
    """Return a run that has everything that one can have."""
    plain = new_run()
    delay, chosen = omg.delays.Geometric(2.0), omg.adversaries.WorstRegret(plain.adversary.contexts)
    return Run(plain.environment, chosen, plain.agent, delay=delay, ceiling=True)


def make_run(path: Path, new: Callable[[], Run] = new_run) -> None:
    """Save a run of a few episodes."""
    run = new()
    run.advance(5)
    run.save(path)


def write_export(path: Path) -> None:
    """Write a table with a row for every episode."""
    rows = [{name: json.dumps(each) for name, each in episode_record(episode).items()} for episode in episodes()]
    pandas.DataFrame(rows).to_csv(path, index=False)


def read_export(path: Path) -> None:
    """Read it as its documentation says."""
    omg.logs.read_export(pandas.read_csv(path, dtype={"context": str}), SPACE)


def read_settings(path: Path) -> None:
    """Change a study by the settings of a command, one in each line."""
    read_plan(SMALL, read_overrides(None, None, path.read_text(errors="replace").splitlines()))


def make_problem(path: Path) -> None:
    """Save a planning problem with everything that one can have."""
    table = np.ones((2, 3, 2)) / 2.0
    mdp = omg.TabularMDP(transitions=table, rewards=table[..., 0], horizon=2)
    omg.Problem(mdp=mdp, gamma=10.0, weights=table[..., 0], costs=table[None, ..., 0], budgets=[2.0]).save(path)


def read_study(path: Path) -> None:
    """Read the results of a study, with their logs, and go on with it."""
    found = load(path)
    assert len(found.log) >= 0
    plan = read_plan(STUDY, name="study")
    play_here(plan.tasks(), open_study(plan, path), lambda event: None)


def forged_study(path: Path, draw: random.Random) -> None:
    """Mangle a file of a study: a part of the log, a checkpoint, or JSON, of which the digest is made again."""
    file = draw.choice(sorted(each for each in path.rglob("*.*") if each.suffix in (".json", ".npz", ".parquet")))
    if file.suffix == ".json":
        found = mangled_value(json.loads(file.read_text()), draw)
        with contextlib.suppress(AttributeError, KeyError):
            digest, kind = found.pop("digest"), found.pop("format")
            found |= {"format": kind, "digest": digest_of(found) or digest}
        file.write_text(json.dumps(found))
    elif file.suffix == ".parquet":
        mangled_frame(file, draw)
    else:
        forged_arrays(file, draw, CHECKPOINT_FILE)


def write_tokens(path: Path) -> None:
    """Write a file of tokens."""
    tokens = Tokens(path)
    tokens.add("app", "the phones")
    tokens.add("phone", "somebody's", person="p1", rate=3.0, expires="2999-01-01")


def write_log(path: Path) -> None:
    """Write a log of episodes."""
    omg.Log(SPACE, episodes()).write(path)


def write_table(path: Path) -> None:
    """Write the table of a log, whose contexts are labels or the texts of records."""
    table = omg.Log(SPACE, episodes()).table()
    table["context"] = table["context"].astype(str)
    table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)


READERS = {
    "agent.npz": Reader("agent", lambda path: agent().save(path), omg.load, forged_arrays),
    "state.npz": Reader(
        "a state to restore", lambda path: agent().save(path), lambda path: agent().restore(path), forged_arrays
    ),
    "log.jsonl": Reader("log", write_log, lambda path: omg.logs.read_log(path, SPACE), mangled_lines),
    "table.csv": Reader("table", write_table, omg.logs.read_table, mangled_frame),
    "table.parquet": Reader("table", write_table, omg.logs.read_table, mangled_frame),
    **{
        file: Reader(
            kind, functools.partial(learners.write, file), functools.partial(learners.read, file), forged_arrays
        )
        for file, (kind, _) in learners.SUBJECTS.items()
    },
    "export.csv": Reader("export of a study", write_export, read_export, mangled_frame),
    "contexts.csv": Reader(
        "table of contexts",
        lambda path: path.write_text("age,lives\n30,alone\n40.5,with others\n"),
        lambda path: Folder(path.parent).contexts(path.name),
        mangled_frame,
    ),
    "settings": Reader(
        "settings of a command",
        lambda path: path.write_text("agents.omg.gamma = 100.0\nworlds.decoy.context_count = 4\nepisodes = 20\n"),
        read_settings,
        mangled_toml(TRIAL_WORDS),
    ),
    "trial.toml": Reader("trial", lambda path: path.write_text(trials.TEXT), Trial.read, mangled_toml(TRIAL_WORDS)),
    "whole.toml": Reader("trial", lambda path: path.write_text(WHOLE), Trial.read, mangled_toml(TRIAL_WORDS)),
    "study.toml": Reader(
        "study", lambda path: path.write_text(SMALL), lambda path: load_plan(str(path)), mangled_toml(TRIAL_WORDS)
    ),
    "people.csv": Reader(
        "roster",
        lambda path: path.write_text(
            "person,arm,zone,consent_from,end\np1,learning,Asia/Tokyo,2026-01-01,\np2,,,,2027-01-01\n"
        ),
        lambda path: read_roster(trials.trial(), path),
        mangled_frame,
    ),
    "tokens": Reader("tokens", write_tokens, read_token_file, mangled_lines),
    "trial.keys": Reader("key file", lambda path: KeyRing(path).found(), lambda path: KeyRing(path), mangled_rows),
    "trial.db": Reader("log of a trial", make_log, read_log, forged_log, (ValueError, OSError, StoreError)),
    "rows.db": Reader("log of a trial", make_log, read_log, mangled_rows, (ValueError, OSError, StoreError)),
    "snapshot": Reader(
        "snapshot", make_snapshot, lambda path: unpack_state(trials.trial(), path.read_bytes()), forged_snapshot
    ),
    "run.npz": Reader(
        "saved run",
        make_run,
        lambda path: new_run().restore(path),
        lambda path, draw: forged_arrays(path, draw, RUN_FILE),
    ),
    "long run.npz": Reader(
        "saved run",
        lambda path: make_run(path, long_run),
        lambda path: long_run().restore(path),
        lambda path, draw: forged_arrays(path, draw, RUN_FILE),
    ),
    "problem.npz": Reader(
        "planning problem",
        make_problem,
        omg.Problem.load,
        lambda path, draw: forged_arrays(path, draw, PROBLEM_FILE),
    ),
    "study": Reader(
        "study", lambda path: run_study(STUDY, path), read_study, forged_study, (ValueError, OSError), writes=True
    ),
    **{
        f"{name}.json": Reader(
            "body of a call",
            lambda path, body=body: path.write_text(json.dumps(body)),
            DESKS.read(name),
            mangled_lines,
            (Refusal,),
        )
        for name, body in CALLS.items()
    },
    "answer.json": Reader(
        "answer of a service", write_answer, read_answer, mangled_lines, (ValueError, ConnectionError)
    ),
    "events.jsonl": Reader("events for a follower", write_events, read_events, mangled_lines),
    "outbox.db": Reader("queue of a client", make_outbox, read_outbox, mangled_rows, writes=True),
}


KINDS = [list(files) for _, files in itertools.groupby(READERS, lambda file: READERS[file].name)]
"""Files that are read by the same code: one of each kind in turn is mangled."""


def attack(effort: float, seed: int, minutes: float = 0.0) -> Outcome:
    """Mangle files, read them, and look at what is said and what is left; go on for `minutes` of a processor.

    A mangled file by which a reader reaches a new branch of ours is kept in memory, and mangled again.
    """
    draw, outcome, reached = random.Random(seed), Outcome(), Reached()
    end, least = time.process_time() + 60.0 * minutes, max(len(KINDS), round(TRIES * effort)) if not minutes else 0
    with tempfile.TemporaryDirectory() as name:
        corpora, faults = dict[str, Corpus](), set[str]()
        for number in itertools.count():
            if number >= least and time.process_time() >= end:
                break
            file = draw.choice(KINDS[number % len(KINDS)])
            reader = READERS[file]
            if file not in corpora:
                corpora[file] = Corpus(prepared(reader, Path(name, file.replace(".", "-")) / file, reached))
            folder, corpus = Path(name, file.replace(".", "-")), corpora[file]
            lay_out(corpus.draw(draw), folder)
            mangle(reader, folder / file, corpora[draw.choice(sorted(corpora))], draw)
            mangled, known = content(folder), len(reached)
            outcome.tried += 1
            if (fault := said(reader, folder / file, outcome, reached)) and fault not in faults:
                faults.add(fault)
                kept = Path(tempfile.mkdtemp(prefix="readers-"))
                lay_out(mangled, kept)
                outcome.broken.append(f"seed {seed}, try {number}, {file}, kept in {kept}: {fault}")
            if len(reached) > known:
                corpus.add(mangled, draw)
    outcome.counts["branches"] = len(reached)
    outcome.counts["kept"] = sum(map(len, corpora.values()))
    return outcome


def prepared(reader: Reader, path: Path, reached: Reached) -> Files:
    """Make a valid file, and return the content of its folder; whatever reading it reaches is known from then on."""
    path.parent.mkdir()
    reader.make(path)
    valid = content(path.parent)
    with contextlib.suppress(Refusal):  # whatever a desk was asked before: a call may be made only once
        reader.read(path)  # what is compiled or imported is not counted
        with reached.watched():
            reader.read(path)
    lay_out(valid, path.parent)
    return valid


def mangle(reader: Reader, path: Path, other: Corpus, draw: random.Random) -> None:
    """Mangle a file as what it is, or as bytes."""
    if reader.mangle is not None and draw.random() < 0.6:
        # It cannot be written, or was mangled before and is no longer what it was.
        with contextlib.suppress(Exception):
            reader.mangle(path, draw)
    else:
        target = draw.choice(sorted(each for each in path.rglob("*") if each.is_file())) if path.is_dir() else path
        own = target.read_bytes()
        target.write_bytes(mangled_bytes(own, own if draw.random() < 0.5 else next(iter(other.valid.values())), draw))


def content(folder: Path) -> Files:
    """Return the files of a folder, but for locks and journals, which SQLite takes away."""
    kept = (path for path in sorted(folder.rglob("*")) if not path.name.endswith((".lock", "-journal")))
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept if path.is_file()}


def lay_out(files: Files, folder: Path) -> None:
    """Make these the files of a folder, and no others."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for name, each in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(each)


def said(reader: Reader, path: Path, outcome: Outcome, reached: Reached) -> str | None:
    """Read a mangled file; return what is wrong with the answer."""
    before, memory = content(path.parent), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fault = None
    try:
        with warnings.catch_warnings(), in_time(), contextlib.redirect_stderr(io.StringIO()), reached.watched():
            warnings.simplefilter("ignore")
            reader.read(path)
        outcome.counts["accepted"] += 1
    except TooLong:
        fault = "no answer"
    except reader.errors as error:
        outcome.counts["refused"] += 1
        if len(str(error).split()) < FEWEST_WORDS:
            fault = f"no sentence: {error!r}"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        own = [each for each in traceback.extract_tb(error.__traceback__) if "omg_" in each.filename][-1:]
        where = ", ".join(f"{Path(each.filename).name}:{each.lineno}" for each in [*own, place])
        fault = f"{type(error).__name__}: {error!s:.100} ({where})"
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > memory + MEMORY:
        fault = f"{fault or ''} it took more than a gigabyte"
    made = content(path.parent)
    if fault is None and not reader.writes and made != before:
        fault = f"changed {[name for name in made if made[name] != before.get(name)]}"
    return fault
