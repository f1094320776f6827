"""`python -m trial.benchmarks.live [load|million|cold]`: how fast the service decides and starts.

*load*: one client, then fifty, ask for decisions over HTTP: of a service with SQLite, and of a minimal FastAPI service
that only stores what it is sent, with the same durability; with `--postgresql` of both also on a server of their own.
Then a hundred decisions a second, evenly. The services take turns, `--rounds` times. *million*: a log of a million
events is verified and opened, with its snapshot and without; with `--file` it is kept, so that it is made once. *cold*:
how long `omg-trial serve` takes from its call to its first answer, with code that is compiled.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import uvicorn
from fastapi import FastAPI, Request

TRIAL = """
[trial]
name = "load"
horizon = 14
[states]
names = ["took it", "missed it", "lapsed"]
[actions]
names = ["nothing", "reminder", "call"]
fallback = { nothing = 0.5, reminder = 0.3, call = 0.2 }
[context.columns]
age = { low = 20, high = 90 }
lives = { labels = ["alone", "with others"] }
[rewards]
[dynamics]
[exploration]
floor = 0.1
[learning]
after_episodes = 1000
"""
CLIENTS, DECISIONS = 50, 14
PORT = 8799


def serve(kind: str, database: str) -> None:
    """Run one of the services, in a process of its own."""
    from omg_trial.snapshots import set_aside
    from omg_trial.web.connections import guarded

    app = _minimal(database) if kind == "minimal" else _ours(database)
    set_aside()  # as `serving` does; both services, to be fair
    with socket.socket() as listener:  # as `serving` has it: without this every answer waits 40 ms
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind(("127.0.0.1", PORT))
        options: dict[str, Any] = {"http": guarded()} if kind == "omg-trial" else {}
        config = uvicorn.Config(app, access_log=False, log_level="error", **options)
        uvicorn.Server(config).run(sockets=[listener])


def _ours(database: str) -> Any:
    from omg_trial.desk import Desk
    from omg_trial.log.database import Database
    from omg_trial.rehearsal.report import rehearse
    from omg_trial.service import Service
    from omg_trial.tokens import Tokens
    from omg_trial.trial_file.trial import Trial
    from omg_trial.web import app

    folder, trial = Path(tempfile.mkdtemp()), Trial.parse(TRIAL)
    rehearse(trial, people=1)
    tokens = Tokens(folder / "tokens")
    Path("token.txt").write_text(tokens.add("administrator", "load", rate=1e9))
    return app.make_app(Service(Desk(trial, Database(database, keys=folder / "load.keys"))), tokens)


def _minimal(database: str) -> Any:
    app, lock = FastAPI(), threading.Lock()
    store: Any
    if database.startswith("postgresql"):
        store, number, insert = psycopg.connect(database, autocommit=True), "SERIAL", "VALUES (%s, %s)"
    else:
        store = sqlite3.connect(database, check_same_thread=False, isolation_level=None)
        store.execute("PRAGMA journal_mode = PERSIST")
        store.execute("PRAGMA synchronous = FULL")
        number, insert = "INTEGER", "VALUES (?, ?)"
    store.execute(f"CREATE TABLE calls (number {number} PRIMARY KEY, path TEXT, body TEXT)")
    insert = f"INSERT INTO calls (path, body) {insert} RETURNING number"
    Path("token.txt").write_text("none")

    @app.post("/v1/{path:path}")
    async def keep(path: str, request: Request) -> dict[str, int]:
        body = (await request.body()).decode()
        with lock:
            [[number]] = store.execute(insert, (path, body)).fetchall()
        return {"episode": number}

    return app


class Client:
    """One connection that stays open; no library, so that the clients cost little."""

    def __init__(self, name: str, token: str) -> None:
        self.name, self.token, self.count = name, token, 0

    async def connect(self) -> None:
        """Connect."""
        self.free = asyncio.Lock()
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", PORT)

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of a call."""
        self.count += 1
        text = json.dumps(body)
        head = [
            f"POST {path} HTTP/1.1",
            "Host: localhost",
            f"Authorization: Bearer {self.token}",
            "Content-Type: application/json",
            f"Idempotency-Key: {self.name}-{self.count}",
            f"Content-Length: {len(text)}",
        ]
        self.writer.write("\r\n".join([*head, "", text]).encode())
        headers = await self.reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in headers.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        answer: dict[str, Any] = json.loads(await self.reader.readexactly(length))
        if b" 200 " not in headers.split(b"\r\n")[0]:
            raise RuntimeError(f"{headers.decode()[:60]} {answer}")
        return answer


