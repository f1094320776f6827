"""Zombie writers: a service is stopped, another one starts, and the first wakes up: it must write nothing more.

On SQLite the lock is held by the process, asleep or not: the other one is refused. If somebody deletes the lock's file,
or moves the database, the first must not acknowledge what is then in no log. `servers` has the scenes on PostgreSQL.
"""

import contextlib
import functools
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trial.tests.disaster import servers


@contextlib.contextmanager
def _zygote():
    command = [sys.executable, "-m", "trial.tests.zygote"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as it:

        def start(folder, name):
            it.stdin.write(f"{folder / 'trial.db'} {folder / name}\n")
            it.stdin.flush()
            return int(it.stdout.readline())

        try:
            yield start
        finally:
            it.kill()


def _ask(address, person, seconds=30.0):
    """Open an episode; return the answer, None if nobody answers in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError), socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(max(0.1, end - time.monotonic()))
            connection.connect(str(address))
            with connection.makefile("rw") as lines:
                lines.write(json.dumps(["open", {"person": person, "context": {"age": 50}}, person]) + "\n")
                lines.flush()
                return json.loads(lines.readline())
        time.sleep(0.05)
    return None


def _kill(*numbers):
    for number in numbers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def _kept(database):
    """Return the answers that a database has, read without the service."""
    with contextlib.closing(sqlite3.connect(database)) as file:
        return {answer for (answer,) in file.execute("SELECT answer FROM events WHERE answer IS NOT NULL")}


def _stopped(steal):
    """Stop a service, take something away from it, start another one, wake the first, and ask both."""
    with _zygote() as start, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = start(folder, "first")
        told = [_ask(folder / "first", "one", 120.0)]
        os.kill(first, signal.SIGSTOP)
        try:
            steal(folder)
            second = start(folder, "second")
            told.append(_ask(folder / "second", "two", 15.0))
            os.kill(first, signal.SIGCONT)
            told += [_ask(folder / "first", f"late-{number}", 15.0) for number in range(3)]
            told.append(_ask(folder / "second", "three", 5.0))
        finally:
            _kill(first, second)
        time.sleep(0.1)
        kept = _kept(folder / "trial.db")
        lost = [answer for answer in told if answer is not None and answer[0] == 200 and answer[1] not in kept]
        from omg_trial.log.database import Database
        from omg_trial.log.events import Chain

        with contextlib.closing(Database(folder / "trial.db", writing=False)) as store:
            Chain(store.rows())
        return [f"it was acknowledged, and is not in the log: {answer[1][:60]}" for answer in lost]


def _delete_lock(folder):
    (folder / "trial.db.lock").unlink()


def _move_database(folder):
    """Put a copy in its place, with its lock's file, as a restored backup would be."""
    shutil.copy(folder / "trial.db", folder / "copy.db")
    (folder / "copy.db").replace(folder / "trial.db")
    (folder / "trial.db.lock").unlink()


def _on_server(scene):
    return "skipped: no PostgreSQL is installed" if servers.PROGRAMS is None else scene()


SCENES = {
    "stopped and woken": lambda: _stopped(lambda folder: None),
    "its lock deleted": lambda: _stopped(_delete_lock),
    "its database replaced": lambda: _stopped(_move_database),
    **{name: functools.partial(_on_server, scene) for name, scene in servers.SCENES.items()},
}
