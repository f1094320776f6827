"""The service over HTTP, from its start to its end."""

from __future__ import annotations

import contextlib
import datetime
import gc
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

import uvicorn

from omg_trial.desk import Desk
from omg_trial.log.database import Database
from omg_trial.operation.channels import channels
from omg_trial.rehearsal.report import rehearse
from omg_trial.service import Service
from omg_trial.snapshots import set_aside
from omg_trial.tokens import Tokens
from omg_trial.trial_file.trial import Trial
from omg_trial.web.app import make_app
from omg_trial.web.connections import guarded

PATIENCE = 10
"""Seconds that calls under way have when the service ends."""


@contextlib.contextmanager
def serving(
    trial: Trial,
    database: str | os.PathLike[str],
    tokens: str | os.PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    keys: str | os.PathLike[str] | None = None,
    correct_clock: bool = False,
    new: bool | None = None,
    clock: Callable[[], datetime.datetime] | None = None,
) -> Iterator[str]:
    """Serve a trial until the block ends, and yield the address. Calls that are under way at the end are answered.

    Parameters
    ----------
    trial : Trial
        The trial to serve.
    database : path or str
        A SQLite file, or `postgresql://...`; made if it is not there.
    tokens : path
        The file of `Tokens`.
    host : str, default "127.0.0.1"
        The address to listen at. TLS belongs to a proxy in front of it.
    port : int, default 0
        0 is any that is free.
    keys : path or None, default None
        The key file; by default it lies beside a SQLite file.
    correct_clock, new, clock
        Whether the clock is right although the log says otherwise, whether a trial is founded, and the clock itself;
        see `Desk`.

    Examples
    --------
    >>> import tempfile, httpx
    >>> from omg_trial.trial_file import EXAMPLE
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with serving(Trial.parse(EXAMPLE), f"{folder}/trial.db", f"{folder}/tokens") as address:
    ...         print(httpx.get(f"{address}/v1/health").json()["status"])
    ready
    """
    told = channels(trial.alerts)  # a secret that is missing is noticed before anything else
    with (
        contextlib.closing(Database(database, keys=keys)) as store,
        contextlib.closing(_listener(host, port)) as listener,
    ):
        rehearse(trial, people=1)  # so that nobody waits for a compiler
        service = Service(Desk(trial, store, correct_clock=correct_clock, new=new, clock=clock), told)
        app = make_app(service, Tokens(tokens))
        set_aside()
        config = uvicorn.Config(
            app,
            http=guarded(),
            ws="none",
            access_log=False,  # addresses name people
            log_config=None,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=PATIENCE,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="omg-trial listens")
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.005)
            yield f"http://{host if ':' not in host else f'[{host}]'}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
            service.end()
            gc.unfreeze()


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit it. asyncio sets it only on sockets that name their protocol, which these do not;
        # without it every answer on a kept connection waits 40 ms for an acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Bound, and not yet listening: the port is ours, and whoever asks before all is ready is refused at once.
        listener.bind((host, port))
        return listener
    except (OSError, OverflowError) as error:
        listener.close()
        advice = "choose another `host` or `port`"
        raise ValueError(f"cannot listen at {host} and port {port} ({error}); {advice}") from None
