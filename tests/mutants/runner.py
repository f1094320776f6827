"""A pytest plugin: run all tests once and see which lines each of them reaches; then fork a child for each mutant.

The child gives one function another code, and runs the tests that reach the changed line, the fastest first, until one
fails. Nothing is written to the disk, and nothing is imported twice.
"""

from __future__ import annotations

import gc
import mmap
import os
import random
import resource
import signal
import sys
import threading
import time
import types
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutants.mutations import Mutant, mutants

MEMORY = 2**31
"""Bytes that a mutant may take beyond what the process has."""
LEAST_SECONDS = 20.0
"""Of processor time and of the clock, beside five times what the tests take without a mutant."""


class Runner:
    """Runs the tests of a session for samples of the mutants of some modules."""

    def __init__(self, files: list[Path], count: int, seeds: list[int]) -> None:
        self.files, found = files, [each for file in files for each in mutants(file)]
        self.chosen = {seed: random.Random(seed).sample(found, min(count, len(found))) for seed in seeds}
        self.lines: dict[tuple[str, int], set[int]] = {}
        """The tests that reach a line, by their places in the session."""
        self.seconds: dict[int, float] = {}
        self.survivors: list[Mutant] = []
        self.endless: list[Mutant] = []
        """Killed because a test did not end, not because one failed."""
        self.fit: set[tuple[int, ...]] = set()
        """Sequences of tests that pass in a child without a mutant."""
        self.unfit: set[int] = set()
        """Tests that fail in a child without a mutant, and say nothing."""
        self.under_way = mmap.mmap(-1, 4)
        """The test that a child runs."""
        self.out = os.fdopen(os.dup(1), "w")  # pytest takes the standard output

    def pytest_sessionstart(self) -> None:
        """Let Hypothesis keep no failures, and not look for smaller ones."""
        from hypothesis import Phase, settings  # here: pytest rewrites the plugins that it loads

        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutants", database=None, phases=phases, derandomize=True)
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests without a mutant, which must pass, and then with each."""
        if session.testsfailed:
            raise session.Interrupted("tests cannot be collected")
        for place, item in enumerate(session.items):
            self._traced(place, item)
            if session.testsfailed:
                raise session.Interrupted("a test fails without any mutant")
        gc.unfreeze()  # a service sets objects aside, among which functions would not be found
        functions = self._functions()
        gc.freeze()  # a child that collects garbage would copy all pages
        chosen = {id(each): each for sample in self.chosen.values() for each in sample}
        for mutant in sorted(chosen.values(), key=lambda each: (str(each.file), each.lines.start)):
            tests = set().union(*(self.lines.get((str(mutant.file), line), ()) for line in mutant.lines))
            if self._survives(session, mutant, functions, tests):
                self.survivors.append(mutant)
                self._print(f"survived ({len(tests)} tests)", mutant)
        return True

    def _traced(self, place: int, item: pytest.Item) -> None:
        """Run one test, and note which lines of the files it reaches."""
        names, lines = {str(file) for file in self.files}, self.lines

        def trace(frame: types.FrameType, event: str, _: object) -> object:
            if frame.f_code.co_filename not in names:
                return None
            lines.setdefault((frame.f_code.co_filename, frame.f_lineno), set()).add(place)
            return trace

        doctest = getattr(item, "dtest", None)
        names_there = {} if doctest is None else dict(doctest.globs)
        began = time.process_time()
        threading.settrace(trace)  # type: ignore[arg-type]
        sys.settrace(trace)  # type: ignore[arg-type]
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
        self.seconds[place] = time.process_time() - began
        if doctest is not None:  # it has forgotten the names of its module, and would fail if it ran again
            doctest.globs.update(names_there)

    def _functions(self) -> dict[tuple[str, str, int], list[types.FunctionType]]:
        """Return the functions of the files, by file, name and line."""
        names, found = {str(file) for file in self.files}, {}
        for each in gc.get_objects():
            if isinstance(each, types.FunctionType) and each.__code__.co_filename in names:
                code = each.__code__
                found.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(each)
        return found

    def _print(self, what: str, mutant: Mutant) -> None:
        print(f"  {what} {mutant.file.name}:{mutant.lines.start} {mutant.name}", file=self.out, flush=True)

    def _survives(self, session: pytest.Session, mutant: Mutant, functions: dict, tests: set[int]) -> bool:
        """Return whether all tests pass, but for those that fail in a child without any mutant, too."""
        there = functions[str(mutant.file), mutant.function, mutant.first_line] if tests else []
        # without `super()`, a mutant has no `__class__` of its own, which its function must have all the same
        changed = {each: mutant.code.replace(co_freevars=each.__code__.co_freevars) for each in there}
        while order := sorted(tests - self.unfit, key=self.seconds.__getitem__):
            status = self._status(session, changed, order)
            if not status:
                return True
            place = int.from_bytes(self.under_way[:])
            run = tuple(order[: order.index(place) + 1])
            if run in self.fit or not self._status(session, {}, run):
                self.fit.add(run)
                if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
                    self.endless.append(mutant)
                    self._print("did not end", mutant)
                return False
            self.unfit.add(place)
            print(f"  fails without any mutant: {session.items[place].nodeid}", file=self.out, flush=True)
        return True

    def _status(self, session: pytest.Session, changed: dict, order: Sequence[int]) -> int:
        """Return how a child ends in which functions have other code: 0 if all tests pass."""
        usual = sum(self.seconds[place] for place in order)
        child = os.fork()
        if not child:
            os._exit(self._lived(session, changed, order, usual))
        end = time.monotonic() + 3.0 * LEAST_SECONDS + 20.0 * usual
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return status
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.01)

    def _lived(self, session: pytest.Session, changed: dict, order: Sequence[int], usual: float) -> int:
        """Run the tests in a child; return 0 if all pass."""
        try:
            os.setsid()
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            session.config.pluginmanager.unregister(name="terminalreporter")
            most = int(time.process_time() + LEAST_SECONDS + 5.0 * usual)
            resource.setrlimit(resource.RLIMIT_CPU, (most, most))
            pages = int(Path("/proc/self/statm").read_text().split()[5])
            most = pages * resource.getpagesize() + MEMORY
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for function, code in changed.items():
                function.__code__ = code
            for place in order:
                self.under_way[:] = place.to_bytes(4)
                item = session.items[place]
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                if session.testsfailed:
                    return 1
        except BaseException:
            return 1
        return 0
