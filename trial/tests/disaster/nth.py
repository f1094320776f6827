"""The n-th failure: an I/O error, a full disk or no memory at the n-th operation, n = 1, 2, … until a run is clean.

`python -m trial.tests.disaster nth`. It fails once, or from then on until the run is over. Afterwards the same call is
made again: it must be answered, be in the log once, and the log must replay.
"""

import contextlib
import datetime
import errno
import io
import itertools
import json
import logging
import os
import sys
from pathlib import Path
from unittest import mock

import apsw

import omg_cmdp
import omg_trial
from omg_trial import desk as desks
from omg_trial.contract import KeyedCall, Refusal
from omg_trial.contract.calls import Look
from omg_trial.desk import Desk
from omg_trial.keys.ring import KeyFileError
from omg_trial.log.database import Database, StoreError
from omg_trial.operation.copies import Follower, copy_log
from omg_trial.replay import replay
from omg_trial.tokens import Tokens
from omg_trial.trial_file.trial import Trial
from omg_trial.watching.incidents import tick
from omg_trial.watching.process import Process
from trial.tests.disaster import files
from trial.tests.disaster.cuts import _Clock
from trial.tests.disaster.lookalike import Recorder, mounted
from trial.tests.disaster.platter import scratch
from trial.tests.disaster.world import TEXT, TRIAL, contract

BY_HAND = Trial.parse(TEXT.replace("[learning]", '[learning]\npublish = "by hand"'))
"""Its models wait until somebody publishes them."""
OURS = tuple(str(Path(package.__file__).parent) for package in (omg_trial, omg_cmdp))


class Failing:
    """Raises at the n-th operation since it was set, once or for good; 0 is never."""

    def __init__(self):
        self.set(0)

    def set(self, at, kind="", *, for_good=False):
        self.at, self.kind, self.for_good, self.count, self.failed = at, kind, for_good, 0, 0

    def due(self):
        """Return whether this operation fails."""
        if not self.at:
            return False
        self.count += 1
        fails = self.count == self.at or (self.for_good and self.count > self.at)
        self.failed += fails
        return fails

    def at_disk(self, what):
        """Stand in for an operation of SQLite on a file."""
        if self.kind == "error" and self.due():
            raise apsw.IOError("made to fail")
        if self.kind == "full" and what in ("write", "open") and self.due():
            raise apsw.FullError("made to fail")

    @contextlib.contextmanager
    def in_memory(self):
        """Let calls of our functions fail for want of memory."""

        def profile(frame, event, _):
            if event == "call" and frame.f_code.co_filename.startswith(OURS) and self.due():
                raise MemoryError

        if self.kind == "memory":
            sys.setprofile(profile)
        try:
            yield
        finally:
            sys.setprofile(None)

    @contextlib.contextmanager
    def in_files(self):
        """Let calls to the operating system about files fail, and what is written to them."""
        failing, real = self, {name: getattr(os, name) for name in ("open", "fsync", "replace", "unlink", "mkdir")}
        plain = io.open

        def fail():
            if failing.due():
                code = errno.ENOSPC if failing.kind == "full" else errno.EIO
                raise OSError(code, os.strerror(code))

        class File(io.FileIO):
            def write(self, data):
                fail()
                return super().write(data)

        def opening(path, mode="r", *given, **options):
            reads = not isinstance(path, int) and set(mode) <= set("rbt")
            if reads and failing.kind == "error":
                fail()
            if reads or isinstance(path, int):
                return plain(path, mode, *given, **options)
            fail()
            raw = io.BufferedWriter(File(path, mode.replace("b", "").replace("t", "")))
            return raw if "b" in mode else io.TextIOWrapper(raw, encoding=options.get("encoding"))

        def wrapped(name):
            def call(*given, **options):
                fail()
                return real[name](*given, **options)

            return call

        with contextlib.ExitStack() as stack:
            if self.kind in ("error", "full"):
                for name in real:
                    stack.enter_context(mock.patch.object(os, name, wrapped(name)))
                stack.enter_context(mock.patch.object(io, "open", opening))
            yield


# The service.


def _open(at, n):
    return "open", {"person": f"new-{at.state.number}-{n}", "context": "alone"}


def _opened(at, n):
    return json.loads(at.call(*_open(at, n)).text)["episode"]


def _person(at, n):
    return at.state.episodes[_opened(at, n)].person


def _with_version(at, n):
    _learned(at)
    return "roll back", {"version": at.state.versions[-2].number}


def _learned(at):
    at.call("learn", {})
    at.learn_here()


def _waiting(at, n):
    _learned(at)
    return "publish", {"version": at.state.waiting.number, "cause": "x"}


def _paused(at, n):
    about = {"person": _person(at, n), "cause": "x"}
    at.call("pause", about)
    return "resume", about


def _incident(at, n):
    TASKS["note"](at)
    return "acknowledge", {"incident": at.state.incidents[-1].number, "note": "seen"}