async def _closed_loop(token: str, seconds: float, clients: int, prefix: str) -> list[float]:
    """Let every client decide as fast as it is answered; return how long each decision took."""
    taken: list[float] = []
    end = time.perf_counter() + seconds

    async def one(number: int) -> None:
        client = Client(f"{prefix}{number}", token)
        await client.connect()
        turn = 0
        while time.perf_counter() < end:
            body = {"person": f"{prefix}{number}-{turn}", "context": {"age": 20 + number, "lives": "alone"}}
            episode = (await client.post("/v1/episodes", body))["episode"]
            for step in range(DECISIONS):
                began = time.perf_counter()
                await client.post(f"/v1/episodes/{episode}/decisions", {"step": step, "state": "took it"})
                taken.append(time.perf_counter() - began)
            turn += 1

    await asyncio.gather(*(one(number) for number in range(clients)))
    return taken


async def _open_loop(token: str, seconds: float, rate: float) -> list[float]:
    """Ask for `rate` decisions a second, whether earlier ones are answered or not."""
    taken: list[float] = []
    clients = [Client(f"o{number}", token) for number in range(CLIENTS)]

    async def opened(client: Client) -> int:
        await client.connect()
        body = {"person": client.name, "context": {"age": 30, "lives": "alone"}}
        episode: int = (await client.post("/v1/episodes", body))["episode"]
        return episode

    # Together: a connection on which nothing is asked for five seconds is closed.
    episodes = await asyncio.gather(*map(opened, clients))
    begin, tasks = time.perf_counter(), []

    async def one(place: int, due: float) -> None:
        client, step = clients[place % CLIENTS], place // CLIENTS
        async with client.free:
            path = f"/v1/episodes/{episodes[place % CLIENTS]}/decisions"
            await client.post(path, {"step": step, "state": "took it"})
        taken.append(time.perf_counter() - due)

    for place in range(min(int(seconds * rate), CLIENTS * DECISIONS)):
        due = begin + place / rate
        await asyncio.sleep(max(due - time.perf_counter(), 0.0))
        tasks.append(asyncio.create_task(one(place, due)))
    await asyncio.gather(*tasks)
    return taken


