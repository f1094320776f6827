"""The door to the compiled loops, opened with the first use: importing the package compiles nothing."""

from __future__ import annotations

import functools
from types import ModuleType

LOOPS_UP_TO = 32
"""Compiled loops beat numpy up to this many states."""


@functools.cache
def kernels() -> ModuleType:
    """Return `omg_cmdp.mdp.kernels`."""
    from omg_cmdp.mdp import kernels as module

    return module