CALLS = {
    "open": _open,
    "decide": lambda at, n: ("decide", {"episode": _opened(at, n), "step": 0, "state": "took it"}),
    "report": lambda at, n: ("report", {"episode": _opened(at, n), "step": 0, "reward": 1.0}),
    "close": lambda at, n: ("close", {"episode": _opened(at, n)}),
    "enrol": lambda at, n: ("enrol", {"person": f"enrolled-{at.state.number}-{n}"}),
    "withdraw": lambda at, n: ("withdraw", {"person": _person(at, n)}),
    "erase": lambda at, n: ("erase", {"person": _person(at, n), "cause": "asked to"}),
    "learn": lambda at, n: ("learn", {}),
    "pause": lambda at, n: ("pause", {"person": _person(at, n), "cause": "x"}),
    "resume": _paused,
    "stop": lambda at, n: ("stop", {"person": _person(at, n), "cause": "x"}),
    "roll back": _with_version,
    "publish": _waiting,
    "acknowledge": _incident,
    "look": lambda at, n: ("look", {"what": "the overview"}),
}


def _tick(at):
    """Close what is overdue, and run the checks, as every minute."""
    at.clock.now += datetime.timedelta(days=15)
    tick(lambda task: task(at), Process(at.clock, at.store.folder))


TASKS = {
    "tick": _tick,
    "snapshot": Desk.snapshot,
    "model": Desk.learn_here,
    "note": lambda at: at.record("incident", {"severity": "yellow", "check": "disk", "message": "x"}),
}
"""What the service does by itself."""
STARTS = ("found", "start", "copy", "follow")
KINDS = ("error", "full", "memory")
BATCH = 15
"""Failures in one trial: each is recovered from by reading its whole log, so another one is founded then."""


def every_failure(path, kind, *, for_good=False, most=100_000, stride=1):
    """Fail at n = 1, 2, … until a run is clean; return the number of failures, and what was wrong.

    With a `stride`, only at n = 1, 1 + stride, …
    """
    how = f"{path}, {kind} {'for good' if for_good else 'once'}"
    play = _start if path in STARTS else _file if path in FILE_ACTS else None
    failing, wrong = Failing(), []
    if play is not None:
        failures = 0
        for n in range(1, most + 1, stride):
            try:
                found = play(path, failing, n, kind, for_good)
            except Exception as error:
                failing.set(0)
                found = [f"an error that nobody expects: {type(error).__name__}: {error}"]
            if found is None:
                break
            failures += 1
            wrong += [f"{how}, n = {n}: {each}" for each in found]
        return failures, wrong
    clean, failures, numbers = False, 0, iter(range(1, most + 1, stride))
    trial = BY_HAND if path == "publish" else TRIAL
    while not clean and len(wrong) <= 5 and (some := list(itertools.islice(numbers, BATCH))):
        failing.set(0)
        with scratch() as folder, _disk(failing), contextlib.closing(Database(Path(folder, "trial.db"))) as store:
            at = Desk(trial, store, clock=_Clock())
            for number in range(3):
                _opened(at, number)
            for n in some:
                try:
                    found = (_call if path in CALLS else _task)(at, path, failing, n, kind, for_good)
                except Exception as error:
                    failing.set(0)
                    found = [f"{type(error).__name__}: {error}"]
                if clean := found is None:
                    break
                failures += 1
                wrong += [f"{how}, n = {n}: {each}" for each in found]
            failing.set(0)
            wrong += [f"{how}, up to n = {n}: {each}" for each in replay(trial, store.read()).differences]
    return failures, wrong


@contextlib.contextmanager
def _disk(failing):
    recorder = Recorder(fail=failing.at_disk)
    quiet = mock.patch.object(logging.getLogger("omg_trial"), "disabled", True)
    with mounted(recorder), quiet, mock.patch.object(desks, "Contract", contract):
        yield
    recorder.unregister()


def _call(at, path, failing, n, kind, for_good):
    """Make a call that fails; None if it did not. Return what is wrong after it was made again."""
    name, fields = CALLS[path](at, n)
    if name == "learn" and at.state.learning is not None:
        at.learn_here()
    key = f"key-{path.replace(' ', '-')}-{n}"
    request = KeyedCall(Look(**fields), None, key) if name == "look" else at.prepare(name, fields, key)
    failing.set(n, kind, for_good=for_good)
    told = None
    with failing.in_memory(), contextlib.suppress(StoreError, MemoryError, Refusal, KeyFileError):
        [told] = at.answer([request])
    failed = failing.failed
    failing.set(0)
    [again] = at.answer([request])
    if isinstance(again, Refusal):
        return [f"refused when it is made again: {again.message}"]
    wrong = [] if told is None or isinstance(told, Refusal) or told[:2] == again[:2] else ["another answer"]
    if isinstance(told, Refusal) and told.status != 503:
        wrong.append(f"refused: {told.message}")
    mark = at.store.keys.mark("key", key)
    events = [event for event in at.store.read() if event.key == mark]
    wrong += [f"{len(events)} events"] * (len(events) != 1)
    if name == "erase" and _holds(at.store.keys, at.store.keys.alias(fields["person"])):
        wrong.append("the key of an erased person is in the file")
    return wrong if failed else None


