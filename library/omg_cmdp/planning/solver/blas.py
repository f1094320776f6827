"""BLAS and LAPACK for compiled code, without Python in between.

The routines are SciPy's own, bound to names that compiled code can keep in its cache. Arrays are row-major here and
column-major there, so a lower triangle of ours is their upper one; the docstrings describe our side.
"""

from __future__ import annotations

import llvmlite.binding
import numpy as np
import scipy.linalg
from numba import types
from numba.extending import get_cython_function_address

from omg_cmdp.jit import in_plain_python, leaf


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


if in_plain_python():

    def gram(rows, out, sizes):
        out[...] = rows.T @ rows

    def subtract_gram(rows, out, sizes):
        out -= rows.T @ rows

    def cholesky(matrix, sizes):
        try:
            matrix[...] = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            return False
        return True

    def solve_lower(factor, rows, sizes):
        rows[...] = scipy.linalg.solve_triangular(factor, rows, lower=True)
