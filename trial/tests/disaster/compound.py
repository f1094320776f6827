"""Two faults in a row, and faults in the middle of what is rare: `python -m trial.tests.disaster compound`.

A fault strikes at every point of founding, starting, upgrading, recovering, keeping a snapshot, publishing a model,
copying the log and erasing, and a second one while the service recovers from the first. Some scenes have a fault that
no point has.
"""

import contextlib
import itertools
import json
import shutil
import sqlite3
import threading
import time
from pathlib import Path
from unittest import mock

from omg_cmdp.provenance import provenance
from omg_trial import desk as desks
from omg_trial import service as services
from omg_trial import snapshots
from omg_trial.contract import Refusal
from omg_trial.desk import Desk
from omg_trial.keys.ring import KeyFileError
from omg_trial.learning import Trainer
from omg_trial.log.database import Database, StoreError
from omg_trial.log.events import BrokenChainError, Chain
from omg_trial.operation.copies import copy_log
from omg_trial.replay import replay
from omg_trial.trial_file.trial import Trial
from trial.tests.disaster.cuts import _Clock
from trial.tests.disaster.disk import Disk, Fault
from trial.tests.disaster.kernel import Crash, Owner
from trial.tests.disaster.nth import _started
from trial.tests.disaster.platter import scratch
from trial.tests.disaster.world import TEXT, TRIAL

ENDS = (StoreError, KeyFileError, BrokenChainError, Refusal, MemoryError, OSError, sqlite3.Error, Crash)


class _Process:
    """One process after another on the same files; `owner` is the one that runs."""

    owner = None

    def begin(self):
        self.owner = Owner("service")


@contextlib.contextmanager
def scene(started=True):
    """Yield a folder with a trial, and the disk under it."""
    process = _Process()
    disk = Disk(process, lambda owner: setattr(owner, "dead", True))
    with scratch() as folder:
        for name, content in _started().items() if started else ():
            Path(folder, name).write_bytes(content)
        with disk.mounted():
            yield Path(folder), disk, process


def live(folder, process, act=lambda at: None):
    """Start a process, let it act, and end it however it ends; return the desk if it started."""
    process.begin()
    store = at = None
    try:
        store = Database(folder / "trial.db")
        at = Desk(TRIAL, store, clock=_Clock(), correct_clock=True)
        act(at)
    except ENDS:
        pass
    finally:
        if store is not None:
            store.close()
    return at


def end_well(folder, process):
    """Return what is wrong with a trial after all faults: it must start, answer, and replay."""
    process.begin()
    try:
        with contextlib.closing(Database(folder / "trial.db")) as store:
            at = Desk(TRIAL, store, clock=_Clock(), correct_clock=True)
            at.call("open", {"person": "last", "context": "alone"}, "last")
            erased = [alias for alias in at.state.erased if type(store.keys)(store.keys.path).holds(alias)]
            wrong = [f"the key of {each} is there" for each in erased]
            if (folder / "copy.db").exists():
                with contextlib.closing(Database(folder / "copy.db", writing=False, keys=store.keys.path)) as copy:
                    wrong += [] if at.chain.has(Chain(copy.rows()).head) else ["the copy is another log"]
            return replay(TRIAL, store.read()).differences + wrong
    except ENDS as error:
        return [f"{type(error).__name__}: {error}"]


def _learn(at):
    at.call("learn", {})
    at.learn_here()


ACTS = {
    "start": lambda at: None,
    "upgrade": lambda at: None,
    "copy": lambda at: copy_log(str(at.store.folder / "trial.db"), at.store.folder / "copy.db"),
    "snapshot": Desk.snapshot,
    "publish": _learn,
    "erase": lambda at: at.call("erase", {"person": sorted(at.state.people)[0], "cause": "asked to"}),
    "recover": lambda at: (setattr(at, "lost", True), at.call("learn", {})),
}


