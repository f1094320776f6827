"""The service: one thread answers calls in batches, another one learns, a third closes overdue episodes and checks."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextlib
import functools
import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from omg_trial.contract import Answer, KeyedCall, Refusal
from omg_trial.desk import Desk
from omg_trial.learning import misfit
from omg_trial.log.database import StoreError
from omg_trial.log.traces import trace
from omg_trial.operation.alerts import Courier
from omg_trial.operation.channels import Channel
from omg_trial.snapshots import set_aside
from omg_trial.versions import LearningTask
from omg_trial.watching.incidents import tick
from omg_trial.watching.process import Process

MOST_IN_BATCH = 100
MOST_WAITING = 1000
SNAPSHOT_EVENTS, SNAPSHOT_SHARE = 10_000, 0.1
"""Events after which a snapshot is kept, or the share by which the log grew: the longer it is, the more one costs."""
TICK_SECONDS = 60.0

_log = logging.getLogger("omg_trial")

Task = KeyedCall | Callable[[Desk], Any]
Future = concurrent.futures.Future[Any] | asyncio.Future[Any]


class Busy(Refusal):
    """Too many calls wait, or the service ends."""


class Service:
    """Runs a desk in threads. Calls that wait at the same time share a transaction, and are answered after it.

    Parameters
    ----------
    desk : Desk
        Only the service may use it from now on, until `end`.
    channels : sequence of Channel, default none
        By which the team is told of incidents.

    Examples
    --------
    >>> from omg_trial.log.database import Database
    >>> from omg_trial.trial_file import EXAMPLE, Trial
    >>> desk = Desk(Trial.parse(EXAMPLE), Database(":memory:"))
    >>> service = Service(desk)
    >>> future = service.submit(desk.prepare("open", {"person": "p1", "context": "alone"}))
    >>> future.result().mark.partition(":")[0]
    '3'
    >>> service.end()
    """

    def __init__(self, desk: Desk, channels: Sequence[Channel] = ()) -> None:
        self.desk = desk
        self.process = Process(desk.clock, desk.store.folder)
        self._tasks: queue.Queue[tuple[Task, Future] | None] = queue.Queue(MOST_WAITING)
        self._arrived: dict[asyncio.AbstractEventLoop, list[tuple[Task, asyncio.Future[Any]]]] = {}
        self._lessons: queue.Queue[LearningTask | None] = queue.Queue()
        self._learning: int | None = None
        self._snapshot = desk.state.number
        self._ended = threading.Event()
        self._couriers = [Courier(each, self._at_desk, self.process) for each in channels]
        self._threads = [
            threading.Thread(target=self._answer_calls, name="omg-trial answers"),
            threading.Thread(target=self._learn, name="omg-trial learns", daemon=True),
            threading.Thread(target=self._watch, name="omg-trial watches", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, task: Task, *, wait: bool = False) -> concurrent.futures.Future[Any]:
        """Return the answer of a call, when it is on disk; or call a function with the desk, between two batches.

        It raises `Refusal`, or `StoreError` if nothing was kept. If too many wait, it is refused; tasks of the service
        itself `wait` instead.
        """
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._put(task, future, wait)
        return future

    async def ask(self, task: Task) -> Any:
        """Do the same in an event loop, which is woken once for all answers of a batch.

        Calls that have arrived together are put together, so that they share a transaction. The thread that answers
        would otherwise begin with the first of them, and take the interpreter from the loop that reads the others.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        arrived = self._arrived.setdefault(loop, [])
        if not arrived:
            loop.call_soon(self._put_arrived, loop)
        arrived.append((task, future))
        return await future

    def _put_arrived(self, loop: asyncio.AbstractEventLoop) -> None:
        for task, future in self._arrived.pop(loop):
            try:
                self._put(task, future, False)
            except Busy as busy:
                _tell([(future, busy)])

    def _put(self, task: Task, future: Future, wait: bool) -> None:
        if self._ended.is_set():
            raise Busy(503, "the service is ending")
        try:
            self._tasks.put((task, future), block=wait)
        except queue.Full:
            raise Busy(503, f"more than {MOST_WAITING} calls wait") from None

    def end(self) -> None:
        """Answer the calls that wait, and end."""
        if not self._ended.is_set():
            self._ended.set()
            self._tasks.put(None)
            self._lessons.put(None)
            self._threads[0].join()

    def _answer_calls(self) -> None:
        going = True
        while going:
            # One transaction, and one fsync, for all calls that wait: that is what makes fifty clients bearable.
            batch = [self._tasks.get()]
            while len(batch) < MOST_IN_BATCH:
                try:
                    batch.append(self._tasks.get_nowait())
                except queue.Empty:
                    break
            going = None not in batch
            self._answer([task for task in batch if task is not None])
            self._after()

    def _answer(self, batch: list[tuple[Task, Future]]) -> None:
        asked = [(task, future) for task, future in batch if isinstance(task, KeyedCall)]
        try:
            answers: list[Any] = list(self.desk.answer([task for task, _ in asked]))
        except StoreError as error:
            _log.error("the store failed: %s", error)
            answers = [error] * len(asked)
        except Exception as error:
            # The state may be half-way: what the store holds is the truth.
            _log.error("a call failed: %s", trace(error))
            self.desk.lost = True
            answers = [StoreError(f"a call failed: {type(error).__name__}")] * len(asked)
        self.process.damage = self.desk.damage
        for answer in answers:
            if isinstance(answer, Answer) and answer.warning:
                _log.warning("%s", answer.warning)
        _settle((future, answer) for (_, future), answer in zip(asked, answers, strict=True))
        for task, future in batch:
            if not isinstance(task, KeyedCall):
                try:
                    found = task(self.desk)
                except Exception as error:
                    found = error
                _settle([(future, found)])

    def _after(self) -> None:
        """Begin to learn if that is due, and keep a snapshot now and then; the thread lives on, whatever fails."""
        with _logging("learning or a snapshot"):
            if self.desk.lost:
                return
            if self.desk.learning_due():
                self.desk.call("learn", {})
            learning = self.desk.state.learning
            if learning is not None and learning.number != self._learning:  # not given to the learner yet
                self._learning = learning.number
                self._lessons.put(learning)
            new = self.desk.state.number - self._snapshot
            if new >= max(SNAPSHOT_EVENTS, SNAPSHOT_SHARE * self._snapshot):
                self.desk.snapshot()
                set_aside()  # calls wait anyway
                self._snapshot = self.desk.state.number

    def _learn(self) -> None:
        while (task := self._lessons.get()) is not None:
            published = False
            with _logging("learning or publishing a model"):
                lesson = self.desk.trainer.learn(task)
                self.submit(functools.partial(Desk.publish_model, task=task, lesson=lesson), wait=True).result()
                published = True
                self.process.misfit = misfit(self.desk.trial, lesson.agent, task.dataset)
            if not published:
                self._learning = None  # it is given again, if it is still wanted

    def _watch(self) -> None:
        while not self._ended.wait(TICK_SECONDS):
            with _logging("the checks"):
                seen = tick(self._at_desk, self.process)
                for courier in self._couriers:
                    courier.look(*seen)

    def _at_desk(self, task: Callable[[Desk], Any]) -> Any:
        """Call a function with the desk, between two batches; not from the thread that answers."""
        return self.submit(task, wait=True).result()


@contextlib.contextmanager
def _logging(what: str) -> Iterator[None]:
    """Write errors to the service's own log, without anything of a person."""
    try:
        yield
    except Busy:
        pass  # the service is ending
    except StoreError as error:
        _log.error("the store failed: %s", error)
    except Exception as error:
        _log.error("%s failed: %s", what, trace(error))


def _settle(answered: Iterable[tuple[Future, Any]]) -> None:
    """Hand over answers: those for an event loop together, as waking it costs more than an answer."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[Future, Any]]] = collections.defaultdict(list)
    for future, answer in answered:
        if isinstance(future, asyncio.Future):
            loops[future.get_loop()].append((future, answer))
        else:
            _tell([(future, answer)])
    for loop, those in loops.items():
        with contextlib.suppress(RuntimeError):  # it was closed: nobody waits any more
            loop.call_soon_threadsafe(_tell, those)


def _tell(answered: list[tuple[Future, Any]]) -> None:
    for future, answer in answered:
        if future.done():  # nobody waits any more
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
