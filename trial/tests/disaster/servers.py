"""PostgreSQL is killed, comes back older, ends a session, or stands behind a pooler, while a trial goes on with it.

Every scene has a server of its own, on a free port. What was acknowledged must be in the log, and the log must replay.
"""

import contextlib
import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import psycopg

from omg_trial.contract import Refusal
from omg_trial.desk import Desk
from omg_trial.log.database import DamagedLogError, Database, InUseError, StoreError
from omg_trial.replay import replay
from trial.tests.disaster.cuts import _Clock
from trial.tests.disaster.world import TRIAL

PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Server:
    """A PostgreSQL of its own, in a folder that is deleted afterwards."""

    def __init__(self, folder):
        self.folder, self.port, self.data = folder, free_port(), folder / "data"
        self.user = "postgres" if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(folder, self.user)
        self.url, self.keys = f"postgresql://tester@127.0.0.1:{self.port}/postgres", folder / "trial.keys"
        self.run(PROGRAMS / "initdb", "-D", self.data, "-A", "trust", "-U", "tester", "--no-sync")
        self.start()

    def run(self, *command):
        prefix = ["runuser", "-u", self.user, "--"] if self.user else []
        # Not captured: the server would hold the pipe open.
        nothing = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([*prefix, *map(str, command)], check=True, cwd=self.folder, timeout=120, **nothing)

    def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        self.run(PROGRAMS / "pg_ctl", "-D", self.data, "-o", options, "-l", self.folder / "log", "-w", "start")

    def stop(self):
        """Stop at once, as a crash does: what is not in the server's log is lost."""
        self.run(PROGRAMS / "pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")

    def end_sessions(self):
        """End the sessions of everybody else, and with them their locks."""
        self._of_others("pg_terminate_backend(pid)")

    def wait_for_sessions(self):
        """Wait until nobody else has a session: those of a process that was killed end a little later."""
        while self._of_others("pid"):
            time.sleep(0.001)

    def _of_others(self, what):
        with psycopg.connect(self.url) as connection:
            others = "backend_type = 'client backend' AND pid <> pg_backend_pid()"
            return connection.execute(f"SELECT {what} FROM pg_stat_activity WHERE {others}").fetchall()

    def move(self):
        """Let the next service be on another machine: with a copy of the key file, whose lock nobody has."""
        self.keys = Path(shutil.copy(self.keys, f"{self.keys}+"))

    def open(self, url=None):
        store = Database(url or self.url, keys=self.keys)
        return Desk(TRIAL, store, clock=_Clock(), correct_clock=True)