@contextlib.contextmanager
def newer():
    """Let the software be newer than the one that wrote the log, with another format of snapshots."""
    software = {**provenance(), "omg-cmdp": "newer"}
    with (
        mock.patch.object(snapshots, "FORMAT", snapshots.FORMAT + 1),
        mock.patch.object(desks, "provenance", return_value=software),
    ):
        yield


def struck_twice(name, kinds=("crash", "broken"), stride=1):
    """Strike at every point of an act, and again while the next process starts; return how often, and what is wrong."""
    wrong, strikes, first = [], 0, 0
    software = newer if name == "upgrade" else contextlib.nullcontext
    while True:
        with scene(started=name != "found") as (folder, disk, process), software():
            disk.faults = [Fault("service", first, kinds[first % len(kinds)])]
            live(folder, process, ACTS.get(name, lambda at: None))
            if disk.faults:  # it did not come to that
                return strikes, wrong
            disk.faults = [Fault("service", (7 * first) % 40, kinds[strikes % len(kinds)])]
            live(folder, process)
            disk.faults = []
            strikes += 2
            wrong += [f"{name}, struck at {first}: {each}" for each in end_well(folder, process)]
        first += stride


# Scenes.


def _older_twice():
    """The database comes back older, and reading it fails once: what was acknowledged must not be decided again."""
    for point in range(0, 30, 2):
        with scene() as (folder, disk, process):
            process.begin()
            older = (folder / "trial.db").read_bytes()
            with contextlib.closing(Database(folder / "trial.db")) as store:
                at = Desk(TRIAL, store, clock=_Clock(), correct_clock=True)
                at.call("open", {"person": "new", "context": "alone"}, "one")
                (folder / "trial.db").unlink()
                (folder / "trial.db").write_bytes(older)
                disk.faults = [Fault("service", 0, "broken"), Fault("service", 5 + point, "broken")]
                for _ in range(5):
                    with contextlib.suppress(*ENDS):
                        at.call("open", {"person": "other", "context": "alone"}, "two")
                        return [f"an older log was believed after a failure at point {point}"]
    return []


def _publishing():
    """A commit is kept, the connection breaks, and a model is published before anybody asks again."""
    for point, kind in itertools.product(range(12), ("broken", "no memory")):
        with scene() as (folder, disk, process):
            process.begin()
            with contextlib.closing(Database(folder / "trial.db")) as store:
                at = Desk(TRIAL, store, clock=_Clock(), correct_clock=True)
                at.call("learn", {})
                task = at.state.learning
                lesson = at.trainer.learn(task)
                disk.faults = [Fault("service", point, kind)]
                with contextlib.suppress(*ENDS):
                    at.call("open", {"person": "new", "context": "alone"}, "one")
                disk.faults = []
                with contextlib.suppress(*ENDS):
                    at.publish_model(task, lesson)
                for _ in range(3):
                    with contextlib.suppress(StoreError):
                        at.call("open", {"person": "other", "context": "alone"}, "two")
                if at.damage is not None or at.lost:
                    return [f"the service does not recover, after {kind} at point {point}: {at.damage}"]
            if wrong := end_well(folder, process):
                return wrong
    return []


def _replaced_file():
    """The file is moved away while the service runs: what it acknowledges then must be in a file that is there."""
    with scene() as (folder, _, process):
        process.begin()
        with contextlib.closing(Database(folder / "trial.db")) as store:
            at = Desk(TRIAL, store, clock=_Clock(), correct_clock=True)
            shutil.copy(folder / "trial.db", folder / "copy.db")
            (folder / "copy.db").replace(folder / "trial.db")
            with contextlib.suppress(StoreError):
                told = at.call("open", {"person": "new", "context": "alone"}, "one")
                with contextlib.closing(Database(folder / "trial.db", writing=False)) as reader:
                    if told.text not in [event.answer for event in reader.read()]:
                        return ["a call was acknowledged, and is in no file"]
    return []


