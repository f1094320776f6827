"""The whole service in a seeded simulation: `python -m trial.tests.disaster simulate --years 10 --seed 0`.

A trial-year is a trial of two people over 364 days, one occasion of two steps a fortnight: some 500 calls, of
which 400 become events, and a hundred faults. What must hold is in `check`.
"""

import contextlib
import datetime
import random
import sqlite3
from pathlib import Path

from omg_trial.log.database import Database
from omg_trial.replay import replay
from omg_trial.verify import read_keys, verify
from trial.tests.disaster.disk import ERRORS, Fault
from trial.tests.disaster.model import judge, mark
from trial.tests.disaster.platter import scratch
from trial.tests.disaster.world import EPOCH, TRIAL, World

DAYS = 364
FAULTS = 60
TICKS = 2 * 24 * 60
"""Minutes after the last fault in which every call that waits must be answered: phones try again every four hours."""


def draw_script(seed, days, faults):
    """Return what befalls a trial: events (hour, name, arguments)."""
    draw = random.Random(f"script {seed}")
    events = []
    for _ in range(faults):
        hour = draw.uniform(0.0, 24.0 * (days - 3))
        name = draw.choice(
            ["point"] * 8 + ["errors"] * 4 + ["crash"] * 3 + ["network"] * 5 + ["clock"] * 3
            + ["database"] + ["app"] * 3 + ["ask"] * 2
        )  # fmt: skip
        if name == "point":
            who = draw.choice(["service"] * 4 + ["p0", "p1"])
            kind = "crash" if who == "service" else "broken"
            events.append((hour, "fault", Fault(who, draw.randrange(40), kind)))
            if draw.random() < 0.3:  # and again, while it recovers
                events.append((hour, "fault", Fault(who, 40 + draw.randrange(40), kind)))
        elif name == "errors":
            kind = draw.choice(sorted(ERRORS))
            events.append((hour, "fault", Fault("service", draw.randrange(40), kind, draw.choice([1, 1, 2, 5, 50]))))
        elif name == "crash":
            events.append((hour, "crash"))
        elif name == "app":
            events.append((hour, "close_app", draw.randrange(2)))
        elif name == "network":
            events.append((hour, "weather", draw.choice([0.05, 0.2, 0.45])))
            events.append((hour + draw.uniform(1.0, 200.0), "weather", 0.0))
        elif name == "clock":
            events.append(
                (hour, "clock", draw.choice([-1, 1]) * 10 ** draw.uniform(1.0, 8.0), draw.choice([0.0, 1e-4]))
            )
            events.append((hour + draw.uniform(0.1, 72.0), "clock", 0.0, 0.0))
        elif name == "database":
            events.append((hour - draw.uniform(1.0, 100.0), "back_up"))
            events.append((hour, "lose_database", draw.random() < 0.6))
        else:
            person = f"p{draw.randrange(2)}"
            pause = [(hour, "ask", "pause", {"cause": "x"}), (hour + 30.0, "ask", "resume", {"cause": "x"})]
            late = max(hour, 24.0 * (days - 40))  # who leaves does so late, or nothing would happen any more
            leave = [(late, "ask", draw.choice(["withdraw", "erase"]), {"person": person, "cause": "asked to"})]
            events += draw.choice([pause, [(hour, "ask", "learn", {})], leave])
    last = 24.0 * (days - 2)
    return sorted(((max(0.0, min(event[0], last)), *event[1:]) for event in events), key=lambda event: event[0])


def play(seed, script=None, days=DAYS, faults=FAULTS):
    """Play a trial, and return what is wrong and the world."""
    script = draw_script(seed, days, faults) if script is None else script
    with scratch() as folder:
        world = World(Path(folder), seed, script, days)
        stages = world.run()
        next(stages)
        if world.kernel.stopped:
            return [f"a call is made again and again: {world.tries.most_common(1)}"], world
        quiet = {phone: phone.finished for phone in world.phones}
        wrong = []
        next(stages)
        wrong += alive(world, quiet)
        world.kernel_errors = [f"{name} ended by {error!r}" for name, error in world.kernel.deaths]
        with contextlib.suppress(StopIteration):
            next(stages)
        return wrong + world.kernel_errors + check(world), world