@contextlib.contextmanager
def server():
    """Yield a server."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        found = Server(Path(name))
        try:
            yield found
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):
                found.stop()


class File:
    """A SQLite file, for what runs on both."""

    def __init__(self, folder):
        self.folder, self.url, self.keys = folder, folder / "trial.db", folder / "trial.keys"

    def wait_for_sessions(self):
        """Return: there are none but those of the process."""


@contextlib.contextmanager
def place(on_server):
    """Yield a server, or a file."""
    with server() if on_server else tempfile.TemporaryDirectory() as found:
        yield found if on_server else File(Path(found))


def _ask(at, name, seconds=60.0):
    """Make a call, and again while the store does not answer; return what was answered."""
    end = time.monotonic() + seconds
    while True:
        try:
            return at.call("open", {"person": name, "context": "alone"}, name).text
        except DamagedLogError:
            raise
        except (StoreError, Refusal):
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def _after(it, told):
    """Return what is wrong with the log: what was told must be in it once, and it must replay."""
    with contextlib.closing(Database(it.url, writing=False, keys=it.keys)) as store:
        answers = [event.answer for event in store.read()]
        wrong = [f"{text[:60]} was acknowledged, and is {answers.count(text)} times in the log"
                 for text in told if answers.count(text) != 1]  # fmt: skip
        return wrong + replay(TRIAL, store.read()).differences


def killed(times=4, calls=40):
    """The server crashes at random moments while calls are made one after the other."""
    draw, told = random.Random("killed"), []
    with server() as it:
        at, ended = it.open(), threading.Event()

        def crash():
            for _ in range(times):
                time.sleep(draw.uniform(0.05, 0.5))
                it.stop()
                it.start()
            ended.set()

        thread = threading.Thread(target=crash)
        thread.start()
        while not ended.is_set() or len(told) < calls:
            told.append(_ask(at, f"p{len(told)}"))
        thread.join()
        at.store.close()
        return _after(it, told)


def older():
    """The server comes back with an older state: nothing may be answered, nor decided again."""
    with server() as it:
        at = it.open()
        _ask(at, "one")
        it.stop()
        it.run("cp", "-a", it.data, it.folder / "older")
        it.start()
        told = _ask(at, "two")
        it.stop()
        shutil.rmtree(it.data)
        (it.folder / "older").rename(it.data)
        it.start()
        wrong = []
        for _ in range(3):
            try:
                answered = _ask(at, "three", seconds=5.0)
                wrong = [f"an older server was believed: {answered[:60]} after {told[:60]}"]
            except (DamagedLogError, StoreError):
                pass
        at.store.close()
        return wrong


def session_lost():
    """The server ends a session; another service starts; the first must write nothing more."""
    with server() as it:
        first, wrong = it.open(), []
        told = [_ask(first, "one")]
        it.end_sessions()
        it.move()
        second = it.open()
        told.append(_ask(second, "two"))
        for number in range(3):
            with contextlib.suppress(StoreError):
                told.append(first.call("open", {"person": f"late-{number}", "context": "alone"}).text)
                wrong = ["the first service writes although another one has the lock"]
        told.append(_ask(second, "three"))
        it.move()
        with contextlib.suppress(InUseError):
            it.open().store.close()
            wrong.append("a third service starts beside the second")
        first.store.close()
        second.store.close()
        return wrong + _after(it, told)


def pooled():
    """Behind a pooler that gives each transaction another session, a service must not write."""
    pooler = shutil.which("pgbouncer")
    if pooler is None:
        return "skipped: no pgbouncer is installed"
    with server() as it:
        port, settings = free_port(), it.folder / "pooler.ini"
        settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={it.port} user=tester\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            "auth_type = any\npool_mode = transaction\ndefault_pool_size = 4\nserver_lifetime = 0\nunix_socket_dir =\n"
            f"ignore_startup_parameters = extra_float_digits\nlogfile = {it.folder / 'pooler.log'}\n"
        )
        prefix = ["runuser", "-u", it.user, "--"] if it.user else []
        nothing = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen([*prefix, pooler, str(settings)], **nothing) as process:
            try:
                return _behind(it, it.url.replace(str(it.port), str(port)))
            finally:
                process.terminate()


def _behind(it, url):
    direct, wrong = it.open(), []
    told = [_ask(direct, "one")]
    direct.store.close()
    end, pooled_desk = time.monotonic() + 10.0, None
    while pooled_desk is None and time.monotonic() < end:
        try:
            pooled_desk = it.open(url)
        except StoreError as error:
            refused = str(error)
            if "lock" in refused or "in use" in refused:
                return _after(it, told)
            time.sleep(0.2)
    if pooled_desk is None:
        return [f"the pooler does not answer: {refused}"]
    it.move()
    try:
        with contextlib.closing(it.open().store):
            wrong.append("a service starts beside one behind a pooler")
    except InUseError:
        pass
    finally:
        pooled_desk.store.close()
    return wrong + _after(it, told)


SCENES = {
    "PostgreSQL, killed": killed,
    "PostgreSQL, older": older,
    "PostgreSQL, session lost": session_lost,
    "PostgreSQL, behind a pooler": pooled,
}
"""Scenes with a server, if there is one."""