def _damage():
    """A row before the snapshot is changed."""
    with scene() as (folder, _, process):
        with contextlib.closing(sqlite3.connect(folder / "trial.db")) as file, file:
            file.execute("UPDATE events SET time = '2030' WHERE number = 3")
        return ["a damaged log is served"] if live(folder, process) is not None else []


def _amid_learning():
    """A snapshot is taken while a model learns, which is then published; the next start begins from the snapshot."""
    with scene() as (folder, _, process):

        def act(at):
            at.call("learn", {})
            at.snapshot()
            at.learn_here()

        live(folder, process, act)
        try:
            return end_well(folder, process)
        except AssertionError:
            return ["a start after a snapshot amid learning fails"]


def _reopened():
    """Whoever opens, looks, closes and opens again has the same draws."""
    with scene() as (folder, _, process):
        tables = []

        def act(at):
            for _ in range(4):
                opened = json.loads(at.call("open", {"person": "new", "context": "alone"}).text)
                at.call("close", {"episode": opened["episode"]})
                tables.append((opened["policy"], opened["drawn"]))

        live(folder, process, act)
        drawn = {str(table[1]) for table in tables}
        return ["opening again draws again"] if len(drawn) > 1 or len(tables) < 4 else []


def _no_memory_for_a_snapshot():
    """Whatever fails between two batches, the thread that answers goes on."""

    class Short(Desk):
        def snapshot(self):
            raise MemoryError

    settings = {"SNAPSHOT_EVENTS": 1, "SNAPSHOT_SHARE": 0.0}
    hook, threading.excepthook = threading.excepthook, lambda _: None
    with contextlib.closing(Database(":memory:")) as store, mock.patch.multiple(services, **settings):
        at = Short(TRIAL, store)
        service = services.Service(at)
        try:
            for number in range(3):
                call = at.prepare("open", {"person": f"p{number}", "context": "alone"})
                service.submit(call).result(timeout=5.0)
        except TimeoutError:
            return ["nobody answers any more"]
        finally:
            service.end()
            threading.excepthook = hook
    return []


def _no_memory_for_a_lesson():
    """Memory is short while a model learns: it learns when there is some again."""
    learn, short = Trainer.learn, itertools.chain((True,), itertools.repeat(False))

    def learning(trainer, task):
        if next(short):
            raise MemoryError
        return learn(trainer, task)

    hook, threading.excepthook = threading.excepthook, lambda _: None
    with contextlib.closing(Database(":memory:")) as store, mock.patch.object(Trainer, "learn", learning):
        service = services.Service(Desk(TRIAL, store))
        try:
            service.submit(service.desk.prepare("learn", {})).result(timeout=5.0)
            for _ in range(500):
                if service.submit(lambda at: at.state.learning).result(timeout=5.0) is None:
                    return []
                time.sleep(0.02)
        finally:
            service.end()
            threading.excepthook = hook
    return ["nothing is learned any more"]


def _other_order():
    """The columns of a context change their order, and with it the features: it is another trial."""
    columns = ["[context.columns.size]\nlow = 0\nhigh = 9", "[context.columns.age]\nlow = 20\nhigh = 90"]
    text = TEXT.replace('oracle = "counts"', "")
    one, other = (
        Trial.parse(text.replace('[context]\nlabels = ["alone", "with others"]', "\n".join(order)))
        for order in (columns, columns[::-1])
    )
    with scratch() as folder:
        for trial in (one, other):
            with contextlib.closing(Database(Path(folder, "trial.db"))) as store, contextlib.suppress(ValueError):
                Desk(trial, store, clock=_Clock(), correct_clock=True)
                if trial is other:
                    return ["a trial goes on although its columns have another order"]
    return []


FAULTS = {
    "other order": _other_order,
    "no memory for a snapshot": _no_memory_for_a_snapshot,
    "no memory for a lesson": _no_memory_for_a_lesson,
    "older, twice": _older_twice,
    "publishing": _publishing,
    "replaced file": _replaced_file,
    "damage": _damage,
    "amid learning": _amid_learning,
    "reopened": _reopened,
}
