"""`python -m trial.tests.zygote`: starts services by forking, so that a start takes no time, for tests that kill them.

Reads lines `DATABASE SOCKET [KEYS]`, and answers each with the process number of a service that listens on the socket:
a line of JSON [name, body, key] is answered by a line of JSON [status, text].
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading

from omg_trial import service as services
from omg_trial.contract import Refusal
from omg_trial.desk import Desk
from omg_trial.log.database import Database, StoreError
from omg_trial.service import Service
from trial.tests.trials import desk, person, trial

services.SNAPSHOT_EVENTS, services.SNAPSHOT_SHARE = 30, 0.0


def answered(service, line):
    """Return the status and text for a call."""
    name, body, key = json.loads(line)
    try:
        return [200, service.submit(service.desk.prepare(name, body, key)).result().text]
    except Refusal as refusal:
        return [refusal.status, refusal.message]
    except StoreError as error:
        return [503, str(error)]


def serve(database, address, keys=None):
    """Answer calls on a socket until the end."""
    service = Service(Desk(trial(), Database(database, keys=keys)))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(50)

    def talk(connection):
        with connection, connection.makefile("rw") as lines:
            for line in lines:
                lines.write(json.dumps(answered(service, line)) + "\n")
                lines.flush()

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=talk, args=(connection,), daemon=True).start()


def main():
    """Fork a service for each line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    desk().call("open", {"person": "p", "context": person(1)})  # compiles
    for line in sys.stdin:
        words = line.split()
        child = os.fork()
        if not child:
            try:
                serve(*words)
            except BaseException as error:
                print(f"a service ended: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        print(child, flush=True)


if __name__ == "__main__":
    main()
