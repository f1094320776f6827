"""A simulated trial: a service and its operator, people with phones, a network, a clock and a disk."""

import collections
import contextlib
import dataclasses
import datetime
import functools
import logging
import random
import secrets
import sqlite3
import warnings
from json import dumps, loads
from unittest import mock

import greenlet
import httpx

from omg_trial import desk as desks
from omg_trial import learning
from omg_trial import service as services
from omg_trial.client import client as clients
from omg_trial.client import outbox
from omg_trial.clock import SteadyClock
from omg_trial.contract import Contract, OlderLog, Refusal
from omg_trial.desk import Desk
from omg_trial.log.database import Database, StoreError
from omg_trial.service import Service
from omg_trial.trial_file.trial import Trial
from omg_trial.watching import losses
from trial.tests.disaster.disk import Disk, Fault
from trial.tests.disaster.kernel import Kernel, Owner

TEXT = """
[trial]
name = "simulated"
horizon = 2
time_zone = "UTC"
offline = true

[states]
names = ["took it", "missed it"]

[actions]
names = ["nothing", "reminder"]
fallback = { nothing = 0.5, reminder = 0.5 }

[context]
labels = ["alone", "with others"]

[rewards]
oracle = "counts"

[dynamics]
oracle = "counts"

[exploration]
floor = 0.1

[learning]
after_episodes = 10
"""
TRIAL = Trial.parse(TEXT)
EPOCH = datetime.datetime(2026, 11, 2, 9, 0, tzinfo=datetime.UTC)
HOUR, DAY = 3600.0, 86400.0
EVERY = 14 * DAY
"""Time between two occasions of a person."""
MOST_TRIES = 200
"""A call that is made more often gets no answer: four times as many as were ever seen."""
PATHS = {
    "episodes": "open", "decisions": "decide", "outcomes": "report", "close": "close",
    "withdraw": "withdraw", "erase": "erase", "learn": "learn", "pause": "pause", "resume": "resume",
}  # fmt: skip


@dataclasses.dataclass
class Attempt:
    """A call that has reached the service, and what came of it as far as the caller knows."""

    name: str
    fields: dict
    key: str
    begun: float
    ended: float = float("inf")
    status: int | None = None
    text: str = ""


class Instance(Owner):
    """A process of the service."""

    store = service = failure = None

    def boot(self, world, correct):
        """Start; an error is kept for the operator."""
        try:
            self.store = Database(world.database)
            clock = SteadyClock(world.read_clock, lambda: world.kernel.now)
            self.service = Service(Desk(TRIAL, self.store, clock=clock, correct_clock=correct))
        except Exception as error:
            self.failure = error
            if self.store is not None:
                self.store.close()


