"""`python -m trial.benchmarks.live [load|million]`: how fast the live service decides, and how fast a long log is read.

*load*: fifty clients ask for decisions over HTTP, of a service with SQLite, of one with PostgreSQL if a URL is given,
and of a minimal FastAPI service that only stores what it is sent, in SQLite with the same durability. Then a hundred
decisions a second, evenly. *million*: a log of a million events is opened from a snapshot, and replayed whole.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
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
    uvicorn.run(_minimal(database) if kind == "minimal" else _ours(database), port=PORT, log_level="error")


def _ours(database: str) -> Any:
    from omg_trial.desk import Desk
    from omg_trial.log.database import Database
    from omg_trial.service import Service
    from omg_trial.tokens import Tokens
    from omg_trial.trial_file.trial import Trial
    from omg_trial.web import app

    app.CALLS_PER_SECOND = 1e9
    folder = Path(tempfile.mkdtemp())
    tokens = Tokens(folder / "tokens")
    Path("token.txt").write_text(tokens.add("administrator", "load"))
    return app.make_app(Service(Desk(Trial.parse(TRIAL), Database(database))), tokens)


def _minimal(database: str) -> Any:
    app, lock = FastAPI(), threading.Lock()
    store = sqlite3.connect(database, check_same_thread=False, isolation_level=None)
    store.execute("PRAGMA journal_mode = PERSIST")
    store.execute("PRAGMA synchronous = FULL")
    store.execute("CREATE TABLE calls (number INTEGER PRIMARY KEY, path TEXT, body TEXT)")
    Path("token.txt").write_text("none")

    @app.post("/v1/{path:path}")
    async def keep(path: str, request: Request) -> dict[str, int]:
        body = (await request.body()).decode()
        with lock:
            number = store.execute("INSERT INTO calls (path, body) VALUES (?, ?)", (path, body)).lastrowid
        return {"episode": number or 0}

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


async def _closed_loop(token: str, seconds: float) -> list[float]:
    """Let every client decide as fast as it is answered; return how long each decision took."""
    taken: list[float] = []
    end = time.perf_counter() + seconds

    async def one(number: int) -> None:
        client = Client(f"c{number}", token)
        await client.connect()
        turn = 0
        while time.perf_counter() < end:
            body = {"person": f"p{number}-{turn}", "context": {"age": 20 + number, "lives": "alone"}}
            episode = (await client.post("/v1/episodes", body))["episode"]
            for step in range(DECISIONS):
                began = time.perf_counter()
                await client.post(f"/v1/episodes/{episode}/decisions", {"step": step, "state": "took it"})
                taken.append(time.perf_counter() - began)
            turn += 1

    await asyncio.gather(*(one(number) for number in range(CLIENTS)))
    return taken


async def _open_loop(token: str, seconds: float, rate: float) -> list[float]:
    """Ask for `rate` decisions a second, whether earlier ones are answered or not."""
    taken: list[float] = []
    clients = [Client(f"o{number}", token) for number in range(CLIENTS)]
    episodes = []
    for number, client in enumerate(clients):
        await client.connect()
        body = {"person": f"q{number}", "context": {"age": 30, "lives": "alone"}}
        episodes.append((await client.post("/v1/episodes", body))["episode"])
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


def load(urls: dict[str, str], seconds: float) -> None:
    """Print a table of all services, in turns."""
    print(f"{'service':24}{'p50 ms':>9}{'p99 ms':>9}{'per second':>12}{'p99 ms at 100/s':>18}")
    for name, url in urls.items():
        with tempfile.TemporaryDirectory() as folder:
            kind = "minimal" if name.startswith("minimal") else "ours"
            database = url or str(Path(folder) / "load.db")
            command = [sys.executable, "-m", "benchmarks.live", "serve", kind, database]
            process = subprocess.Popen(command, cwd=Path.cwd())
            try:
                token = _ready()
                taken = np.array(asyncio.run(_closed_loop(token, seconds))) * 1e3
                even = np.array(asyncio.run(_open_loop(token, 7.0, 100.0))) * 1e3
            finally:
                process.kill()
                process.wait()
                Path("token.txt").unlink(missing_ok=True)
            p50, p99 = np.quantile(taken, [0.5, 0.99])
            print(
                f"{name:24}{p50:9.1f}{p99:9.1f}{len(taken) / seconds:12.0f}{np.quantile(even, 0.99):18.1f}", flush=True
            )


def _ready() -> str:
    import socket

    for _ in range(1200):
        with socket.socket() as probe:
            if Path("token.txt").exists() and not probe.connect_ex(("127.0.0.1", PORT)):
                return Path("token.txt").read_text()
        time.sleep(0.1)
    raise RuntimeError("the service does not start")


def million(events: int) -> None:
    """Print how long a long log takes."""
    from omg_trial.desk import Desk
    from omg_trial.log.database import Database
    from omg_trial.replay import replay
    from omg_trial.trial_file.trial import Trial

    trial = Trial.parse(TRIAL)
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        store = Database(Path(folder) / "long.db")
        desk = Desk(trial, store)
        began = time.perf_counter()
        _fill(desk, events, generator)
        print(f"{desk.state.number} events written, {desk.state.number / (time.perf_counter() - began):.0f} a second")
        began = time.perf_counter()
        desk.snapshot()
        print(f"snapshot: {len(store.snapshot().content) / 2**20:.0f} MiB, {time.perf_counter() - began:.1f} s")  # type: ignore[union-attr]
        digest = desk.state.version.model
        store.close()
        store = Database(Path(folder) / "long.db")
        began = time.perf_counter()
        again = Desk(trial, store)
        same = again.state.version.model == digest
        print(f"opened from the snapshot in {time.perf_counter() - began:.1f} s; the same model: {same}")
        began = time.perf_counter()
        found = replay(trial, store.read())
        seconds = time.perf_counter() - began
        print(
            f"replayed whole: {found.state.number / seconds:.0f} events a second, {len(found.differences)} differences"
        )
        store.close()


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
    command.add_argument("what", choices=["load", "million", "serve"], nargs="?", default="load")
    command.add_argument("arguments", nargs="*")
    command.add_argument("--seconds", type=float, default=10.0)
    command.add_argument("--events", type=int, default=1_000_000)
    command.add_argument("--postgresql", default="", metavar="URL")
    asked = command.parse_args()
    if asked.what == "serve":
        serve(*asked.arguments)
    elif asked.what == "million":
        million(asked.events)
    else:
        services = {"minimal, SQLite": "", "omg-cmdp, SQLite": ""}
        load({**services, **({"omg-cmdp, PostgreSQL": asked.postgresql} if asked.postgresql else {})}, asked.seconds)


if __name__ == "__main__":
    main()
