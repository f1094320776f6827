"""The door to the compiled loops, opened with the first use: importing the package compiles nothing."""

from __future__ import annotations

import functools
from types import ModuleType


@functools.cache
def kernels() -> ModuleType:
    """Return `omg_cmdp.oracles.kernels`."""
    from omg_cmdp.oracles import kernels as module

    return module


@functools.cache
def softmax_kernels() -> ModuleType:
    """Return `omg_cmdp.oracles.softmax_kernels`."""
    from omg_cmdp.oracles import softmax_kernels as module

    return module


@functools.cache
def offline_kernels() -> ModuleType:
    """Return `omg_cmdp.oracles.offline_kernels`."""
    from omg_cmdp.oracles import offline_kernels as module

    return module
