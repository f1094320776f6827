"""Power cuts of the service's log, of its key file and of a client's outbox: `python -m trial.tests.disaster cuts`.

A workload is recorded once, by a file system under SQLite that sees every write and sync. Then power is cut at random
moments, many times: what the disk may hold is laid out, opened and verified; now and then the service goes on with it.
"""

import contextlib
import datetime
import functools
import json
import random
from pathlib import Path

from omg_trial.client.outbox import Outbox
from omg_trial.desk import Desk
from omg_trial.log.database import Database
from omg_trial.log.events import Chain
from trial.tests.disaster import files
from trial.tests.disaster.lookalike import Recorder, mounted
from trial.tests.disaster.platter import Cut, digest, lay_out, scratch
from trial.tests.disaster.world import EPOCH, TRIAL

GO_ON = 50
"""After one cut in this many the whole service is started."""


class _Clock:
    now = EPOCH

    def __call__(self):
        self.now += datetime.timedelta(minutes=1)
        return self.now


@contextlib.contextmanager
def recorded(folder):
    """Record what happens in a folder."""
    cut = Cut(folder)
    recorder = Recorder(note=lambda what, path, *given: cut.note(what, str(path), *given))
    with mounted(recorder):
        yield cut
    recorder.unregister()


def record_trial(seed, calls=40):
    """Record a trial: calls of all kinds, snapshots, models, an erasure, two starts."""
    draw = random.Random(f"trial {seed}")
    with scratch() as folder, recorded(folder) as cut:
        clock, erased = _Clock(), []
        for _ in range(2):
            with contextlib.closing(Database(Path(folder, "trial.db"))) as store:
                at = Desk(TRIAL, store, clock=clock)
                _promise(cut, at, erased)
                for number in range(calls // 2):
                    _act(at, draw, number, erased)
                    _promise(cut, at, erased)
    return cut


def _promise(cut, at, erased):
    cut.promise(functools.partial(check_trial, head=at.chain.head, erased=tuple(erased)))


def _act(at, draw, number, erased):
    """Make one call, or what the service does by itself."""
    opened = [each for each in at.state.open if len(at.state.episodes[each].choices) < 2]
    what = draw.choice(["open", "open", "step", "step", "step", "close", "snapshot", "learn", "erase"])
    if what == "snapshot":
        at.snapshot()
    elif what == "learn" and at.state.learning is None:
        at.call("learn", {})
        at.learn_here()
    elif what == "erase" and len(at.state.people) > 3:
        person = sorted(at.state.people)[0]
        erased.append(at.store.keys.alias(person))
        at.call("erase", {"person": person, "cause": "asked to"})
    elif what == "step" and opened:
        step = len(at.state.episodes[opened[0]].choices)
        at.call("decide", {"episode": opened[0], "step": step, "state": "took it"})
        at.call("report", {"episode": opened[0], "step": step, "reward": 1.0, "next_state": "took it"})
    elif what == "close" and at.state.open:
        at.call("close", {"episode": next(iter(at.state.open))})
    else:
        at.call("open", {"person": f"p{at.state.number}", "context": "alone"})


def check_trial(folder, go_on=False, head=None, erased=()):
    """Return what is wrong with the log and the keys that are left; `head` was acknowledged."""
    path, wrong = Path(folder, "trial.db"), []
    if not path.exists():
        return [f"there is no database, and {head} was acknowledged"] if head else []
    with contextlib.closing(Database(path)) as store:
        events = list(store.read())
        chain = Chain(event.row for event in events)
        if head is not None and not chain.has(head):
            wrong.append(f"{head} was acknowledged, and the log ends with {chain.head[:12]}")
        for event in events:
            event.body  # noqa: B018 - every key is there
        wrong += [f"the key of {alias} is there, and was destroyed" for alias in erased if store.keys.holds(alias)]
        if go_on:
            at = Desk(TRIAL, store, clock=_Clock(), correct_clock=True)
            at.call("open", {"person": "new", "context": "alone"}, "new")
            at.snapshot()
    return wrong


def record_outbox(seed, calls=30):
    """Record a client's outbox: a call is there from when it is made until it is answered."""
    draw, waiting = random.Random(f"outbox {seed}"), []
    with scratch() as folder, recorded(folder) as cut:
        outbox = Outbox(Path(folder, "outbox"))
        for number in range(calls):
            if waiting and draw.random() < 0.4:
                outbox.done(waiting.pop(draw.randrange(len(waiting))))
            else:
                waiting.append(outbox.call(f"/v1/{number}", {"step": number}, waits=True))
            cut.promise(functools.partial(check_outbox, keys=frozenset(each.key for each in waiting)))
        outbox.close()
    return cut


def check_outbox(folder, go_on=False, keys=frozenset()):
    """Return what is wrong with an outbox; these calls wait, and at most one more or one less."""
    path = Path(folder, "outbox")
    if not path.exists():
        return [f"{len(keys)} calls are lost"] if keys else []
    outbox = Outbox(path)
    rows = outbox._file.execute("SELECT key, body FROM calls").fetchall()
    outbox.close()
    found = {key for key, body in rows if json.loads(body) is not None}
    return [] if len(found ^ keys) <= 1 else [f"the outbox has {len(found)} calls, and should have {len(keys)}"]


RECORDS = {
    "trial": (record_trial, check_trial),
    "outbox": (record_outbox, check_outbox),
    "agent": (files.record_agent, files.check_agent),
}
"""How each workload is recorded, and checked before the first promise; `tests.disaster.study` adds one of the lab."""


def power_cuts(kind, seed, count, go_on=GO_ON, seen=None):
    """Record a workload, cut the power `count` times, and return what was wrong.

    What is left is checked once if it comes again under the same promise; `seen` is filled with what was.
    """
    draw, wrong, seen = random.Random(f"{kind} {seed}"), [], set() if seen is None else seen
    record, check_first = RECORDS[kind]
    cut = record(seed)
    for number, (contents, promise, place) in enumerate(cut.power_cuts(count, draw)):
        state = kind, seed, id(promise), digest(contents)
        if state in seen and number % go_on:
            continue
        seen.add(state)
        with scratch() as folder:
            lay_out(contents, folder)
            try:
                found = (promise or check_first)(folder, go_on=number % go_on == 0)
            except Exception as error:
                found = [f"{type(error).__name__}: {error}"]
            wrong += [f"{kind}, seed {seed}, cut {number} at step {place}: {each}" for each in found]
    return wrong
