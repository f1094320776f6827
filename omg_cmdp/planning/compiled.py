"""How the package compiles: one decorator, one rule for the cache, one notice to the user."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import numba
from numba.core import event

_HERE = Path(__file__).parent

# Products and sums may be fused, but sums not reordered: their order would depend on where arrays happen to lie in
# memory, and so would the last bits. NaN and infinity keep their meaning: by them the loop notices that it has left the
# interior.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "arcp", "nsz"}}
compiled = numba.njit(cache=True, **_OPTIONS)

# For functions that allocate nothing. Without the reference counts that numba would keep of every array it takes out of
# a tuple, a small plan takes half the time.
leaf = numba.njit(cache=True, _nrt=False, **_OPTIONS)  # type: ignore[call-overload]


def compiled_for(*arguments: numba.types.Type) -> Any:
    """Compile an entry point for these argument types when its module is imported, or load it from the cache."""
    return numba.njit(arguments, cache=True, **_OPTIONS)


def table(dtype: numba.types.Type, dimensions: int) -> numba.types.Array:
    """Return the type of a C-ordered array."""
    return numba.types.Array(dtype, dimensions, "C")


def drop_stale_cache() -> None:
    """Delete compiled code older than any source here.

    numba looks only at the file of the function it loads, and would go on using what it inlined from another one.
    """
    newest = max(source.stat().st_mtime for source in _HERE.glob("*.py"))
    for index in (_HERE / "__pycache__").glob("*.nbi"):
        with contextlib.suppress(FileNotFoundError):  # another process of the same run was quicker
            if index.stat().st_mtime < newest:
                index.unlink()


class CompileNotice(event.Listener):
    """Tell the user, once, that the wait is compilation and will not come back."""

    told = False

    def on_start(self, event: Any) -> None:
        """Say it."""
        if not self.told:
            self.told = True
            print("omg-cmdp: compiling the planner for this machine (once, about a minute)", file=sys.stderr)

    def on_end(self, event: Any) -> None:
        """Say nothing."""