def load(databases: list[str], seconds: float, rounds: int) -> None:
    """Print a table of all services, which take turns."""
    names = [f"{service}, {database}" for database in databases for service in ("minimal", "omg-trial")]
    heads = ("p50 ms", "p99 ms", "a second") * 2 + ("p99 ms at 100/s",)
    print(f"{'':22}{'one client':>30}{f'{CLIENTS} clients':>30}")
    print(f"{'service':22}" + "".join(f"{head:>{10 if place < 6 else 17}}" for place, head in enumerate(heads)))
    found: dict[str, list[list[float]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            found[name].append(_loaded(name, seconds))
            print(
                f"{name:22}"
                + "".join(f"{value:{10 if place < 6 else 17}.1f}" for place, value in enumerate(found[name][-1]))
            )
            sys.stdout.flush()
    for database in databases:
        minimal, ours = (np.median(found[f"{service}, {database}"], axis=0) for service in ("minimal", "omg-trial"))
        print(f"{database}: {ours[2]:.0f} decisions a second with one client, p99 {ours[1]:.1f} ms; ", end="")
        print(f"{ours[2] / minimal[2]:.2f} of the minimal service, {ours[5] / minimal[5]:.2f} with {CLIENTS} clients")


def _loaded(name: str, seconds: float) -> list[float]:
    """Return a row of the table."""
    from trial.tests.disaster.servers import place

    kind, _, database = name.partition(", ")
    with place(database == "PostgreSQL") as it:
        command = [sys.executable, "-m", "trial.benchmarks.live", "serve", kind, str(it.url)]
        process = subprocess.Popen(command, cwd=Path.cwd())
        try:
            token, row = _ready(), []
            asyncio.run(_closed_loop(token, 1.0, 2, "w"))  # to warm up
            for clients, prefix in ((1, "a"), (CLIENTS, "c")):
                began = time.perf_counter()
                taken = np.array(asyncio.run(_closed_loop(token, seconds, clients, prefix))) * 1e3
                row += [*map(float, np.quantile(taken, [0.5, 0.99])), len(taken) / (time.perf_counter() - began)]
            row.append(float(np.quantile(np.array(asyncio.run(_open_loop(token, 7.0, 100.0))) * 1e3, 0.99)))
        finally:
            process.kill()
            process.wait()
            Path("token.txt").unlink(missing_ok=True)
    return row


def _ready() -> str:
    for _ in range(1200):
        with socket.socket() as probe:
            if Path("token.txt").exists() and not probe.connect_ex(("127.0.0.1", PORT)):
                return Path("token.txt").read_text()
        time.sleep(0.1)
    raise RuntimeError("the service does not start")


def million(events: int, file: str) -> None:
    """Print how long a long log takes; the file is made if it is not there, or too short."""
    from omg_trial.desk import Desk
    from omg_trial.log.database import Database
    from omg_trial.trial_file.trial import Trial

    trial = Trial.parse(TRIAL)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(file or f"{folder}/long.db")
        with contextlib.closing(Database(path)) as store, _timed("made"):
            desk = Desk(trial, store)
            if desk.state.number < events:
                _fill(desk, max(min(events // 10, 20_000), 2000), np.random.default_rng(0))
                _copy_episodes(desk, events)
                desk.snapshot()
            digest, number = desk.state.version.model, desk.state.number
        for what in ("with its snapshot", "without a snapshot"):
            with _timed(f"{number} events: verified and opened, {what}"):
                store = Database(path)
                same = Desk(trial, store).state.version.model == digest
                store.close()
            print("the same model" if same else "ANOTHER MODEL")
            with contextlib.closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("DELETE FROM snapshots")
        with contextlib.closing(Database(path)) as store:
            Desk(trial, store).snapshot()  # for the next time


def _copy_episodes(desk: Any, events: int) -> None:
    """Let more people have the episodes that are there, with the same plans and outcomes: that needs no planner."""
    there: dict[int, list[Any]] = {}
    for event in desk.store.read():
        if event.kind in ("opened", "decided", "reported", "closed"):
            there.setdefault(event.body.get("episode", event.number), []).append(event)
    turn = 0
    while desk.state.number < events:
        turn += 1
        with desk._all_or_nothing():
            for episode in there.values():
                number = desk.state.number + 1
                for event in episode:
                    body = {**event.body, **({"episode": number} if "episode" in event.body else {})}
                    if event.kind == "opened":
                        body["person"] = f"{turn}-{body['person']}"
                    call = {"request": event.request, "answer": event.answer}
                    desk._record(event.kind, body, key=f"{turn}-{event.number}", **call)


def cold(times: int) -> None:
    """Print the seconds from the call of `omg-trial serve` to its first answer."""
    from urllib.request import urlopen

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trial.toml"
        path.write_text(TRIAL)
        for number in range(times):
            began = time.perf_counter()
            command = [sys.executable, "-m", "omg_trial", "serve", str(path), "--port", "0"]
            with subprocess.Popen(
                [*command, *(["--new"] if not number else [])], stdout=subprocess.PIPE, text=True
            ) as process:
                assert process.stdout is not None
                address = process.stdout.readline().split()[-1]
                urlopen(f"{address}/v1/ready").close()
                print(f"start {number + 1}: {time.perf_counter() - began:.1f} s")
                process.terminate()


@contextlib.contextmanager
def _timed(what: str) -> Iterator[None]:
    wall, processor = time.perf_counter(), time.process_time()
    yield
    print(f"{what}: {time.perf_counter() - wall:.1f} s, {time.process_time() - processor:.1f} s of the processor")


def _fill(desk: Any, events: int, generator: np.random.Generator) -> None:
    """Play episodes of forty people at a time, in batches as a busy service would have them."""
    count, turn = 0, 0

    def asked(name: str, body: dict[str, Any]) -> Any:
        nonlocal count
        count += 1
        return desk.prepare(name, body, f"k{count}")

    while desk.state.number < events:
        people = range(40)
        opens = [
            asked(
                "open",
                {"person": f"p{turn}-{one}", "context": {"age": int(generator.integers(20, 90)), "lives": "alone"}},
            )
            for one in people
        ]
        episodes = [json.loads(answer.text)["episode"] for answer in desk.answer(opens)]
        states = ["took it"] * len(episodes)
        for step in range(DECISIONS):
            desk.answer(
                [
                    asked("decide", {"episode": e, "step": step, "state": s})
                    for e, s in zip(episodes, states, strict=True)
                ]
            )
            states = [str(generator.choice(["took it", "missed it", "lapsed"])) for _ in episodes]
            reports = [
                asked("report", {"episode": e, "step": step, "reward": float(s == "took it"), "next_state": s})
                for e, s in zip(episodes, states, strict=True)
            ]
            desk.answer(reports)
        desk.answer([asked("close", {"episode": e}) for e in episodes])
        if desk.learning_due():
            desk.call("learn", {})
            desk.learn_here()
        turn += 1


def main() -> None:
    """Run what is asked for."""
    command = argparse.ArgumentParser(prog="python -m trial.benchmarks.live", description=__doc__)
    command.add_argument("what", choices=["load", "million", "cold", "serve"], nargs="?", default="load")
    command.add_argument("arguments", nargs="*")
    command.add_argument("--seconds", type=float, default=10.0)
    command.add_argument("--events", type=int, default=1_000_000)
    command.add_argument("--rounds", type=int, default=3)
    command.add_argument("--file", default="", help="The log of `million`, to keep it.")
    command.add_argument("--postgresql", action="store_true")
    asked = command.parse_args()
    if asked.what == "serve":
        serve(*asked.arguments)
    elif asked.what == "million":
        million(asked.events, asked.file)
    elif asked.what == "cold":
        cold(asked.rounds)
    else:
        load(["SQLite", *["PostgreSQL"] * asked.postgresql], asked.seconds, asked.rounds)


if __name__ == "__main__":
    main()
