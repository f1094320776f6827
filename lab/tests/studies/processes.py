"""The command in processes of its own, which can be killed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import omg_lab

ROOT = Path(omg_lab.__file__).parents[1]


def command(*arguments, **options):
    """Start the command in a process of its own."""
    whole = [sys.executable, "-m", "omg_lab", *map(str, arguments)]
    return subprocess.Popen(whole, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def wait_for(condition, process, seconds=120.0):
    """Wait until `condition` holds, or the process has ended."""
    until = time.monotonic() + seconds
    while not condition() and process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.02)


def killed_again_and_again(kills, file, out, *, workers, draw):
    """Kill the command, or it and all its workers, at random moments; then let it come to its end.

    Return how often it was still at work when it was killed, and what it said if it did not end well.
    """
    arguments = ("run", file, "--out", out, "--workers", workers, "--quiet")
    interrupted = 0
    for _ in range(kills):
        process = command(*arguments, start_new_session=True)
        known = len(list(out.glob("*/*")))
        if draw.random() < 0.8:  # at work, and not while it starts
            wait_for(lambda known=known: len(list(out.glob("*/*"))) > known, process)
        time.sleep(draw.random() ** 2)
        interrupted += process.poll() is None
        if draw.random() < 0.5:
            with contextlib.suppress(ProcessLookupError):  # it has come to its end
                os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()  # its workers find out by themselves
        process.communicate()
    process = command(*arguments)
    _, error = process.communicate()
    return interrupted, error if process.returncode else ""
