"""How the package compiles: the decorators, when compiled code is loaded, and when it is too old.

A function of compiled code takes and fills plain arrays, and has a decorator from here:

    compiled       the usual one; arithmetic exactly as written
    compiled_for   an entry point: compiled for these types when its module is imported
    fused          products and sums may be fused: the planner's loops
    leaf           the same for functions that allocate nothing: twice as fast for small arrays
    reduction      sums may be reordered as well: only for loops that add up and store nothing

Elsewhere in the package, `kernels = Lazy("omg_cmdp.mdp.kernels")` stands for such a module, which is imported with the
first call of one of its functions: `import omg_cmdp` stays light, and compiles nothing.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numba

_PACKAGE = __name__.partition(".")[0]

_STRICT: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Sums are never reordered where a loop also stores: whether it is vectorised then depends on how far apart the arrays
# lie in memory, and with the order of a sum its last bits. NaN and infinity keep their meaning: by them the planner
# notices that it has left the interior.
_FUSED: dict[str, Any] = {**_STRICT, "fastmath": {"contract", "arcp", "nsz"}}
# numba counts the references of every array that it takes out of a tuple, unless it is told that no memory is managed
# here: there is no public option for this, and without it a small plan takes twice as long.
_LEAF: dict[str, Any] = {**_FUSED, "_nrt": False}
_REDUCTION: dict[str, Any] = {**_STRICT, "fastmath": {"reassoc", "contract"}}


def _decorator(options: dict[str, Any]) -> Callable[[Callable[..., Any]], Any]:
    def decorate(function: Callable[..., Any]) -> Any:
        import numba

        dispatcher = numba.njit(cache=True, **options)(function)
        _drop_if_stale(Path(dispatcher.stats.cache_path), function.__module__)
        return dispatcher

    return decorate


compiled, fused, leaf, reduction = (_decorator(options) for options in (_STRICT, _FUSED, _LEAF, _REDUCTION))


def compiled_for(*arguments: numba.types.Type) -> Callable[[Callable[..., Any]], Any]:
    """Compile an entry point of the planner for these argument types at once, or load it from the cache."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = fused(function)
        dispatcher.compile(arguments)
        return dispatcher

    return decorate


def table(dtype: numba.types.Type, dimensions: int) -> numba.types.Array:
    """Return the type of a C-ordered array."""
    from numba import types

    return types.Array(dtype, dimensions, "C")


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
    """Counts who is planning; the first to come takes BLAS down to one thread, the last to go restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

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
                self._users -= 1
                if self._users == 0:
                    self._set(self._before)

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
    """Tell the user, once, that the wait is compilation and will not come back."""
    from numba.core import event

    class Notice(event.Listener):
        told = False

        def on_start(self, event: Any) -> None:
            ours = event.data["dispatcher"].py_func.__module__.partition(".")[0] == _PACKAGE
            if ours and not self.told:
                self.told = True
                print("omg-cmdp: compiling for this machine (once, about a minute)", file=sys.stderr)

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Notice())  # type: ignore[no-untyped-call]


@functools.cache
def _drop_if_stale(folder: Path, module: str) -> None:
    """Delete the compiled code of `module` in `folder` if any source that it was made from has changed since.

    numba looks only at the file of the function itself; functions and constants that were compiled into it come from
    other files, too.
    """
    stem = module.rpartition(".")[2]
    stamp, digest = folder / f"{stem}.sources", _digest(module)
    if stamp.exists() and stamp.read_text() == digest:
        return
    for index in folder.glob(f"{stem}.*.nbi"):
        index.unlink(missing_ok=True)  # another process may have been quicker
    with contextlib.suppress(OSError):  # a folder that cannot be written to keeps no compiled code either
        folder.mkdir(parents=True, exist_ok=True)
        stamp.write_text(digest)


def _digest(module: str) -> str:
    """Return a digest of the source of `module` and of all that it imports from this package."""
    found: dict[str, str] = {}
    pending = [module]
    while pending:
        name = pending.pop()
        if name not in found:
            found[name], imported = _source(name)
            pending += imported
    return hashlib.sha256("".join(found[name] for name in sorted(found)).encode()).hexdigest()


@functools.cache
def _source(module: str) -> tuple[str, list[str]]:
    """Return the source of a module of this package, and all names that it imports from the package.

    Some of these are modules and some are what is in them; of the latter there is no source.
    """
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return "", []
    if spec is None or spec.origin is None:
        return "", []
    source = Path(spec.origin).read_text(encoding="utf-8")
    imported = []
    for origin, names in _IMPORTS.findall(source):
        imported += [origin, *(f"{origin}.{name}" for name in re.findall(r"\w+", names))]
    return source, imported


_IMPORTS = re.compile(rf"^\s*(?:from|import) ({_PACKAGE}[\w.]*)(?: import ([\w, ]+|\([^)]*\)))?", re.MULTILINE)
