"""How the package compiles: the decorators, when compiled code is loaded, and when it is too old.

A function of compiled code takes and fills plain arrays, and has a decorator from here:

    compiled       an entry point, which Python calls
    inner          a function that only compiled code calls; it compiles in less time (see `_compilers`)
    leaf           the same, for functions that allocate nothing: twice as fast for small arrays

Indices count from the front: a negative one is not looked up from the end, which would be checked in every loop.
Arithmetic is always exactly as written. A loop is compiled twice, with vectors and without, and which of the two runs
can depend on how far apart its arrays lie in memory. Were the compiler free to reorder sums, to fuse a product with a
sum or to divide by multiplying, the two would differ in their last bits, and so would two plans of one problem.

With NUMBA_DISABLE_JIT=1 everything works in plain Python, to debug, hundreds of times slower. What plain Python cannot
do as it is written, such as a call of BLAS, has a second form beside it.
Elsewhere in the package, `compiled = Lazy("omg_cmdp.mdp.compiled")` stands for such a module. It is imported with the
first call of one of its functions: `import omg_cmdp` stays light, and compiles nothing.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

_PACKAGES = ("omg_cmdp", "omg_lab")
"""The packages with compiled code."""
_MANGLED = tuple(f"_ZN{len(name)}{name}" for name in _PACKAGES)
"""How the names of their compiled functions begin."""

_functions = {"decorated": 0, "compiled": 0}
_EXACT: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Code that takes a dozen arrays out of Python's tuples is longer than most functions, and is compiled for each.
_INNER: dict[str, Any] = {**_EXACT, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# numba counts the references of every array that it takes out of a tuple, unless it is told that no memory is managed
# here: there is no public option for this, and without it a small plan takes twice as long.
_LEAF: dict[str, Any] = {**_INNER, "_nrt": False}


def in_plain_python() -> bool:
    """Return whether nothing is to be compiled."""
    import numba

    return bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]


def _decorator(options: dict[str, Any]) -> Callable[[Callable[..., Any]], Any]:
    def decorate(function: Callable[..., Any]) -> Any:
        import numba

        if in_plain_python():
            return function
        _functions["decorated"] += 1
        dispatcher = numba.njit(**options, pipeline_class=_compilers()[options is not _EXACT])(function)
        try:
            dispatcher._cache = _kept()(function)
        except RuntimeError:  # numba found no folder to write to
            _announce_no_cache()
        return dispatcher

    return decorate


compiled, inner, leaf = _decorator(_EXACT), _decorator(_INNER), _decorator(_LEAF)


class Lazy:
    """A module of compiled code that is imported with the first use of one of its names."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        _announce_compilation()
        value = getattr(importlib.import_module(self._module), name)
        setattr(self, name, value)  # the next use finds it without coming here
        return value


