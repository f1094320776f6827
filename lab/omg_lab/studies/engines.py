"""The engines that play the runs of a study: in this process, or on the cores of this machine.

A task is a whole run, which writes its own files. So every engine gives the same numbers bit for bit, and when a worker
dies, only the episodes since its last checkpoint are played again. Each worker has one thread.

The pool is our own. Those of the standard library, joblib and loky give up all runs when one worker dies, do not say
which run it played, and report no progress; the queues that would report it hang if a worker dies while it writes.
"""

from __future__ import annotations

import collections
import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from multiprocessing import connection, get_context, resource_tracker
from typing import TYPE_CHECKING, Any

from omg_cmdp.documents import FileError
from omg_cmdp.jit import one_thread
from omg_lab.studies.plan import Task
from omg_lab.studies.runner import Event, Failed, Lost, Progress, Report, Waiting, give_up, play
from omg_lab.studies.store import StudyStore

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

MOST_LOSSES = 3
"""The number of workers that may die in a row, with no checkpoint in between, before a run is given up."""

THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
"""The environment of a worker: one thread for every numerical library; the last is Apple's."""


def play_all(tasks: Sequence[Task], store: StudyStore, report: Report, *, workers: int | None = None) -> None:
    """Play all `tasks` with this number of processes, by default one for each core, and report what happens.

    Errors of runs are stored, not raised.
    """
    count = workers or cores()
    if count == 1:
        play_here(tasks, store, report)
    else:
        play_in_workers(tasks, store, report, count)


def play_here(tasks: Sequence[Task], store: StudyStore, report: Report) -> None:
    """Play one run after another, in this process."""
    with one_thread():
        for task in tasks:
            play(task, store, report)


def play_in_workers(tasks: Sequence[Task], store: StudyStore, report: Report, workers: int) -> None:
    """Play several runs at a time, in processes on this machine; if a worker dies, a new one continues its run."""
    waiting = collections.deque(tasks)
    losses: collections.Counter[tuple[str, int]] = collections.Counter()
    busy: dict[Any, _Worker] = {}
    idle: list[_Worker] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                worker = idle.pop() if idle else _Worker(store)
                worker.send(waiting.popleft())
                busy[worker.pipe] = worker
            for pipe in connection.wait(list(busy)):
                worker = busy[pipe]
                event = worker.receive()
                if isinstance(event, FileError):
                    raise event
                if event is None:
                    del busy[pipe]
                    worker.kill()
                    event = _count_loss(worker.task, store, losses)
                    if isinstance(event, Lost):
                        waiting.appendleft(worker.task)
                elif not isinstance(event, (Progress, Waiting)):
                    idle.append(busy.pop(pipe))
                report(event)
    finally:
        # A run may be stopped at any moment: it continues from its checkpoint.
        for worker in [*idle, *busy.values()]:
            worker.kill()


def _count_loss(task: Task, store: StudyStore, losses: collections.Counter[tuple[str, int]]) -> Lost | Failed:
    """Count the workers that a run has lost since its last checkpoint; say whether it goes on."""
    since = (task.name, store.saved_at(task.name))
    losses[since] += 1
    if losses[since] <= MOST_LOSSES:
        return Lost(task.name)
    error = f"its worker died {losses[since]} times in a row; perhaps it ran out of memory"
    give_up(task, store, error)
    return Failed(task.name, error)


class _Worker:
    """A process that plays the runs it is given, one at a time."""

    task: Task

    def __init__(self, store: StudyStore) -> None:
        # Not forked: the fork of a process with threads, such as a progress display, may hang.
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process: SpawnProcess = context.Process(target=_serve, args=(theirs, store.directory), daemon=True)
        with _started_single_threaded():
            self._process.start()
        theirs.close()

    def send(self, task: Task) -> None:
        """Give the worker a run to play."""
        self.task = task
        with contextlib.suppress(OSError):  # it has died: `receive` will say so
            self.pipe.send(task)

    def receive(self) -> Event | FileError | None:
        """Return the worker's next event, or the error about the study's files that ends it; None if it has died."""
        try:
            event: Event | FileError = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return event

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _serve(pipe: connection.Connection, directory: os.PathLike[str]) -> None:
    """Play the tasks that come through the pipe, until its other end is closed."""

    def tasks() -> Iterator[Task]:
        with contextlib.suppress(EOFError, OSError):
            while True:
                yield pipe.recv()

    def report(event: Event | FileError) -> None:
        try:
            pipe.send(event)
        except OSError:
            raise SystemExit from None  # no `Exception`, which would count as an error of the run

    with one_thread():
        for task in tasks():
            try:
                play(task, StudyStore(directory), report)
            except FileError as error:  # about the study's files: it ends the study
                report(error)


def cores() -> int:
    """Return how many cores this process may use; where the system does not say, how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _started_single_threaded() -> Iterator[None]:
    """Let child processes start with one thread for every library, and with Ctrl-C blocked, which is for the parent."""
    before = {name: os.environ[name] for name in THREADS if name in os.environ}
    os.environ.update(THREADS)
    resource_tracker.ensure_running()  # now: started below, it would unblock Ctrl-C again
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # not lost: it reaches the parent afterwards
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for name in THREADS:
            del os.environ[name]
        os.environ.update(before)