def alive(world, before):
    """Return what is not alive six weeks after the last fault."""
    wrong = []
    if world.instance is None or world.instance.dead or world.instance.service is None:
        return [f"the service does not start: {world.refused_starts[-1:]}"]
    desk = world.instance.service.desk
    if desk.lost or desk.damage:
        wrong.append(f"the service has not recovered: {desk.damage}")
    if desk.state.learning is not None and desk.state.closed_since > 1:
        wrong.append(f"learning has not ended, and {desk.state.closed_since} episodes were closed since it began")
    for phone in (each for each in world.phones if not each.left):
        waiting = phone.client._outbox._file.execute(
            "SELECT path FROM calls WHERE waits AND refusal IS NULL"
        ).fetchall()
        if waiting:
            wrong.append(f"{phone.name} still waits: {waiting}")
        if phone.finished < before[phone] + 2:
            wrong.append(f"{phone.name} does not go on: {phone.place}")
    last = world.quiet_since
    late = [each for each in world.attempts if each.begun > last + 60.0 * TICKS and each.status in (None, 503)]
    return wrong + [f"{each.name} is not answered {TICKS} ticks after the last fault" for each in late[:1]]


def check(world):
    """Return what is wrong with what is left of a trial."""
    if not world.database.exists():
        return ["there is no database"]
    with contextlib.closing(sqlite3.connect(world.database)) as file:
        query = "SELECT number, time, kind, body, key, request, answer, hash FROM events ORDER BY number"
        rows = file.execute(query).fetchall()
    world.events = len(rows)
    keys = read_keys(str(world.database.with_suffix(".keys")))
    wrong = judge(world.attempts, rows, keys["secret"].decode(), idle=14 * 24.0 - 0.1)
    wrong += off_time(world, rows)
    wrong += verify(rows, keys=keys).problems
    with world.simulated(), contextlib.closing(Database(world.database, writing=False)) as store:
        events = list(store.read())
    with world.simulated():
        wrong += replay(TRIAL, events).differences
    published = [event for event in events if event.kind == "learned" and event.body["published"]]
    wrong += [f"event {each.number}: it was published, and refused" for each in published if each.body["cause"]]
    for phone in world.phones:
        points = [f"{phone.name}, {point}: {made}" for point, made in phone.shown.items() if len(set(made)) > 1]
        wrong += [f"two actions for one decision point: {each}" for each in points]
    return wrong


def off_time(world, rows):
    """Return events whose time is not that at which they happened, up to two minutes."""
    secret = read_keys(str(world.database.with_suffix(".keys")))["secret"].decode()
    spans = {}
    for each in world.attempts:
        span = spans.setdefault(mark(secret, each.key), [each.begun, each.ended])
        span[1] = max(span[1], each.ended, each.begun + 1.0)
    wrong = []
    for number, time, kind, _, key, *_ in rows:
        if key in spans:
            at = (datetime.datetime.fromisoformat(time) - EPOCH).total_seconds()
            if not spans[key][0] - 200.0 <= at <= spans[key][1] + 200.0:
                wrong.append(f"event {number} ({kind}): its time is {at:.0f}, and it was asked for at {spans[key]}")
    return wrong


def shrink(seed, script, days=DAYS):
    """Return a script with as few events as possible that still fails: parts are dropped while it does."""
    size = max(1, len(script) // 2)
    while size:
        place = 0
        while place < len(script):
            shorter = script[:place] + script[place + size :]
            if play(seed, shorter, days)[0]:
                script = shorter
            else:
                place += size
        size //= 2
    return script