class Phone(Owner):
    """A person's app, and the person. What the app has to remember besides its outbox is `place`."""

    def __init__(self, world, name, seed):
        super().__init__(name)
        self.world, self.draw, self.wire = world, random.Random(seed), Wire(world, random.Random(seed + 1))
        self.place = {"occasion": 0, "step": 0, "episode": None, "state": "took it", "reports": []}
        self.shown, self.finished, self.left = {}, 0, False

    def live(self):
        """Play one occasion a fortnight, for as long as the trial lasts; an app that fails is opened again."""
        while not self.left:
            try:
                self._use()
            except (sqlite3.Error, MemoryError, OSError, ValueError):
                self.world.kernel.sleep(HOUR)

    def _use(self):
        queue = self.world.folder / f"{self.name}.outbox"
        with clients.Client("http://service", "token", queue=queue, transport=self.wire, patience=10.0) as self.client:
            while not self.left:
                try:
                    self._turn()
                except clients.UnreachableError:
                    self.world.kernel.sleep(self.draw.uniform(60.0, 4 * HOUR))
                except clients.RefusedError as refusal:
                    self._refused(refusal)

    def _turn(self):
        """Make the next call of an occasion; it is made again if anything goes wrong before it is noted in `place`."""
        at, world = self.place, self.world
        occasion = f"occasion-{at['occasion']}"
        if at["episode"] is None:
            begins = at["occasion"] * EVERY + DAY
            while world.kernel.now < begins:
                world.kernel.sleep(min(begins - world.kernel.now, 2 * DAY))
                self.client.send()
            opened = self.client.open(self.name, "alone" if self.name < "p1" else "with others", occasion)
            self.place = {**at, "episode": opened["episode"], "step": 0, "state": "took it"}
        elif at["step"] < TRIAL.space.horizon:
            decided = self.client.decide(at["episode"], at["step"], at["state"])
            self.shown.setdefault((occasion, at["step"]), []).append(decided["action"])
            reward = float(self.draw.random() < (0.8 if decided["action"] == "reminder" else 0.4))
            state = "took it" if reward else "missed it"
            report = (at["episode"], at["step"], reward, state)
            self.place = {**at, "step": at["step"] + 1, "state": state, "reports": [*at["reports"], report]}
            world.kernel.sleep(self.draw.uniform(HOUR, DAY))
        elif at["reports"]:
            episode, step, reward, state = at["reports"][0]
            self.client.report(episode, step, reward=reward, next_state=state)
            self.place = {**at, "reports": at["reports"][1:]}
        else:
            self.client.close(at["episode"])
            self._next()

    def _next(self):
        now = int(self.world.kernel.now // EVERY)
        self.place = {**self.place, "occasion": max(self.place["occasion"] + 1, now), "episode": None, "reports": []}
        self.finished += 1

    def _refused(self, refusal):
        if refusal.status == 410 or "there is no episode" in str(refusal):
            self.left = True
        elif isinstance(refusal, clients.OlderLogError) or "paused" in str(refusal):
            self.world.kernel.sleep(HOUR)
        elif self.place["episode"] is not None and not self.place["reports"]:
            self._next()  # closed as overdue
        elif self.place["reports"]:
            self.place = {**self.place, "reports": self.place["reports"][1:]}
        else:
            self._next()


class Wire(httpx.BaseTransport):
    """A network that loses, delays, doubles and reorders, as the weather is."""

    def __init__(self, world, draw):
        self.world, self.draw = world, draw

    def send(self, request):
        world, draw = self.world, self.draw
        world.kernel.sleep(draw.uniform(0.01, 0.3))
        fate = draw.random()
        if fate < world.weather:
            raise httpx.ConnectError("no network")
        if draw.random() < world.weather:  # a copy that is late
            world.kernel.spawn(self._deliver_late, request, after=draw.expovariate(1 / HOUR))
        response = world.deliver(request)
        if fate > 1.0 - world.weather:
            raise httpx.ReadTimeout("no answer")
        return response

    def _deliver_late(self, request):
        with contextlib.suppress(httpx.TransportError):
            self.world.deliver(request)


@dataclasses.dataclass(frozen=True)
class Request:
    """What the service sees of a call."""

    path: str
    body: str
    headers: dict


class Http:
    """As much of `httpx.Client` and its responses as an app's client uses, at a tenth of the time."""

    def __init__(self, transport, base_url, **_):
        self._wire, self.base_url = transport, base_url

    def post(self, path, *, json, headers):
        return self._wire.send(Request(path, dumps(json), headers))

    def close(self):
        pass


@dataclasses.dataclass(frozen=True)
class Response:
    """What a client sees of an answer."""

    status_code: int
    text: str
    headers: dict

    @property
    def is_success(self):
        return self.status_code < 300

    @property
    def is_client_error(self):
        return 400 <= self.status_code < 500

    def json(self):
        return loads(self.text)


class World:
    """Everything around the service. `script` says what befalls it: events (hours, name, arguments)."""

    def __init__(self, folder, seed, script, days, people=2):
        self.kernel, self.folder, self.script, self.days = Kernel(), folder, script, days
        self.database, self.seed, self.people = folder / "trial.db", seed, people
        self.disk = Disk(self.kernel, self.crash)
        self.draw = random.Random(f"world {seed}")
        self.weather, self.clock_off, self.clock_rate, self.clock_since = 0.0, 0.0, 0.0, 0.0
        self.instance, self.attempts, self.phones, self.aside = None, [], [], None
        self.tries = collections.Counter()
        self.alarm = []  # the operator waits here
        self.starts, self.refused_starts, self.faults, self.events = 0, [], 0, 0
        self.admin = Owner("administrator")

    # Time.

    def read_clock(self):
        """Return what the clock of the machine shows."""
        now = self.kernel.now
        drifted = self.clock_off + self.clock_rate * (now - self.clock_since)
        return EPOCH + datetime.timedelta(seconds=now + drifted)

    def device_time(self):
        return EPOCH + datetime.timedelta(seconds=self.kernel.now)

    # Processes.

    def crash(self, owner):
        """End a process at once; what it has not committed is gone, and its lock is free."""
        self.faults += 1
        self.kernel.kill(owner)
        if isinstance(owner, Instance):
            for future in owner.promised:
                if not future.done():
                    future.set_exception(httpx.ReadError("the service is gone"))
            self.kernel.wake(self.alarm)

    def operate(self):
        """Keep the service running, as a supervisor and an operator do."""
        while True:
            if self.instance is None or self.instance.dead or self.instance.failure is not None:
                self.kernel.sleep(self.draw.uniform(1.0, 30.0))
                self.boot()
                if self.instance.failure is not None:
                    self.kernel.sleep(60.0)
                continue
            desk = self.instance.service.desk
            if desk.damage is not None and self.aside is not None:
                self.crash(self.instance)
                continue
            self.kernel.wait(self.alarm, timeout=self.draw.uniform(1.0, 6.0) * HOUR)

    def _restore(self):
        """Put the database back that was lost; not if the older one is the same, and was written to since."""
        if self.aside is not None and _length(self.database) < self.lost_length:
            self.database.write_bytes(self.aside)
        self.aside = None

    def boot(self):
        """Start a process, and wait until it answers or not."""
        self.clock_off = self.clock_rate = 0.0  # a machine asks for the time when it starts
        if self.instance is not None and self.instance.store is not None:
            self.instance.store.close()  # the system takes its lock and its files away
        self._restore()
        instance = Instance("service")
        instance.promised = []
        correct = bool(self.refused_starts) and "clock" in self.refused_starts[-1]
        waiting = []

        def boot():
            try:
                instance.boot(self, correct)
            finally:
                self.kernel.wake(waiting)

        instance.tasks.append(self.kernel.spawn(boot, owner=instance))
        self.kernel.wait(waiting)
        self.starts += 1
        self.instance = instance
        if instance.failure is not None:
            self.refused_starts.append(f"{type(instance.failure).__name__}: {instance.failure}")

    def deliver(self, request):
        """Bring a call to the service, and wait for its answer as long as a client does."""
        *_, about, path = ["", *request.path.removeprefix("/v1/").split("/")]
        name, body = PATHS[path], loads(request.body)
        fields = {**body, **({"episode": int(about)} if about.isdecimal() else {})}
        if name in ("withdraw", "erase"):
            fields["person"] = about
        attempt = Attempt(name, fields, request.headers["Idempotency-Key"], self.kernel.now)
        self.attempts.append(attempt)
        self.tries[attempt.key] += 1
        self.kernel.stopped |= self.tries[attempt.key] > MOST_TRIES
        status, content, headers = self._answer(attempt, request.headers.get("Log-Seen"))
        attempt.ended, attempt.status = self.kernel.now, status
        attempt.text = content if isinstance(content, str) else content["error"]
        return Response(status, content if isinstance(content, str) else dumps(content), headers)

    def _answer(self, attempt, seen):
        instance = self.instance
        if instance is None or instance.dead or instance.service is None:
            raise httpx.ConnectError("no service")
        try:
            call = instance.service.desk.prepare(attempt.name, attempt.fields, attempt.key)
            future = instance.service.submit(call._replace(seen=seen, actor="phone"))
            instance.promised = [*(each for each in instance.promised if not each.done()), future]
            waiting = []
            future.add_done_callback(lambda _: self.kernel.wake(waiting))
            if not future.done() and not self.kernel.wait(waiting, timeout=10.0):
                raise httpx.ReadTimeout("no answer")
            answer = future.result()
            return 200, answer.text, {"Log-Head": answer.mark}
        except OlderLog as refusal:
            return refusal.status, {"error": refusal.message}, {"Log-Head": refusal.head}
        except Refusal as refusal:
            return refusal.status, {"error": refusal.message}, {}
        except StoreError as error:
            return 503, {"error": str(error)}, {"Retry-After": "1"}

    # What the script says.

    def play_script(self):
        for hour, name, *given in self.script:
            self.kernel.sleep(hour * HOUR - self.kernel.now)
            self.faults += 1
            getattr(self, f"_do_{name}")(*given)
        self.weather, self.clock_off, self.clock_rate, self.disk.faults = 0.0, 0.0, 0.0, []

    def _do_fault(self, fault):
        self.disk.faults.append(dataclasses.replace(fault))

    def _do_crash(self):
        if self.instance is not None and not self.instance.dead:
            self.crash(self.instance)

    def _do_close_app(self, number):
        phone = self.phones[number]
        self.kernel.kill(phone)
        phone.client.close_connection()
        phone.dead = False
        phone.tasks = [self.kernel.spawn(phone.live, owner=phone, after=60.0)]

    def _do_weather(self, loss):
        self.weather = loss

    def _do_clock(self, seconds, rate):
        self.clock_off, self.clock_rate, self.clock_since = seconds, rate, self.kernel.now

    def _do_lose_database(self, older):
        """The database is gone, or is an older one, at the next statement."""
        if self.aside is None and self.database.exists() and (not older or self.backup is not None):
            self.aside, self.lost_length = self.database.read_bytes(), _length(self.database)
            self.database.unlink()
            if older:
                self.database.write_bytes(self.backup)
            self.disk.faults.append(Fault("service", 0, "broken"))

    backup = None

    def _do_back_up(self):
        if self.database.exists() and self.aside is None:
            self.backup = self.database.read_bytes()

    def _do_ask(self, name, fields):
        """Let the administrator make a call, until it is answered."""
        path = {"withdraw": f"people/{fields.get('person')}/withdraw", "erase": f"people/{fields.get('person')}/erase"}
        body = {key: value for key, value in fields.items() if key != "person" or name not in path}
        key = f"administrator-{len(self.attempts)}-{name}"
        request = Request(f"/v1/{path.get(name, name)}", dumps(body), {"Idempotency-Key": key})

        def ask():
            while True:
                with contextlib.suppress(httpx.TransportError):
                    if self.deliver(request).status_code != 503:
                        return
                self.kernel.sleep(600.0)  # the operator, whom nobody calls here, may take six hours

        self.kernel.spawn(ask, owner=self.admin)

    def run(self):
        """Play the trial for its days, and then as long as it takes to answer what waits."""
        with self.simulated():
            operator = self.kernel.spawn(self.operate, owner=Owner("operator"))
            for number in range(self.people):
                self.phones.append(Phone(self, f"p{number}", 1000 * self.seed + number))
                self.phones[-1].tasks = [self.kernel.spawn(self.phones[-1].live, owner=self.phones[-1], after=1.0)]
            self.kernel.spawn(self.play_script, owner=Owner("script"))
            self.kernel.run(self.days * DAY)
            self.quiet_since = self.kernel.now
            yield "quiet"
            self.kernel.run(self.kernel.now + 45 * DAY)
            yield "end"
            operator.throw(greenlet.GreenletExit)
            for owner in (*self.phones, self.admin, self.instance):
                if owner is not None:
                    self.kernel.kill(owner)
            if self.instance is not None and self.instance.store is not None:
                self.instance.store.close()
            self._restore()
            for phone in self.phones:
                phone.client.close_connection()

    @contextlib.contextmanager
    def simulated(self):
        """Let service and clients use the virtual clock, threads and disk, and the same secrets in every run."""
        draw, kernel = random.Random(f"secrets {self.seed}"), self.kernel
        refusal = learning.refusal
        with contextlib.ExitStack() as stack:
            for where, name, what in (
                (services, "threading", kernel.threading()),
                (services, "queue", kernel.queue()),
                (services, "concurrent", kernel.futures()),
                (services, "TICK_SECONDS", 4 * DAY),
                (desks, "Contract", contract),
                # Losses are no fact of a store, and take long.
                (losses.LossWatch, "_judge", lambda *_: (0.0, 0.0)),
                (services, "SNAPSHOT_EVENTS", 60),
                (services, "SNAPSHOT_SHARE", 0.0),
                (services, "set_aside", lambda: None),  # collecting garbage would take half of the time
                (clients, "time", kernel.time()),
                (clients.httpx, "Client", Http),
                (outbox, "_now", self.device_time),
                (secrets, "token_hex", lambda size=32: draw.randbytes(size).hex()),
                (secrets, "token_bytes", lambda size=32: draw.randbytes(size)),
                (secrets, "token_urlsafe", lambda size=32: draw.randbytes(size).hex()),
                # Some models fail their checks, in the service and in its replay alike.
                (learning, "refusal", lambda trial, agent, data: refused(data) or refusal(trial, agent, data)),
            ):
                stack.enter_context(mock.patch.object(where, name, what))
            stack.enter_context(self.disk.mounted())
            for name in ("omg_trial", "sqlalchemy.pool"):
                stack.enter_context(mock.patch.object(logging.getLogger(name), "disabled", True))
            stack.enter_context(warnings.catch_warnings(action="ignore"))
            yield


contract = functools.cache(Contract)
"""It follows from the trial file alone, and takes longer than a start."""


def _length(database):
    """Return the number of events in a database; -1 if it is none."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as file:
            return file.execute("SELECT count(*) FROM events").fetchone()[0]
    except sqlite3.Error:
        return -1


def refused(dataset):
    """Return why a model must not be published: every fourth one."""
    return "it was made to fail" if len(dataset) % 4 == 3 else None
