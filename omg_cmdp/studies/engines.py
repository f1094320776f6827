"""Where the runs of an experiment are played: in this process, on the cores of this machine, or on a Ray cluster.

One task is one whole run, which writes its own files; so any engine gives the same numbers to the bit, and a worker
that dies takes nothing with it but the episodes since its last checkpoint. Each worker has one thread.

The pool is our own: the standard library's and joblib's both give up all runs when one worker dies, and neither tells
how far a run is.
"""

from __future__ import annotations

import abc
import collections
import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from multiprocessing import connection, get_context, resource_tracker
from typing import TYPE_CHECKING, Any, final

from omg_cmdp.studies.plan import Task
from omg_cmdp.studies.runner import Event, Failed, Lost, Progress, Report, play, record_failure
from omg_cmdp.studies.store import Store

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

MOST_LOSSES = 3
"""So many workers in a row may a run lose without a checkpoint in between, until it counts as failed."""

THREADS = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM")}


class Engine(abc.ABC):
    """Plays runs."""

    @abc.abstractmethod
    def run(self, tasks: Sequence[Task], store: Store, report: Report) -> None:
        """Play all `tasks`, and report what happens to them. Errors of runs are recorded, not raised."""


@final
class Serial(Engine):
    """One run after another, in this process."""

    def run(self, tasks: Sequence[Task], store: Store, report: Report) -> None:
        """Play all `tasks` in their order."""
        with one_thread():
            for task in tasks:
                play(task, store, report)


@final
class Local(Engine):
    """Several processes on this machine."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(self, tasks: Sequence[Task], store: Store, report: Report) -> None:
        """Play all `tasks`; a run whose worker dies goes on in a new one."""
        waiting = collections.deque(tasks)
        losses = _Losses()
        busy: dict[Any, _Worker] = {}
        idle: list[_Worker] = []
        try:
            while waiting or busy:
                while waiting and len(busy) < self.workers:
                    worker = idle.pop() if idle else _Worker(store)
                    worker.give(waiting.popleft())
                    losses.begin(worker.task)
                    busy[worker.pipe] = worker
                for pipe in connection.wait(list(busy)):
                    worker = busy[pipe]
                    event = worker.hear()
                    if event is None:
                        del busy[pipe]
                        worker.kill()
                        event = losses.add(worker.task)
                        if isinstance(event, Lost):
                            waiting.appendleft(worker.task)
                        else:
                            record_failure(worker.task, store, event.error)
                    elif isinstance(event, Progress):
                        losses.note(event)
                    else:
                        idle.append(busy.pop(pipe))
                    report(event)
        finally:
            # Whatever they are doing can be stopped at any moment.
            for worker in [*idle, *busy.values()]:
                worker.kill()


class _Losses:
    """How many workers each run has lost since its last checkpoint."""

    def __init__(self) -> None:
        self._losses: collections.Counter[str] = collections.Counter()
        self._saved: dict[str, int] = {}
        self._new: set[str] = set()

    def begin(self, task: Task) -> None:
        """A worker takes over: the first that it reports is where the last checkpoint was."""
        self._new.add(task.name)

    def note(self, progress: Progress) -> None:
        """Forget the losses of a run whose checkpoint has moved on."""
        if progress.run in self._new:
            self._new.remove(progress.run)
            if progress.episode > self._saved.get(progress.run, 0):
                self._losses[progress.run] = 0
            self._saved[progress.run] = progress.episode

    def add(self, task: Task) -> Lost | Failed:
        """Return whether to go on after one more loss."""
        self._losses[task.name] += 1
        if self._losses[task.name] <= MOST_LOSSES:
            return Lost(task.name, self._losses[task.name])
        return Failed(task.name, f"its process died {self._losses[task.name]} times in a row; out of memory, perhaps")


class _Worker:
    """A process that plays the runs it is given, one at a time."""

    task: Task

    def __init__(self, store: Store) -> None:
        # Not forked: a fork of a process with threads, such as a progress display, may hang.
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process: SpawnProcess = context.Process(target=_work, args=(theirs, store.directory), daemon=True)
        with _inherited_by_children():
            self._process.start()
        theirs.close()

    def give(self, task: Task) -> None:
        """Give it a run."""
        self.task = task
        with contextlib.suppress(OSError):  # it has died: heard below
            self.pipe.send(task)

    def hear(self) -> Event | None:
        """Return what it says; None if it has died."""
        try:
            event: Event = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return event

    def kill(self) -> None:
        """End the process, at once."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _work(pipe: connection.Connection, directory: os.PathLike[str]) -> None:
    """Play what comes through the pipe, until nobody is at its other end."""

    def report(event: Event) -> None:
        try:
            pipe.send(event)
        except OSError:
            raise SystemExit from None

    with one_thread():
        while True:
            try:
                task: Task = pipe.recv()
            except (EOFError, OSError):
                return
            play(task, Store(directory), report)


@final
class Ray(Engine):
    """A Ray cluster, all of whose nodes see the directory of the experiment under the same name."""

    def __init__(self, address: str | None = None) -> None:
        self.address = address

    def run(self, tasks: Sequence[Task], store: Store, report: Report) -> None:
        """Play all `tasks`; Ray retries those whose worker or node dies."""
        import ray

        ray.init(address=self.address, log_to_driver=False, runtime_env={"env_vars": THREADS})
        directory = str(store.directory.resolve())
        remote = ray.remote(num_cpus=1, max_retries=MOST_LOSSES)(_play_alone)
        pending = {remote.remote(task, directory): task for task in tasks}
        try:
            while pending:
                for each in ray.wait(list(pending), num_returns=1, timeout=1.0)[0]:
                    task = pending.pop(each)
                    try:
                        event: Event = ray.get(each)
                    except ray.exceptions.RayError as error:
                        record_failure(task, store, str(error))
                        event = Failed(task.name, f"{type(error).__name__}: its worker was lost")
                    report(event)
                for task in pending.values():
                    if parts := len(store.parts(task.name)):
                        report(Progress(task.name, min(task.episodes, parts * task.checkpoint), float("nan")))
        finally:
            for each in pending:
                ray.cancel(each, force=True)
            ray.shutdown()


def _play_alone(task: Task, directory: str) -> Event:
    """Play a run, and return how it ended."""
    events: collections.deque[Event] = collections.deque(maxlen=1)
    with one_thread():
        play(task, Store(directory), events.append)
    return events[0]


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Hold numerical libraries to one thread: same bits everywhere, and workers do not compete."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


@contextlib.contextmanager
def _inherited_by_children() -> Iterator[None]:
    """Start processes with one thread for libraries that load later, and deaf to Ctrl-C, which is for their parent."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(THREADS)
    resource_tracker.ensure_running()  # now, for as a process of its own it would end what follows
    open_to = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # blocked, not lost: the parent hears it after
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, open_to)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
