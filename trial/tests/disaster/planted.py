"""Bugs that are planted, one at a time, and the tool that finds each: `python -m trial.tests.disaster planted`.

Six are of an earlier attack on the service; two are found where there is a server.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import sqlite3
import time
import tomllib
from unittest import mock

import sqlalchemy

from omg_cmdp import persistence
from omg_trial import clock, decisions, desk, service, snapshots
from omg_trial.client import outbox
from omg_trial.desk import Desk
from omg_trial.keys.ring import KeyRing
from omg_trial.log import database, events
from omg_trial.log.database import Database, StoreError
from omg_trial.operation import copies
from omg_trial.tokens import Token, Tokens
from omg_trial.trial_file.trial import Trial
from trial.tests.disaster import compound, cuts, nth, servers, simulation


@dataclasses.dataclass(frozen=True)
class Bug:
    """A bug: what is wrong, where, and what looks for it."""

    name: str
    where: object
    attribute: str
    wrong: object
    find: object

    def plant(self):
        """Return a context in which the bug is there."""
        return mock.patch.object(self.where, self.attribute, self.wrong, create=True)


# What looks for bugs: generators of findings, one for each seed.


def simulated():
    def find():
        for seed in range(40):
            yield f"seed {seed}", simulation.play(seed)[0]

    find.tool = "simulation"
    return find


def cut(kind, count=300):
    def find():
        for seed in range(10):
            yield f"seed {seed}", cuts.power_cuts(kind, seed, count)

    find.tool = f"power cuts ({kind})"
    return find


def failing(path, kind, for_good=False, most=200):
    def find():
        yield f"{path}, {kind}", nth.every_failure(path, kind, for_good=for_good, most=most)[1]

    find.tool = "n-th failure"
    return find


def compounded(name):
    def find():
        yield name, compound.FAULTS[name]()

    find.tool = "compound faults"
    return find


def struck(name):
    def find():
        yield name, compound.struck_twice(name)[1]

    find.tool = "compound faults"
    return find


def served(name):
    def find():
        yield name, servers.SCENES[name]()

    find.tool = "PostgreSQL"
    return find


# The bugs.


def _answer_before_commit(self, batch):
    """Acknowledge, and keep later."""
    self._late = [*getattr(self, "_late", []), *batch]
    if len(self._late) > 2:
        rows, self._late = self._late, []
        _append(self, rows)


def _save_after(self, batch):
    """Write the keys after the events that need them."""
    save, self.keys.save = self.keys.save, lambda: None
    try:
        _append(self, batch)
    finally:
        del self.keys.save
    save()


def _without_check(self, *heads):
    return _load(self)


def _late_check(self, *heads):
    """Compare the head when everything is read: a failure in between forgets what was written."""
    _load(self)
    if heads and self.chain.head not in heads:
        raise self._damaged("another head")


def _after_only_store(self):
    with mock.patch.object(service, "_logging", _logging_only_store):
        _after(self)


def _learn_unguarded(self):
    while (task := self._lessons.get()) is not None:
        lesson = self.desk.trainer.learn(task)
        with contextlib.suppress(StoreError):
            self.submit(functools.partial(Desk.publish_model, task=task, lesson=lesson), wait=True).result()


@contextlib.contextmanager
def _logging_only_store(_):
    with contextlib.suppress(StoreError):
        yield


@contextlib.contextmanager
def _without_recovery(self):
    lost, self.lost = self.lost, False
    try:
        with _all_or_nothing(self):
            yield
    finally:
        self.lost = self.lost or lost


def _publish_lost(self, task, lesson):
    """Publish although the state is ahead of the store."""
    with mock.patch.object(Desk, "_all_or_nothing", _without_recovery):
        _publish_model(self, task, lesson)


def _publish_every_other(self, task, lesson):
    """Throw every other lesson away."""
    _publish_every_other.count = getattr(_publish_every_other, "count", 0) + 1
    if _publish_every_other.count % 2:
        _publish_model(self, task, lesson)


def _publish_anything(self, task, lesson):
    _publish_model(self, task, lesson._replace(refusal=None))


def _destroy_in_memory(self, alias):
    """Forget a key before it is gone from the file."""
    self._keys[alias] = self._keys["snapshot"] = None
    self._write([alias, "snapshot"], vacuum=True)


def _write_in_two(self, names, *, vacuum=False):
    """Make the table in a transaction of its own."""
    if self.path is None:
        return
    with contextlib.closing(sqlite3.connect(str(self.path))) as file:
        file.execute("CREATE TABLE IF NOT EXISTS keys (name TEXT PRIMARY KEY, key BLOB, mark TEXT NOT NULL)")
        with file:
            file.executemany("INSERT OR REPLACE INTO keys VALUES (?, ?, ?)", map(self._row, names))


def _set_up(*pragmas):
    def set_up(connection, _):
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}").close()

    return set_up


def _new_key_every_time(self, path, body, *, waits):
    found = _call(self, path, body, waits=waits)
    self._file.execute("UPDATE calls SET key = key || 'x' WHERE number = ?", (found.number,))
    return found._replace(key=found.key + "x")


def _uniform_by_clock(secret, person, occasion, step):
    """Draw by a cursor that everybody shares."""
    _uniform_by_clock.count = getattr(_uniform_by_clock, "count", 0) + 1
    return _uniform(secret, person, f"{occasion} {_uniform_by_clock.count}", step)


def _clock_believes(self):
    return self._read()


def _restore_any(trial, store, chain):
    """Believe a snapshot without its digest, and forget learning that is under way."""
    state, arrays = _restore_state(trial, store, chain)
    state.learning = None
    return state, arrays


def _sorted_digest(self):
    """Tell a trial by its settings, whatever their order."""
    return hashlib.sha256(json.dumps(tomllib.loads(self.text), sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def _unsynced_file(target):
    """Rename a file before its content is on disk."""
    temporary = target.with_name(f".{target.name}.tmp")
    yield temporary
    temporary.replace(target)
    persistence._sync_folder(target.parent)


@contextlib.contextmanager
def _file_in_place(target):
    """Write a file where it will be, at once."""
    yield target


def _seen_before_read(self):
    """Take a file that cannot be read for one without tokens."""
    if not self.path.exists():
        return
    status = self.path.stat()
    if (seen := (status.st_ino, status.st_mtime_ns, status.st_size)) != self._seen:
        self._known, self._seen = {}, seen
        found = [Token.model_validate_json(line) for line in self.path.read_text().splitlines()]
        self._known = {each.hash: each for each in found}


def _occasion_again(self, person):
    return f"#{self.number}"


_append, _load, _after = Database.append, Desk._load, service.Service._after
_all_or_nothing, _publish_model, _call = Desk._all_or_nothing, Desk.publish_model, outbox.Outbox.call
_uniform, _restore_state = decisions.uniform, snapshots.restore_state

BUGS = (
    Bug("answers leave before they are kept", Database, "append", _answer_before_commit, simulated()),
    Bug("the thread that answers ends when memory is short", service.Service, "_after", _after_only_store,
        compounded("no memory for a snapshot")),
    Bug("the thread that learns ends when memory is short", service.Service, "_learn", _learn_unguarded,
        compounded("no memory for a lesson")),
    Bug("a model that failed its checks is published", Desk, "publish_model", _publish_anything, simulated()),
    Bug("a model that was learned is thrown away", Desk, "publish_model", _publish_every_other, simulated()),
    Bug("a model is published while the state is ahead", Desk, "publish_model", _publish_lost,
        compounded("publishing")),
    Bug("an older log is believed if recovering fails once", Desk, "_load", _late_check, compounded("older, twice")),
    Bug("the outbox forgets a call before its answer", outbox.Outbox, "waiting", lambda self: iter(()), simulated()),
    Bug("a call that is made again has another key", outbox.Outbox, "call", _new_key_every_time, simulated()),
    Bug("draws depend on the order of calls", decisions, "uniform", _uniform_by_clock, simulated()),
    Bug("no memory is told as a refusal", desk, "MemoryError", KeyboardInterrupt, failing("open", "memory", most=30)),
    Bug("a key is forgotten, and stays in its file", KeyRing, "destroy", _destroy_in_memory, failing("erase", "error")),
    Bug("tokens that cannot be read are forgotten", Tokens, "_read", _seen_before_read, failing("tokens", "error")),
    Bug("keys are written after the events", Database, "append", _save_after, cut("trial")),
    Bug("the key file is made in two steps", KeyRing, "_write", _write_in_two, cut("trial", 1500)),
    Bug("commits are not synced", database, "set_up_to_write", _set_up("synchronous = OFF"), cut("trial", 60)),
    Bug("the journal is deleted, its folder not synced", database, "set_up_to_write",
        _set_up("journal_mode = DELETE", "synchronous = FULL"), cut("trial")),
    Bug("there is no journal", database, "set_up_to_write", _set_up("journal_mode = OFF"), cut("trial")),
    Bug("files are renamed before they are synced", persistence, "whole_file", _unsynced_file, cut("agent", 100)),
    Bug("renamed files are not synced in their folder", persistence, "_sync_folder", lambda _: None, cut("study", 100)),
    Bug("a copy is there before it is whole", copies, "whole_file", _file_in_place, struck("copy")),
    Bug("a pooler is not noticed", database, "HOLDS_LOCK", sqlalchemy.text("SELECT true"),
        served("PostgreSQL, behind a pooler")),
    Bug("a server that comes back older is not noticed", Desk, "_load", _without_check, served("PostgreSQL, older")),
    # Of an earlier attack, but for the call that is done again.
    Bug("columns in another order are the same trial", Trial, "digest", property(_sorted_digest),
        compounded("other order")),
    Bug("a start after a snapshot amid learning fails", desk, "restore_state", _restore_any,
        compounded("amid learning")),
    Bug("a damaged log behind a snapshot is served", events, "check_link", lambda before, number, row: row[7],
        compounded("damage")),
    Bug("a failover to an older replica is not noticed", Desk, "_load", _without_check, simulated()),
    Bug("one wrong clock is believed", clock.SteadyClock, "__call__", _clock_believes, simulated()),
    Bug("opening again draws again", desk.Desk, "_stored", lambda self, keys: {}, simulated()),
    Bug("an occasion without a name is new every time", snapshots.State, "next_occasion", _occasion_again,
        compounded("reopened")),
)  # fmt: skip


def look_for(bug):
    """Return where a bug was found, and after how many seconds; None if it was not."""
    began = time.monotonic()
    with bug.plant():
        for place, wrong in bug.find():
            if wrong:
                return place, time.monotonic() - began, wrong[0]
    return None, time.monotonic() - began, ""


def table(names=()):
    """Print which tool finds each bug, and return how many were not found."""
    missed = 0
    for bug in (each for each in BUGS if not names or each.name in names):
        place, seconds, wrong = look_for(bug)
        missed += place is None
        print(f"| {bug.name} | {bug.find.tool} | {place or 'not found'} | {seconds:.0f} s | {wrong[:90]}", flush=True)
    return missed
