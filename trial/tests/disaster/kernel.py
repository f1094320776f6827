"""Virtual time: threads, queues, futures and clocks of the service and its clients, in one thread and without waiting.

A task is a greenlet. It runs until it waits for something; then the next one in the order of virtual time runs. The
same seed gives the same order.
"""

import concurrent.futures
import heapq
import itertools
import queue
import types

import greenlet


class Crash(BaseException):
    """A process ends here, without a word."""


class Owner:
    """A process: what it has begun ends with it."""

    def __init__(self, name):
        self.name, self.tasks, self.dead = name, [], False


class Kernel:
    """Runs tasks in the order of virtual time. A task belongs to an owner, which may be killed."""

    def __init__(self):
        self.now, self._heap, self._order = 0.0, [], itertools.count()
        self._hub, self.stopped = greenlet.getcurrent(), False
        self.deaths = []
        """Tasks that ended by an error that nobody caught: in a real process, a thread that is no more."""

    @property
    def owner(self):
        """The owner of the task that runs."""
        return getattr(greenlet.getcurrent(), "owner", None)

    def spawn(self, function, *given, owner=None, after=0.0):
        """Begin a task."""

        def body():
            try:
                function(*given)
            except (Crash, greenlet.GreenletExit):
                pass
            except BaseException as error:
                self.deaths.append((getattr(function, "__qualname__", str(function)), error))

        task = greenlet.greenlet(body, self._hub)
        task.owner, task.turn = owner, 0
        self._at(self.now + after, task)
        return task

    def kill(self, owner):
        """End all tasks of an owner, but the one that runs."""
        owner.dead = True
        tasks = {each[2] for each in self._heap} | set(owner.tasks)
        for task in tasks:
            if task.owner is owner and task is not greenlet.getcurrent() and task and not task.dead:
                task.parent = greenlet.getcurrent()
                task.throw(greenlet.GreenletExit)

    def sleep(self, seconds):
        """Let virtual time go by."""
        self._check_alive()
        self._at(self.now + max(seconds, 0.0), greenlet.getcurrent())
        self._pause()

    def wait(self, waiting, timeout=None):
        """Wait until `wake` is called with the same list; return False if the time is up before."""
        self._check_alive()
        task = greenlet.getcurrent()
        waiting.append(task)
        if timeout is not None:
            self._at(self.now + timeout, task, waiting)
        return self._pause() != "timeout"

    def _pause(self):
        task = greenlet.getcurrent()
        try:
            return self._hub.switch()
        finally:
            task.turn += 1  # a timer that was set before means nothing any more

    def wake(self, waiting):
        """Let the tasks that wait go on."""
        for task in waiting:
            self._at(self.now, task)
        waiting.clear()

    def run(self, until):
        """Run until a moment, or until nothing happens any more, or until somebody has set `stopped`."""
        while self._heap and self._heap[0][0] <= until and not self.stopped:
            self.now, _, task, turn, waiting = heapq.heappop(self._heap)
            if task.dead or turn != task.turn or (waiting is not None and task not in waiting):
                continue
            if waiting is not None:
                waiting.remove(task)
            task.parent = self._hub
            task.switch("timeout") if waiting is not None and task else task.switch()
        self.now = max(self.now, until)

    def _check_alive(self):
        if self.owner is not None and self.owner.dead:
            raise Crash

    def _at(self, moment, task, waiting=None):
        heapq.heappush(self._heap, (moment, next(self._order), task, task.turn, waiting))

    # What stands in for modules of Python.

    def threading(self):
        """Return what stands in for `threading`."""
        kernel = self

        class Thread:
            def __init__(self, target, name="", daemon=False, args=()):
                self._target, self._args, self._ended, self._waiting = target, args, False, []

            def start(self):
                owner = kernel.owner
                owner.tasks.append(kernel.spawn(self._run, owner=owner))

            def _run(self):
                try:
                    self._target(*self._args)
                finally:
                    self._ended = True
                    kernel.wake(self._waiting)

            def join(self):
                while not self._ended:
                    kernel.wait(self._waiting)

        class Event:
            def __init__(self):
                self._is_set, self._waiting = False, []

            def is_set(self):
                return self._is_set

            def set(self):
                self._is_set = True
                kernel.wake(self._waiting)

            def wait(self, timeout=None):
                if not self._is_set:
                    kernel.wait(self._waiting, timeout)
                return self._is_set

        return types.SimpleNamespace(Thread=Thread, Event=Event)

    def queue(self):
        """Return what stands in for `queue`."""
        kernel = self

        class Queue:
            def __init__(self, maxsize=0):
                self._items, self._most, self._getters, self._putters = [], maxsize or 10**9, [], []

            def put(self, item, block=True):
                while len(self._items) >= self._most:
                    if not block:
                        raise queue.Full
                    kernel.wait(self._putters)
                self._items.append(item)
                kernel.wake(self._getters)

            def get_nowait(self):
                if not self._items:
                    raise queue.Empty
                kernel.wake(self._putters)
                return self._items.pop(0)

            def get(self):
                while not self._items:
                    kernel.wait(self._getters)
                return self.get_nowait()

        return types.SimpleNamespace(Queue=Queue, SimpleQueue=Queue, Full=queue.Full, Empty=queue.Empty)

    def futures(self):
        """Return what stands in for `concurrent`."""
        kernel = self

        class Future(concurrent.futures.Future):
            def result(self, timeout=None):
                waiting = []
                self.add_done_callback(lambda _: kernel.wake(waiting))
                while not self.done():
                    kernel.wait(waiting)
                return super().result(0)

        return types.SimpleNamespace(futures=types.SimpleNamespace(Future=Future))

    def time(self):
        """Return what stands in for `time`."""
        return types.SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep)
