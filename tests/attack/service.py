"""`kill -9` of the service of a trial under load: what it has acknowledged is there once, and replays to the bit.

Five clients open, decide, report and close as fast as they are answered, and ask again with the same key after each
kill. A kill comes at a random moment: while the service starts, after its first answer, or after several snapshots.
`--effort 10` is a thousand kills; `python -m trial.benchmarks.kills` makes as many, can be interrupted, and counts. On
PostgreSQL the service has a server of its own, which is stopped at once and started again in every third life.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.attack.outcome import Outcome
from trial.tests.disaster import servers

KILLS, TOGETHER = 100, 50
"""At effort 1, and in one database."""
CLIENTS = 5
MOST_ANSWERS = 400
"""Answers of a service before it is killed; a snapshot is kept after every 30 events."""


def attack(effort: float, seed: int, postgresql: bool = False) -> Outcome:
    """Kill services, and look at what is left."""
    draw, outcome = random.Random(seed), Outcome()
    counts = outcome.counts
    left = max(2, round(KILLS * effort))
    with _zygote() as start:
        while left > 0:
            kills = min(left, TOGETHER)
            left -= kills
            with servers.place(postgresql) as place:
                clients = [_Client(f"c{number}", draw.randrange(2**32)) for number in range(CLIENTS)]
                for number in range(kills + 1):
                    moment = None if number == kills else (_answers(draw), draw.random() ** 3 * 0.5)
                    crashes = postgresql and moment is not None and number % 3 == 1
                    counts["crashes of the server"] += crashes
                    _life(start, place, clients, moment, crashes)
                outcome.tried += kills
                wrong = _wrong(place, clients, counts)
                outcome.broken += [f"seed {seed}, {left} kills later: {each}" for each in wrong]
    return outcome


def _answers(draw: random.Random) -> int:
    """Return the number of answers after which a service is killed; 0 is while it starts."""
    return draw.choice((0, 1, *(draw.randrange(2, MOST_ANSWERS) for _ in range(4))))


@contextlib.contextmanager
def _zygote():
    command = [sys.executable, "-m", "trial.tests.zygote"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def start(place, address: Path) -> int:
            process.stdin.write(f"{place.url} {address} {place.keys}\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        try:
            yield start
        finally:
            process.kill()


def _life(start, place, clients, moment: tuple[int, float] | None, crashes: bool) -> None:
    """Kill a service at a moment after its first answer or its start; without one, when it has learned something."""
    address = place.folder / f"socket-{time.monotonic_ns()}"
    service = start(place, address)
    talk, most = _Talk(service), 10 if moment is None else 10**6
    threads = [threading.Thread(target=client.live, args=(address, most, talk)) for client in clients]
    for thread in threads:
        thread.start()
    if moment is None:
        for thread in threads:
            thread.join()
        _wait_for_a_model(place)
    else:
        answers, seconds = moment
        if crashes:
            talk.wait_for(answers // 2)
            place.stop()
            place.start()
        talk.wait_for(answers)
        time.sleep(seconds if answers < 2 else 0.1 * seconds)
    with contextlib.suppress(ProcessLookupError):  # one that starts while the server is away ends by itself
        os.kill(service, signal.SIGKILL)
    talk.over.set()
    for thread in threads:
        thread.join()
    while talk.has_service():  # until its lock is free
        time.sleep(0.001)
    place.wait_for_sessions()


def _wait_for_a_model(place) -> None:
    from omg_trial.log.database import Database

    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        with contextlib.closing(Database(place.url, writing=False, keys=place.keys)) as store:
            if any(event.kind == "learned" for event in store.read()):
                return
        time.sleep(0.05)


class _Talk:
    """Between clients and a service."""

    def __init__(self, service: int) -> None:
        self.service, self.answers, self.over = service, 0, threading.Event()

    def has_service(self) -> bool:
        """Return whether the service is there."""
        return Path(f"/proc/{self.service}").exists()

    def wait_for(self, answers: int) -> None:
        """Wait until there were as many answers, or for a minute if the service lives."""
        end = time.monotonic() + 60.0
        while self.answers < answers and time.monotonic() < end and self.has_service():
            time.sleep(0.001)


class _Client:
    """An app: it makes one call after the other, and repeats one until it is answered."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self._draw = name, random.Random(seed)
        self.answers: dict[str, list] = {}
        self._calls = self._script()
        self._call = next(self._calls)

    def live(self, address: Path, most: int, talk: _Talk) -> None:
        """Make calls until there have been enough, or until nobody answers."""
        with contextlib.suppress(OSError, ValueError), self._connected(address, talk) as lines:
            for _ in range(most):
                key = f"{self.name}-{len(self.answers)}"
                lines.write(json.dumps([*self._call, key]) + "\n")
                lines.flush()
                answer = json.loads(lines.readline())
                if answer[0] == 503:
                    time.sleep(0.02)
                    continue
                talk.answers += 1
                self.answers[key] = answer
                self._call = self._calls.send(answer)

    @contextlib.contextmanager
    def _connected(self, address: Path, talk: _Talk):
        with socket.socket(socket.AF_UNIX) as connection:
            while not talk.over.is_set() and connection.connect_ex(str(address)):
                time.sleep(0.005)
            with connection.makefile("rw") as lines:
                yield lines

    def _script(self):
        for number in range(10**9):
            person, state = f"{self.name}-p{number % 4}", "took it"
            context = {"age": self._draw.randrange(20, 90)}
            _, text = yield "open", {"person": person, "context": context}
            episode = json.loads(text)["episode"]
            for step in range(self._draw.randrange(1, 5)):
                yield "decide", {"episode": episode, "step": step, "state": state}
                state = self._draw.choice(["took it", "missed it"])
                report = {"episode": episode, "step": step, "reward": float(state == "took it"), "next_state": state}
                yield "report", report
            yield "close", {"episode": episode}


def _wrong(place, clients, counts) -> list[str]:
    """Return what is wrong with the log, and with the answers."""
    from omg_trial.log.database import Database
    from omg_trial.replay import replay
    from trial.tests.trials import trial

    store = Database(place.url, writing=False, keys=place.keys)
    events = list(store.read())
    store.close()
    told = {event.key: event.answer for event in events if event.key is not None}
    mark = store.keys.mark  # keys of calls are keyed hashes in the log
    acknowledged = {mark("key", key): answer for client in clients for key, answer in client.answers.items()}
    counts["acknowledged"] += len(acknowledged)
    lives = "".join({"started": "|", "snapshot": "s"}.get(event.kind, "") for event in events).split("|")
    counts["starts"] += len(lives) - 1
    for least in (1, 3):
        counts[f"lives with {least} or more snapshots"] += sum(len(life) >= least for life in lives)
    wrong = [f"{key} was refused: {answer}" for key, answer in acknowledged.items() if answer[0] != 200]
    wrong += [f"{key} has another answer" for key, (_, text) in acknowledged.items() if told.get(key) != text]
    steps = [(event.body["episode"], event.body["step"]) for event in events if event.kind == "decided"]
    if len(set(steps)) < len(steps):
        wrong.append("a step was decided twice")
    if len(told) > len(acknowledged) + len(clients) + sum(event.kind == "learning" for event in events):
        wrong.append("there are events that nobody asked for")
    wrong += replay(trial(), events).differences
    if not any(event.kind == "learned" for event in events) or len(acknowledged) < CLIENTS:
        wrong.append(f"hardly anything happened: {len(events)} events")
    return wrong