def _holds(ring, alias):
    return type(ring)(ring.path).holds(alias)


def _task(at, path, failing, n, kind, for_good):
    """Let the service do something by itself that fails; then it must answer, and do it."""
    if path == "model" and at.state.learning is None:
        at.call("learn", {})
    if path == "tick":
        _opened(at, n)
    failing.set(n, kind, for_good=for_good)
    with failing.in_memory(), contextlib.suppress(StoreError, MemoryError, Refusal, KeyFileError):
        TASKS[path](at)
    failed = failing.failed
    failing.set(0)
    with contextlib.suppress(StoreError):  # the first call after it may find the store closed
        _opened(at, n)
    _opened(at, n)
    if path != "model":
        TASKS[path](at)
    return [] if failed else None


def _start(path, failing, n, kind, for_good):
    """Found a trial, start one, or copy its log, and fail; the next try must succeed."""
    with scratch() as folder, _disk(failing):
        database, copies = Path(folder, "trial.db"), path in ("copy", "follow")
        target = Path(folder, "copy.db" if path == "copy" else "followed/log.db")
        if path != "found":
            for name, content in _started().items():
                Path(folder, name).write_bytes(content)

        def act():
            if path == "copy":
                copy_log(str(database), target)
            elif path == "follow":
                with contextlib.closing(Follower(str(database), target.parent)) as follower:
                    follower.catch_up()
            else:
                with contextlib.closing(Database(database)) as store:
                    Desk(TRIAL, store, clock=_Clock(), correct_clock=True)

        failing.set(n, kind, for_good=for_good)
        with (
            failing.in_files(),
            failing.in_memory(),
            contextlib.suppress(StoreError, MemoryError, KeyFileError, OSError, ValueError),
        ):
            act()
        failed = failing.failed
        failing.set(0)
        if path == "copy":
            target.unlink(missing_ok=True)
        try:
            act()
            if copies:
                return _compare(database, target) if failed else None
            with contextlib.closing(Database(database)) as store:
                at = Desk(TRIAL, store, clock=_Clock(), correct_clock=True)
                _opened(at, n)
                found = replay(TRIAL, store.read()).differences
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        return found if failed else None


def _compare(database, target):
    logs = []
    for path in (database, target):
        with contextlib.closing(Database(path, writing=False, keys=database.with_suffix(".keys"))) as store:
            logs.append([event.row for event in store.read()])
    return [] if logs[0] == logs[1] else ["the copy is another log"]


def _started(known={}):  # noqa: B006 - made once
    """Return the files of a trial with some episodes, a model and a snapshot."""
    if not known:
        with scratch() as folder:
            with contextlib.closing(Database(Path(folder, "trial.db"))) as store:
                at = Desk(TRIAL, store, clock=_Clock())
                for number in range(4):
                    episode = _opened(at, number)
                    at.call("decide", {"episode": episode, "step": 0, "state": "took it"})
                    at.call("close", {"episode": episode})
                at.call("learn", {})
                at.learn_here()
                at.snapshot()
                _opened(at, 9)
            known.update({name: Path(folder, name).read_bytes() for name in ("trial.db", "trial.keys")})
    return known


# Files of the library and the lab.


def _file(path, failing, n, kind, for_good):
    """Save an agent, write a log or play a study, and fail; what was there stays, and the next try must succeed."""
    with scratch() as folder:
        act, check = FILE_ACTS[path](Path(folder))
        failing.set(n, kind, for_good=for_good)
        with failing.in_files(), failing.in_memory(), contextlib.suppress(OSError, ValueError, MemoryError):
            act()
        failed = failing.failed
        failing.set(0)
        try:
            found = check()
            act()
            left = [file.name for file in Path(folder).rglob(".*.tmp-*")]
            found = [*found, *check(), *([f"it left {left}"] if left and not (for_good or path == "study") else [])]
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        return found if failed else None


def _agent_acts(folder):
    agent, path = files._agent(), folder / "agent.npz"
    agent.save(path)
    return lambda: agent.save(path), lambda: files.check_agent(folder)


def _log_acts(folder):
    import gymnasium

    import omg_cmdp as omg

    env, path = gymnasium.make("FrozenLake-v1", is_slippery=False), folder / "log.jsonl"
    space = omg.environments.gymnasium_space(env, horizon=3)
    agent = omg.agents.Uniform(space)

    def act():
        omg.play(env, agent, [0, 0], log=path, overwrite=True)

    act()
    return act, lambda: [] if len(omg.logs.read_log(path, space).episodes) <= 2 else ["too many episodes"]


def _token_acts(folder):
    path = folder / "tokens"
    kept, tokens = Tokens(path).add("analyst", "the first"), Tokens(path)  # which has not read the file yet

    def check():
        return ["a token is lost"] * (Tokens(path).find(kept) is None) + ["it is not found"] * (
            tokens.find(kept) is None
        )

    return lambda: tokens.add("analyst", "another"), check


FILE_ACTS = {"agent": _agent_acts, "log": _log_acts, "tokens": _token_acts}
"""What is done, and checked; `tests.disaster.study` adds a study."""