class _OneThread:
    """A count of the plans under way: the first one takes BLAS down to one thread, the last one restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        if hasattr(os, "register_at_fork"):
            # A child has none of the threads that were planning, one of which may have held the lock.
            os.register_at_fork(
                before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._in_child
            )

    @functools.cached_property
    def _pools(self) -> list[Any]:
        import threadpoolctl

        return list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                self._before = [pool.get_num_threads() for pool in self._pools]
                self._set([1] * len(self._pools))
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                if self._users == 1:
                    self._set(self._before)
                self._users = max(0, self._users - 1)  # 0 in a child that was forked in between

    def _in_child(self) -> None:
        if self._users > 0:
            self._users = 0
            self._set(self._before)
        self._lock.release()

    def _set(self, threads: list[int]) -> None:
        for pool, count in zip(self._pools, threads, strict=True):
            # threadpoolctl heeds one thread of the process only, lest threads undo each other's limits. Here the count
            # of users sees to that, and a plan from any thread must have its limit; no public call does it.
            getattr(pool, "_real_set_num_threads", pool.set_num_threads)(count)


# One thread for two reasons: small blocks on many threads are slower by far, and the order of sums, hence every bit of
# a plan, must not depend on how many cores there are. Many plans at once are what the cores are for.
one_thread = _OneThread()
"""A context in which BLAS has one thread, whichever threads plan meanwhile."""


@functools.cache
def _announce_compilation() -> None:
    """Tell the user, once, that the wait is compilation, and how far it has come."""
    from numba.core import event

    # Not an import statement: compiled code is not made from it, and need not be made again when it changes.
    progress: Any = importlib.import_module("omg_cmdp.progress")

    def is_ours(event: Any) -> bool:
        return event.data["dispatcher"].py_func.__module__.partition(".")[0] in _PACKAGES

    class Notice(event.Listener):
        under_way, bar = 0, progress.Bar("compile")

        def on_start(self, event: Any) -> None:
            self.under_way += is_ours(event)
            if is_ours(event) and self.under_way == 1:
                _say_once("compiling for this machine, each part when it is first used (about 20 seconds in all)")
                left = _functions["decorated"] - _functions["compiled"]
                self.bar = progress.Bar("compile", left, unit="parts")
                self.bar.__enter__()

        def on_end(self, event: Any) -> None:
            if not is_ours(event):
                return
            _functions["compiled"] += 1
            self.under_way -= 1
            self.bar.update(note=event.data["dispatcher"].py_func.__name__)
            if not self.under_way:
                self.bar.total = self.bar.done  # what nobody called was not compiled
                self.bar.__exit__(None, None, None)

    event.register("numba:compile", Notice())  # type: ignore[no-untyped-call]


def count_compilations() -> int:
    """Return the number of functions that this process has compiled, rather than loaded."""
    return _functions["compiled"]


def _announce_no_cache() -> None:
    _say_once("compiled code cannot be kept, and every process compiles; set NUMBA_CACHE_DIR to a writable folder")


@functools.cache
def _say_once(line: str) -> None:
    print(f"omg-cmdp: {line}", file=sys.stderr)


@functools.cache
def _compilers() -> tuple[type, type]:
    """Return numba's compiler, as made for entry points and for functions that only compiled code calls.

    numba optimises a function together with all that it calls, and makes machine code of the whole: in a chain of five
    calls the last function goes through this five times. Here such functions stay intermediate code, and are linked
    into the entry points, which alone are ever run.
    """
    codegen: Any = importlib.import_module("numba.core.codegen")
    compiler: Any = importlib.import_module("numba.core.compiler")
    _trust_indices(importlib.import_module("numba.np.arrayobj"))

    class Whole(codegen.JITCodeLibrary):  # type: ignore[misc]
        """The code of an entry point and of all that it calls."""

        def _optimize_final_module(self) -> None:
            # Private to the entry point, parts lose the arguments that they do not use: tuples of arrays are passed
            # by value, and a dozen arrays are a hundred words. Nobody else may find them by their names, then.
            for function in self._final_module.functions:
                if function.linkage.name == "linkonce_odr" and function.name.startswith(_MANGLED):
                    function.linkage, function.name = "internal", f"{function.name}.part"
            super()._optimize_final_module()

    class Fragment(codegen.JITCodeLibrary):  # type: ignore[misc]
        """Code to link into an entry point: it has no address, and is kept without machine code."""

        _optimize_final_module = staticmethod(lambda: None)

        def _finalize_final_module(self) -> None:
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

        def serialize_using_object_code(self) -> Any:
            return self.serialize_using_bitcode()

        # What numba would set with `codegen.set_env` has no address either, and serves Python objects only.
        codegen = property(lambda self: self)
        set_env = staticmethod(lambda name, environment: None)

    def made_with(library: Any) -> type:
        class Compiler(compiler.Compiler):  # type: ignore[misc]
            def compile_extra(self, function: Callable[..., Any]) -> Any:
                self.state.library = library(self.state.targetctx.codegen(), function.__qualname__)
                self.state.library.enable_object_caching()
                return super().compile_extra(function)

        return Compiler

    return made_with(Whole), made_with(Fragment)


def _trust_indices(arrays: Any) -> None:
    """Let our own functions index without a test for negative numbers, which takes a sixth of a small plan's time."""
    tested = arrays.fix_integer_index

    def trusted(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        if builder.function.name.startswith(_MANGLED):
            return context.cast(builder, index, kind, arrays.types.intp)
        return tested(context, builder, kind, index, size)

    arrays.fix_integer_index = trusted


@functools.cache
def _kept() -> type:
    """Return numba's cache of compiled functions, made to keep what it should and to do without where it cannot."""
    caching: Any = importlib.import_module("numba.core.caching")
    provenance: Any = importlib.import_module("omg_cmdp.provenance")

    class Kept(caching.FunctionCache):  # type: ignore[misc]
        def __init__(self, function: Callable[..., Any]) -> None:
            super().__init__(function)
            # numba's own stamp is the file of the function; functions and constants compiled into it have others.
            stamp = provenance.source_digest(function.__module__)
            self._cache_file = caching.IndexDataCacheFile(self.cache_path, self._impl.filename_base, stamp)

        def load_overload(self, *arguments: Any) -> Any:
            try:
                return super().load_overload(*arguments)
            except Exception:  # a damaged file, or another user's
                with contextlib.suppress(OSError):
                    self.flush()
                return None

        def save_overload(self, *arguments: Any) -> None:
            try:
                super().save_overload(*arguments)
            except OSError:  # read-only since, or full
                _announce_no_cache()

    return Kept
