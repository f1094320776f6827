"""BLAS and LAPACK for compiled code, without Python in between, and on one thread.

The routines are SciPy's own, bound to names that compiled code can keep in its cache. Arrays are row-major here and
column-major there, so a lower triangle of ours is their upper one; the docstrings speak of our side.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import llvmlite.binding
import numpy as np
import threadpoolctl
from numba import types
from numba.extending import get_cython_function_address

from omg_cmdp.planning.compiled import leaf


def _routine(module: str, name: str, arguments: int) -> types.ExternalFunction:
    symbol = f"omg_cmdp_{name}"
    llvmlite.binding.add_symbol(symbol, get_cython_function_address(f"scipy.linalg.{module}", name))
    return types.ExternalFunction(symbol, types.void(*[types.voidptr] * arguments))


_dsyrk = _routine("cython_blas", "dsyrk", 10)
_dtrsm = _routine("cython_blas", "dtrsm", 11)
_dpotrf = _routine("cython_lapack", "dpotrf", 5)


_NO, _RIGHT, _UPPER = (np.array([ord(letter)], dtype=np.uint8) for letter in "NRU")
_ONE, _MINUS_ONE, _ZERO = np.ones(1), -np.ones(1), np.zeros(1)


@leaf
def gram(rows, out, sizes):
    """Set out ← rowsᵀ·rows, lower triangle; rows (k, n), out (n, n). `sizes` is scratch for two integers, as below."""
    sizes[0], sizes[1] = rows.shape[1], rows.shape[0]
    n, k = sizes.ctypes, sizes[1:].ctypes
    _dsyrk(_UPPER.ctypes, _NO.ctypes, n, k, _ONE.ctypes, rows.ctypes, n, _ZERO.ctypes, out.ctypes, n)


@leaf
def subtract_gram(rows, out, sizes):
    """Set out ← out - rowsᵀ·rows, lower triangle; rows (k, n), out (n, n)."""
    sizes[0], sizes[1] = rows.shape[1], rows.shape[0]
    n, k = sizes.ctypes, sizes[1:].ctypes
    _dsyrk(_UPPER.ctypes, _NO.ctypes, n, k, _MINUS_ONE.ctypes, rows.ctypes, n, _ONE.ctypes, out.ctypes, n)


@leaf
def cholesky(matrix, sizes):
    """Overwrite the lower triangle of `matrix` (n, n) with its Cholesky factor; return False if it is not definite."""
    sizes[0], sizes[1] = matrix.shape[0], 0
    n, info = sizes.ctypes, sizes[1:].ctypes
    _dpotrf(_UPPER.ctypes, n, matrix.ctypes, n, info)
    return sizes[1] == 0


@leaf
def solve_lower(factor, rows, sizes):
    """Set rows ← factor⁻¹·rows; factor (k, k) lower triangular, rows (k, n)."""
    sizes[0], sizes[1] = rows.shape[1], rows.shape[0]
    n, k, no = sizes.ctypes, sizes[1:].ctypes, _NO.ctypes
    _dtrsm(_RIGHT.ctypes, _UPPER.ctypes, no, no, n, k, _ONE.ctypes, factor.ctypes, k, rows.ctypes, n)


class _OneThread:
    """Counts who is planning; the first to come takes BLAS down to one thread, the last to go restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._pools = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
        self._before = [0] * len(self._pools)

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
            # threadpoolctl listens to one thread per process only, lest threads undo each other's limits; here the
            # count of users sees to that, and a plan from any thread must have its limit.
            getattr(pool, "_real_set_num_threads", pool.set_num_threads)(count)


# One thread for two reasons: small blocks on many threads are slower by far, and the order of sums, hence every bit of
# a plan, must not depend on how many cores there are. Many plans at once are what the cores are for.
one_thread = _OneThread()
